// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.lang.ref.Reference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.Consumer;

/** What Java adds to tensors: buffers and arrays, in and out. */
abstract class TensorBase extends NativeObject {
  TensorBase(long box) {
    super(box);
  }

  static Tensor[] tensors(long[] boxes) {
    Tensor[] tensors = new Tensor[boxes.length];
    for (int i = 0; i < boxes.length; ++i) {
      tensors[i] = boxes[i] == 0 ? null : new Tensor(boxes[i]);
    }
    return tensors;
  }

  // --- in

  /** Zeros. Without a shape it is a scalar. */
  public static Tensor create(DType dtype, long... shape) {
    return Tensor.make(dtype, shape, null, null);
  }

  /** Zeros on a grid. */
  public static Tensor create(Quantizer quantizer, long... shape) {
    return Tensor.make(quantizer.dtype(), shape, quantizer, null);
  }

  /**
   * A tensor of any type, from its bytes.
   *
   * @param quantizer of integers on a grid; else null
   * @param data the elements in row-major order and in the machine's byte order, two int4 to a byte; null for zeros
   */
  public static Tensor create(DType dtype, Quantizer quantizer, byte[] data, long... shape) {
    return Tensor.make(dtype, shape, quantizer, data);
  }

  /** A float32 tensor with a copy of an array. Without a shape it has one dimension. */
  public static Tensor of(float[] data, long... shape) {
    return filled(DType.FLOAT32, data.length, shape, memory -> memory.asFloatBuffer().put(data));
  }

  /** A float64 tensor with a copy of an array. Without a shape it has one dimension. */
  public static Tensor of(double[] data, long... shape) {
    return filled(DType.FLOAT64, data.length, shape, memory -> memory.asDoubleBuffer().put(data));
  }

  /** An int64 tensor with a copy of an array. Without a shape it has one dimension. */
  public static Tensor of(long[] data, long... shape) {
    return filled(DType.INT64, data.length, shape, memory -> memory.asLongBuffer().put(data));
  }

  /** An int32 tensor with a copy of an array. Without a shape it has one dimension. */
  public static Tensor of(int[] data, long... shape) {
    return filled(DType.INT32, data.length, shape, memory -> memory.asIntBuffer().put(data));
  }

  /** An int16 tensor with a copy of an array. Without a shape it has one dimension. */
  public static Tensor of(short[] data, long... shape) {
    return filled(DType.INT16, data.length, shape, memory -> memory.asShortBuffer().put(data));
  }

  /** An int8 tensor with a copy of an array. Without a shape it has one dimension. */
  public static Tensor of(byte[] data, long... shape) {
    return filled(DType.INT8, data.length, shape, memory -> memory.put(data));
  }

  private static Tensor filled(DType dtype, int length, long[] shape, Consumer<ByteBuffer> fill) {
    Tensor tensor = create(dtype, shape.length == 0 ? new long[] {length} : shape);
    if (tensor.numel() != length) {
      tensor.close();
      throw new IllegalArgumentException("data has " + length + " elements, not those of " + Arrays.toString(shape));
    }
    fill.accept(((TensorBase) tensor).bytes());
    Reference.reachabilityFence(tensor);
    return tensor;
  }

  /**
   * A tensor over the memory of a direct buffer, from its position to its limit. The tensor keeps the buffer; what one
   * side writes the other reads.
   *
   * @param buffer FloatBuffer: float32, DoubleBuffer: float64, LongBuffer: int64, IntBuffer: int32, ShortBuffer: int16,
   *     ByteBuffer: int8. Direct, in native byte order, and not read-only
   */
  public static Tensor wrap(Buffer buffer, long... shape) {
    return wrap(buffer, dtypeOf(buffer), shape);
  }

  /** The same for elements of a type that the buffer does not tell: uint8 in a ByteBuffer. */
  public static Tensor wrap(Buffer buffer, DType dtype, long... shape) {
    return wrap(buffer, Objects.requireNonNull(dtype, "dtype is null"), null, shape);
  }

  /** The same for integers on a grid. */
  public static Tensor wrap(Buffer buffer, Quantizer quantizer, long... shape) {
    return wrap(buffer, quantizer.dtype(), quantizer, shape);
  }

