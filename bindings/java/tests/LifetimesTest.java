// SPDX-License-Identifier: Apache-2.0

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.qtensor.Config;
import org.qtensor.DType;
import org.qtensor.Model;
import org.qtensor.Observer;
import org.qtensor.Op;
import org.qtensor.Quantizer;
import org.qtensor.Samples;
import org.qtensor.Session;
import org.qtensor.Tensor;

/** Memory stays flat, whatever is made, thrown away, or fails; and what is held stays. */
class LifetimesTest {
  private static final long MEGABYTE = 1 << 20;

  /** Collects, and waits until the Cleaner, whose queue is last in first out, has nothing left to do. */
  static void collect() throws InterruptedException {
    for (int i = 0; i < 2; ++i) {
      WeakReference<ByteBuffer> last = new WeakReference<>(ByteBuffer.allocateDirect(8));
      Tensor.wrap(last.get(), 8);
      for (int tries = 0; last.get() != null; ++tries) { // the tensor keeps it until it goes
        assertTrue(tries < 200, "a tensor that was dropped keeps its buffer");
        System.gc();
        Thread.sleep(10);
      }
      for (int idle = 0; idle < 5; idle = cleanersWait() ? idle + 1 : 0) {
        Thread.sleep(5);
      }
    }
  }

  private static boolean cleanersWait() {
    return Thread.getAllStackTraces().keySet().stream().noneMatch(
        thread -> thread.getName().startsWith("Cleaner") && thread.getState() == Thread.State.RUNNABLE);
  }

  static long resident() throws Exception {
    collect();
    return Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]) * 4096;
  }

  /** What leaks grows in every round; what the JVM takes for itself does not. */
  static void flat(int count, Executable call) throws Throwable {
    long least = Long.MAX_VALUE;
    for (int round = 0; round < 4 && least > 4 * MEGABYTE; ++round) {
      long before = resident();
      for (int i = 1; i <= count; ++i) {
        call.execute();
        if (i % 10_000 == 0) { // a Cleaner that has fallen behind would show as growth
          collect();
        }
      }
      least = Math.min(least, resident() - before);
    }
    assertTrue(least < 4 * MEGABYTE, "at least " + least + " bytes after " + count + " calls");
  }

  @Test
  void closedObjects() throws Throwable {
    Quantizer q = Quantizer.perTensor(DType.INT8, 0.1, 0);
    flat(50_000, () -> {
      try (Tensor t = Tensor.create(DType.FLOAT32, 100); Tensor u = t.quantize(q); Tensor v = u.intRepr()) {
        assertEquals(100, v.numel());
      }
    });
  }

  @Test
  void droppedObjects() throws Throwable {
    Quantizer q = Quantizer.perTensor(DType.INT8, 0.1, 0);
    flat(50_000, () -> Tensor.create(DType.FLOAT32, 100).quantize(q).quantizer().scales());
  }

  @Test
  void droppedBuffers() throws Throwable {
    ByteBuffer memory = ByteBuffer.allocateDirect(400).order(ByteOrder.nativeOrder());
    flat(50_000, () -> {
      Tensor.wrap(memory.asFloatBuffer(), 100).floatBuffer();
      Tensor.create(DType.FLOAT32, 100).buffer();
    });
  }

  @Test
  void failingCalls() throws Throwable {
    Tensor t = Tensor.create(DType.FLOAT32, 4, 4);
    List<Executable> calls = List.of(()
                                         -> t.reshape(5),
        ()
            -> Op.cat(new Tensor[] {t, null, null}, 0),
        ()
            -> Model.load("nowhere"),
        ()
            -> new Observer("minmax", Map.of("bins", new Object())),
        () -> Tensor.create(DType.INT8, null, new byte[1000], 3), () -> new Config("nonsense"));
    flat(10_000, () -> {
      for (Executable call : calls) {
        assertThrows(RuntimeException.class, call);
      }
    });
  }

  @Test
  void modelsAndCallbacks() throws Throwable {
    Model model = Data.digits();
    Samples samples = Samples.rows(Data.IMAGES.slice(0, 0, 4));
    Config config = new Config("onnx");
    flat(200, () -> {
      new Session(model.quantize(samples, config, null, (stage, done, total) -> true)).run(Data.IMAGES);
      assertThrows(ArithmeticException.class,
          () -> model.quantize(samples, config, null, (stage, done, total) -> 1 / (done - done) > 0));
    });
  }

  @Test
  void aTensorKeepsItsBuffer() throws Exception {
    FloatBuffer buffer = ByteBuffer.allocateDirect(4 * 100_000).order(ByteOrder.nativeOrder()).asFloatBuffer();
    WeakReference<FloatBuffer> seen = new WeakReference<>(buffer);
    Tensor t = Tensor.wrap(buffer.put(7, 42), 100_000);
    buffer = null;
    collect();
    assertEquals(42, t.select(0, 7).item());
    Tensor view = t.slice(0, 7, 8);
    t.close();
    collect();
    assertEquals(42, view.item());
    view.close();
    collect();
    assertEquals(null, seen.get());
  }

  @Test
  void aBufferKeepsItsTensor() throws Exception {
    FloatBuffer view = Tensor.of(filled(100_000)).floatBuffer().slice(10, 5);
    for (int i = 0; i < 3; ++i) {
      collect();
      Tensor.create(DType.FLOAT32, 100_000); // which would take its memory
      assertEquals(42, view.get(4));
    }
  }

  static float[] filled(int count) {
    float[] values = new float[count];
    Arrays.fill(values, 42);
    return values;
  }

  @Test
  void objectsGoInAnyOrder() throws Exception {
    for (int order = 0; order < 24; ++order) {
      Model model = Data.digits();
      Session session = new Session(model);
      Tensor[] out = session.run(Data.IMAGES);
      Quantizer q = out[0].quantize(Quantizer.perTensor(DType.INT8, 1, 0)).quantizer();
      AutoCloseable[] objects = {model, session, out[0], q};
      for (int left = 4, rest = order; left > 0; rest /= left, --left) {
        int which = rest % left;
        objects[which].close();
        objects[which] = objects[left - 1];
      }
    }
  }
}
