// SPDX-License-Identifier: Apache-2.0

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.qtensor.Config;
import org.qtensor.DType;
import org.qtensor.Lib;
import org.qtensor.Observer;
import org.qtensor.Op;
import org.qtensor.QTensorException;
import org.qtensor.Quantizer;
import org.qtensor.Scheme;
import org.qtensor.Status;
import org.qtensor.Tensor;

/** Tensors, grids and operators: values in and out, memory that is shared, errors. */
class TensorTest {
  static Tensor matrix() {
    return Tensor.of(new float[] {0, 1, 2, 3, 4, 5}, 2, 3);
  }

  static ByteBuffer direct(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  static void fails(Class<? extends Throwable> type, String message, Executable call) {
    assertEquals(message, assertThrows(type, call).getMessage());
  }

  static void fails(Status status, String message, Executable call) {
    QTensorException thrown = assertThrows(QTensorException.class, call);
    assertEquals(message, thrown.getMessage());
    assertEquals(status, thrown.status());
  }

  @Test
  void arraysOfEveryType() {
    assertArrayEquals(new float[] {1.5f, 2}, Tensor.of(new float[] {1.5f, 2}).toFloatArray());
    assertArrayEquals(new double[] {1.5, 2}, Tensor.of(new double[] {1.5, 2}, 2, 1).toDoubleArray());
    assertArrayEquals(new long[] {1L << 40, -1}, Tensor.of(new long[] {1L << 40, -1}).toLongArray());
    assertArrayEquals(new int[] {7, -8}, Tensor.of(new int[] {7, -8}).toIntArray());
    assertArrayEquals(new byte[] {7, -8}, Tensor.of(new byte[] {7, -8}).toByteArray());
    assertEquals(DType.INT16, Tensor.of(new short[] {7, -8}).dtype());
    assertEquals(-8, Tensor.of(new short[] {7, -8}).shortBuffer().get(1));
    assertArrayEquals(new long[] {2}, Tensor.of(new byte[] {7, -8}).shape());
    assertArrayEquals(new long[] {}, Tensor.create(DType.INT8).shape());
    assertArrayEquals(new float[] {0, 3, 1, 4, 2, 5}, matrix().permute(1, 0).toFloatArray());
    assertArrayEquals(new byte[] {0x21}, Tensor.create(DType.INT4, null, new byte[] {0x21}, 2).toByteArray());
    fails(IllegalArgumentException.class, "data has 2 elements, not those of [3]", () -> Tensor.of(new int[2], 3));
    fails(Status.EDTYPE, "toFloatArray: the tensor has elements of INT32, not FLOAT32",
        () -> Tensor.of(new int[2]).toFloatArray());
  }

  @Test
  void emptyTensors() {
    Tensor empty = Tensor.of(new float[0], 0, 3);
    assertArrayEquals(new long[] {0, 3}, empty.shape());
    assertEquals(0, empty.toFloatArray().length);
    assertEquals(0, empty.buffer().capacity());
  }

  @Test
  void buffersAreSharedInAndOut() {
    int elements = 25_000_000; // 100 MB
    FloatBuffer floats = direct(elements * 4).asFloatBuffer();
    Tensor t = Tensor.wrap(floats, elements);
    FloatBuffer out = t.floatBuffer();
    floats.put(elements - 1, 7);
    assertEquals(7, out.get(elements - 1));
    out.put(0, 8);
    assertEquals(8, floats.get(0));
    t.close();
    out.put(1, 9);
    assertEquals(9, floats.get(1));
  }

  @Test
  void buffersFromTheirPositionToTheirLimit() {
    ByteBuffer bytes = direct(24);
    for (int i = 0; i < 6; ++i) {
      bytes.putFloat(4 * i, i);
    }
    assertArrayEquals(new float[] {1, 2}, Tensor.wrap(bytes.position(4).limit(12), DType.FLOAT32, 2).toFloatArray());
    bytes.clear();
    assertArrayEquals(new float[] {2, 3}, Tensor.wrap(bytes.asFloatBuffer().position(2).limit(4), 2).toFloatArray());
    assertArrayEquals(new float[] {3, 4},
        Tensor.wrap(bytes.position(4).slice().order(ByteOrder.nativeOrder()).asFloatBuffer().position(2).limit(4), 2)
            .toFloatArray());
    Quantizer q = Quantizer.perTensor(DType.INT8, 0.5, 0);
    bytes.clear().put(0, (byte) 6);
    assertEquals(3, Tensor.wrap(bytes.limit(1), q, 1).item());
    assertEquals(DType.INT8, Tensor.wrap(bytes, 1).dtype());
    fails(Status.EINVAL, "qtensor_wrap: nbytes is 1, a 2 tensor of int8 takes 2", () -> Tensor.wrap(bytes, 2));
  }

  @Test
  void buffersThatCannotBeShared() {
    fails(IllegalArgumentException.class,
        "buffer is on the heap: ByteBuffer.allocateDirect makes one that can be shared, Tensor.of copies an array",
        () -> Tensor.wrap(FloatBuffer.allocate(4), 4));
    fails(IllegalArgumentException.class,
        "buffer is BIG_ENDIAN: call order(ByteOrder.nativeOrder()) on the ByteBuffer before it is filled",
        () -> Tensor.wrap(ByteBuffer.allocateDirect(16).asFloatBuffer(), 4));
    fails(IllegalArgumentException.class, "buffer is read-only: tensors share what can be written",
        () -> Tensor.wrap(direct(16).asFloatBuffer().asReadOnlyBuffer(), 4));
    fails(IllegalArgumentException.class, "buffer is null", () -> Tensor.wrap(null, 4));
    CharBuffer chars = direct(16).asCharBuffer();
    assertTrue(assertThrows(IllegalArgumentException.class, () -> Tensor.wrap(chars, 8))
                   .getMessage()
                   .endsWith("use a ByteBuffer"));
    assertEquals(4, Tensor.wrap(ByteBuffer.allocateDirect(4), DType.UINT8, 4).numel()); // bytes have no order
  }

  @Test
  void buffersOfTensorsWhoseElementsAreApart() {
    String message =
        "the elements of [3, 2] FLOAT32 do not lie one after the other: ask contiguous(), or toByteArray() of packed types";
    fails(IllegalStateException.class, message, () -> matrix().permute(1, 0).buffer());
    assertEquals(3, matrix().permute(1, 0).contiguous().floatBuffer().get(1));
    assertThrows(IllegalStateException.class, () -> Tensor.create(DType.INT4, 2).buffer());
    assertEquals(4, matrix().slice(0, 1, 2).floatBuffer().get(1)); // a view of its own rows
  }

  @Test
  void quantizers() {
    Quantizer q = new Quantizer(DType.INT8, Scheme.PER_CHANNEL_SYMMETRIC, 0, new double[] {0.1, 0.2});
    assertArrayEquals(new double[] {0.1, 0.2}, q.scales());
    assertArrayEquals(new long[] {0, 0}, q.zeroPoints());
    assertEquals(Scheme.PER_CHANNEL_SYMMETRIC, q.scheme());
    assertEquals("Quantizer(INT8, PER_CHANNEL_SYMMETRIC, axis=0, 2 scales, fbgemm)", q.toString());
    fails(IllegalStateException.class, "a quantizer PER_CHANNEL_SYMMETRIC has 2 scales and zero points", q::scale);
    Quantizer one = Quantizer.perTensor(DType.UINT8, 0.5, 3);
    assertEquals("Quantizer(UINT8, PER_TENSOR_AFFINE, scale=0.5, zeroPoint=3, fbgemm)", one.toString());
    Tensor t = matrix().quantize(one);
    assertTrue(t.isQuantized());
    assertArrayEquals(new byte[] {3, 5, 7, 9, 11, 13}, t.toByteArray());
    assertEquals(5, t.buffer().get(1));
    assertEquals(3, t.quantizer().zeroPoint());
    assertNull(matrix().quantizer());
    assertArrayEquals(new float[] {0, 1, 2, 3, 4, 5}, t.dequantize().toFloatArray());
    assertFalse(t.intRepr().isQuantized());
    assertArrayEquals(new float[] {-1.5f}, Tensor.create(one, 1).dequantize().toFloatArray());
  }

  @Test
  void operators() {
    assertArrayEquals(new float[] {0, 2}, Op.relu(Tensor.of(new float[] {-1, 2})).toFloatArray());
    Tensor x = Tensor.of(new float[16], 1, 1, 4, 4);
    Map<String, Object> attrs = Map.of("kernel_shape", List.of(2, 2), "strides", new long[] {2, 2}, "pads", new int[4]);
    assertArrayEquals(new long[] {1, 1, 2, 2}, Op.run("MaxPool", new Tensor[] {x}, attrs)[0].shape());
    Tensor weight = Tensor.of(new float[] {1, 3}, 1, 2);
    assertArrayEquals(new float[] {3, 12}, Op.linear(Tensor.of(new float[] {0, 1, 3, 3}, 2, 2), weight).toFloatArray());
    assertArrayEquals(new float[] {5}, Op.linear(Tensor.of(new float[] {2, 1}, 1, 2), weight, null).toFloatArray());
    Tensor[] clipped = Op.run("Clip", new Tensor[] {matrix(), null, Tensor.of(new float[] {2}).reshape()});
    assertEquals(2, clipped[0].select(0, 1).select(0, 2).item());
  }

  @Test
  void attributes() {
    Observer o = new Observer("percentile", Map.of("percentile", 99f, "bins", (short) 64, "reduce_range", true));
    o.observe(matrix());
    assertEquals(DType.UINT8, o.quantizer().dtype());
    fails(IllegalArgumentException.class,
        "attribute \"bins\" is of class java.lang.Object"
            + ", not a whole number, a real, a boolean, a String, or a list of numbers",
        () -> new Observer("minmax", Map.of("bins", new Object())));
    Map<String, Object> nothing = new HashMap<>();
    nothing.put("bins", null);
    assertThrows(IllegalArgumentException.class, () -> new Observer("minmax", nothing));
    assertTrue(assertThrows(QTensorException.class, () -> new Observer("minmax", Map.of("bin", 3)))
                   .getMessage()
                   .contains("unknown attribute \"bin\"; valid are"));
    Observer again = Observer.load(o.save());
    assertEquals(o.quantizer().scale(), again.quantizer().scale());
  }

  @Test
  void errors() {
    fails(Status.ESHAPE, "reshape: 2x3 has 6 elements, 4x2 has 8", () -> matrix().reshape(4, 2));
    fails(NullPointerException.class, "inputs is null", () -> Op.cat(null, 0));
    fails(NullPointerException.class, "shape is null", () -> matrix().reshape((long[]) null));
    fails(NullPointerException.class, "path is null", () -> Tensor.load((String) null));
    fails(NullPointerException.class, "other is null", () -> new Observer("minmax").merge(null));
    fails(IllegalArgumentException.class, "path has a NUL character at 1", () -> Tensor.load("a\0b"));
    fails(Status.EIO, "qtensor_load: Bäume 🌲: No such file or directory", () -> Tensor.load("Bäume 🌲"));
    assertThrows(NullPointerException.class, () -> Tensor.create((DType) null, 1));
    for (Status status : Status.values()) {
      assertEquals("QTN_" + status, Lib.statusName(status));
    }
    for (DType dtype : DType.values()) {
      assertEquals(dtype.toString().toLowerCase(), Lib.dtypeName(dtype));
      assertEquals(dtype, DType.of(dtype.value()));
    }
    fails(IllegalArgumentException.class, "no DType has the number 8", () -> DType.of(8));
  }

  @Test
  void closedObjects() {
    Tensor t = matrix();
    Quantizer q = Quantizer.perTensor(DType.INT8, 1, 0);
    Observer o = new Observer("minmax");
    Config c = new Config("onnx");
    for (AutoCloseable object : List.of(t, q, o, c)) {
      for (int twice = 0; twice < 2; ++twice) {
        try {
          object.close();
        } catch (Exception e) {
          throw new AssertionError(e);
        }
      }
    }
    for (Executable call : List.<Executable>of(t::shape, t::buffer, t::toString, t::toFloatArray,
             ()
                 -> Op.relu(t),
             () -> Op.cat(new Tensor[] {matrix(), t}, 0), () -> t.copy(matrix()), () -> o.observe(t))) {
      assertTrue(List.of("Tensor is closed", "Observer is closed")
                     .contains(assertThrows(IllegalStateException.class, call).getMessage()));
    }
    fails(IllegalStateException.class, "Tensor is closed", () -> Op.relu(t));
    fails(IllegalStateException.class, "Quantizer is closed", q::scales);
    fails(IllegalStateException.class, "Quantizer is closed", () -> matrix().quantize(q));
    fails(IllegalStateException.class, "Observer is closed", o::quantizer);
    fails(IllegalStateException.class, "Config is closed", () -> c.set("op:Conv", Map.of("bins", 3)));
  }

  @Test
  void files(@TempDir Path folder) throws Exception {
    Path path = folder.resolve("Größe.safetensors");
    Tensor t = matrix().quantize(Quantizer.perTensor(DType.INT8, 0.5, 1));
    t.save(path);
    assertTrue(Files.exists(path));
    assertTrue(Tensor.load(path).equal(t));
    assertTrue(Tensor.load(path.toString()).equal(t));
    Tensor.saveAll(path.toString(), List.of("a", "ß"), new Tensor[] {t, matrix()});
    assertTrue(Tensor.load(path, "ß").equal(matrix()));
    assertTrue(Tensor.inspect(path.toString()).contains("\"ß\""));
    Path npy = folder.resolve("m.npy");
    matrix().saveNpy(npy);
    assertArrayEquals(new float[] {3, 4, 5}, Tensor.loadRows(npy.toString(), "", 1, 2).toFloatArray());
    assertTrue(Tensor.loadNpy(npy).equal(matrix()));
  }

  @Test
  void views() {
    Tensor t = matrix();
    t.select(0, 1).copy(Tensor.of(new float[] {7, 8, 9}));
    assertArrayEquals(new float[] {0, 1, 2, 7, 8, 9}, t.toFloatArray());
    assertArrayEquals(new float[] {0, 2, 7, 9}, t.slice(1, 0, 3, 2).toFloatArray());
    assertArrayEquals(new long[] {1, 3}, t.permute(1, 0).strides());
    assertTrue(t.toString().startsWith("tensor("), t.toString());
    assertEquals("[2, 3]", Arrays.toString(t.share().shape()));
  }
}