  private static Tensor wrap(Buffer buffer, DType dtype, Quantizer quantizer, long... shape) {
    int size = sizeOf(dtypeOf(buffer));
    if (!buffer.isDirect()) {
      throw new IllegalArgumentException(
          "buffer is on the heap: ByteBuffer.allocateDirect makes one that can be shared, Tensor.of copies an array");
    }
    if (buffer.isReadOnly()) {
      throw new IllegalArgumentException("buffer is read-only: tensors share what can be written");
    }
    if (sizeOf(dtype) > 1 && orderOf(buffer) != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException("buffer is " + orderOf(buffer)
          + ": call order(ByteOrder.nativeOrder()) on the ByteBuffer before it is filled");
    }
    return Tensor.over(
        dtype, shape, quantizer, buffer, (long) buffer.position() * size, (long) buffer.remaining() * size);
  }

  private static DType dtypeOf(Buffer buffer) {
    if (buffer instanceof FloatBuffer) {
      return DType.FLOAT32;
    } else if (buffer instanceof ByteBuffer) {
      return DType.INT8;
    } else if (buffer instanceof LongBuffer) {
      return DType.INT64;
    } else if (buffer instanceof IntBuffer) {
      return DType.INT32;
    } else if (buffer instanceof DoubleBuffer) {
      return DType.FLOAT64;
    } else if (buffer instanceof ShortBuffer) {
      return DType.INT16;
    }
    throw new IllegalArgumentException(
        "buffer is " + (buffer == null ? "null" : "a " + buffer.getClass().getSimpleName() + ": use a ByteBuffer"));
  }

  private static ByteOrder orderOf(Buffer buffer) {
    if (buffer instanceof FloatBuffer floats) {
      return floats.order();
    } else if (buffer instanceof LongBuffer longs) {
      return longs.order();
    } else if (buffer instanceof IntBuffer ints) {
      return ints.order();
    } else if (buffer instanceof DoubleBuffer doubles) {
      return doubles.order();
    } else if (buffer instanceof ShortBuffer shorts) {
      return shorts.order();
    }
    return ((ByteBuffer) buffer).order();
  }

  /** Bytes of an element; 1 for packed types, which have less. */
  private static int sizeOf(DType dtype) {
    return switch (dtype) {
      case FLOAT64, INT64, UINT64 -> 8;
      case FLOAT32, INT32, UINT32 -> 4;
      case FLOAT16, BFLOAT16, INT16, UINT16 -> 2;
      default -> 1;
    };
  }

  // --- out

  /**
   * The memory of a contiguous tensor, in native byte order: what one side writes the other reads. It stays as long as
   * the buffer or a view of it, whatever becomes of the tensor. For a quantized tensor these are the integers.
   */
  public final ByteBuffer buffer() {
    if (self().nbytes() > Integer.MAX_VALUE) {
      throw new IllegalStateException(
          "a tensor of " + self().nbytes() + " bytes is too large for a buffer: take slices");
    }
    if (isPacked() || !isContiguous()) {
      throw new IllegalStateException("the elements of " + Arrays.toString(self().shape()) + " " + self().dtype()
          + " do not lie one after the other: ask contiguous(), or toByteArray() of packed types");
    }
    Tensor owner = self().share();
    ByteBuffer buffer = ((TensorBase) owner).bytes();
    CLEANER.register(buffer, owner::close);
    return buffer;
  }

  /** {@link #buffer()} of a float32 tensor. */
  public final FloatBuffer floatBuffer() {
    return of(DType.FLOAT32, "floatBuffer").asFloatBuffer();
  }

  /** {@link #buffer()} of a float64 tensor. */
  public final DoubleBuffer doubleBuffer() {
    return of(DType.FLOAT64, "doubleBuffer").asDoubleBuffer();
  }

  /** {@link #buffer()} of an int64 tensor. */
  public final LongBuffer longBuffer() {
    return of(DType.INT64, "longBuffer").asLongBuffer();
  }

  /** {@link #buffer()} of an int32 tensor. */
  public final IntBuffer intBuffer() {
    return of(DType.INT32, "intBuffer").asIntBuffer();
  }

  /** {@link #buffer()} of an int16 tensor. */
  public final ShortBuffer shortBuffer() {
    return of(DType.INT16, "shortBuffer").asShortBuffer();
  }

  private ByteBuffer of(DType wanted, String method) {
    need(wanted, method);
    return buffer();
  }

  /** A copy of the elements of a float32 tensor, in row-major order. */
  public final float[] toFloatArray() {
    float[] array = new float[length(DType.FLOAT32, "toFloatArray")];
    copyTo(memory -> memory.asFloatBuffer().get(array));
    return array;
  }

  /** A copy of the elements of a float64 tensor, in row-major order. */
  public final double[] toDoubleArray() {
    double[] array = new double[length(DType.FLOAT64, "toDoubleArray")];
    copyTo(memory -> memory.asDoubleBuffer().get(array));
    return array;
  }

  /** A copy of the elements of an int64 tensor, in row-major order. */
  public final long[] toLongArray() {
    long[] array = new long[length(DType.INT64, "toLongArray")];
    copyTo(memory -> memory.asLongBuffer().get(array));
    return array;
  }

  /** A copy of the elements of an int32 tensor, in row-major order. */
  public final int[] toIntArray() {
    int[] array = new int[length(DType.INT32, "toIntArray")];
    copyTo(memory -> memory.asIntBuffer().get(array));
    return array;
  }

  /** A copy of the elements in row-major order, of every type: integers where quantized, two int4 to a byte. */
  public final byte[] toByteArray() {
    byte[] array = new byte[Math.toIntExact(self().nbytes())];
    copyTo(memory -> memory.get(array));
    return array;
  }

  private void copyTo(Consumer<ByteBuffer> copy) {
    try (Tensor dense = self().contiguous()) {
      copy.accept(((TensorBase) dense).bytes());
    }
  }

  private int length(DType wanted, String method) {
    need(wanted, method);
    return Math.toIntExact(self().numel());
  }

  private void need(DType wanted, String method) {
    if (self().dtype() != wanted) {
      throw new QTensorException(
          Status.EDTYPE, method + ": the tensor has elements of " + self().dtype() + ", not " + wanted);
    }
  }

  /** The memory, for as long as this tensor is held. */
  private ByteBuffer bytes() {
    return ((ByteBuffer) self().memory()).order(ByteOrder.nativeOrder());
  }

  private boolean isPacked() {
    DType dtype = self().dtype();
    return dtype == DType.INT4 || dtype == DType.UINT4 || dtype == DType.INT2 || dtype == DType.UINT2;
  }

  private boolean isContiguous() {
    long[] shape = self().shape();
    long[] strides = self().strides();
    long dense = 1;
    for (int i = shape.length - 1; i >= 0; --i) {
      if (shape[i] != 1 && strides[i] != dense) {
        return false;
      }
      dense *= Math.max(shape[i], 1);
    }
    return true;
  }

  // --- the rest

  /** Whether the elements are integers on a grid. */
  public final boolean isQuantized() {
    return self().quantizer() != null;
  }

  /** The same elements under another shape; -1 is what remains. A view where strides allow it. */
  public final Tensor reshape(long... shape) {
    return self().reshaped(shape);
  }

  /** A view with the axes in another order. */
  public final Tensor permute(long... axes) {
    return self().permuted(axes);
  }

  /** Reads a .safetensors file with one tensor. */
  public static Tensor load(Path path) {
    return Tensor.load(path.toString());
  }

  /** Reads one tensor of a .safetensors file. */
  public static Tensor load(Path path, String name) {
    return Tensor.loadNamed(path.toString(), name);
  }

  /** Reads a .npy file. */
  public static Tensor loadNpy(Path path) {
    return Tensor.loadNpy(path.toString());
  }

  /** Writes a .safetensors file, which keeps the quantizer. */
  public final void save(Path path) {
    self().save(path.toString());
  }

  /** Writes a .npy file. */
  public final void saveNpy(Path path) {
    self().saveNpy(path.toString());
  }

  /** Elements, shape and grid, as PyTorch prints them. */
  @Override
  public final String toString() {
    return self().describe();
  }

  private Tensor self() {
    return (Tensor) this;
  }
}
