// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace QTensor {

[UnmanagedFunctionPointer(CallingConvention.Cdecl)]
internal delegate void DeleterFunction(IntPtr data, IntPtr ctx);

/// <summary>An n-dimensional array with an element type and, where it is quantized, a Quantizer.</summary>
public sealed unsafe partial class Tensor {
  // The library calls these for as long as it has a tensor over memory of C#, on any thread.
  private static readonly DeleterFunction Unpin = (data, ctx) => GCHandle.FromIntPtr(ctx).Free();
  private static readonly DeleterFunction Release = (data, ctx) => {
    GCHandle handle = GCHandle.FromIntPtr(ctx);
    var release = (Action)handle.Target;
    handle.Free();
    try {
      release();
    } catch (Exception) {  // nobody is there to catch it
    }
  };

  /// <summary>Zeros.</summary>
  public static Tensor Zeros(DType dtype, params long[] shape) => Create(dtype, shape);

  /// <summary>A tensor over the memory of an array, which is pinned until the last tensor over it is gone. Without a shape
  /// it has one dimension.</summary>
  public static Tensor Wrap<T>(T[] array, params long[] shape) where T : struct {
    DType dtype = Elements.DtypeOf<T>();
    if (array == null) throw new ArgumentNullException(nameof(array));
    if (array is bool[]) throw new ArgumentException("memory of bool[] cannot be pinned: Tensor.Of copies it", nameof(array));
    GCHandle pin = GCHandle.Alloc(array, GCHandleType.Pinned);
    try {
      return Wrap(dtype, ShapeOf(array, shape), pin.AddrOfPinnedObject(), Elements.BytesOf(array), Unpin,
                  GCHandle.ToIntPtr(pin), null);
    } catch {
      pin.Free();
      throw;
    }
  }

  /// <summary>A tensor over memory that C# does not manage. `release`, where there is one, is called once, on any thread,
  /// when the last tensor over it is gone; what it throws is lost.</summary>
  public static Tensor Wrap(DType dtype, IntPtr data, long nbytes, Action release, Quantizer quantizer, params long[] shape) {
    if (release == null) return Wrap(dtype, shape, data, nbytes, null, IntPtr.Zero, quantizer);
    GCHandle handle = GCHandle.Alloc(release);
    try {
      return Wrap(dtype, shape, data, nbytes, Release, GCHandle.ToIntPtr(handle), quantizer);
    } catch {
      handle.Free();
      throw;
    }
  }

  /// <summary>A tensor with a copy of an array. Without a shape it has one dimension.</summary>
  public static Tensor Of<T>(T[] array, params long[] shape) where T : struct {
    DType dtype = Elements.DtypeOf<T>();
    if (array == null) throw new ArgumentNullException(nameof(array));
    Tensor tensor = null;
    Elements.Pin(array, data => tensor = Of(dtype, ShapeOf(array, shape), data, Elements.BytesOf(array)));
    return tensor;
  }

  /// <summary>The elements of a contiguous tensor, in its memory, which the view keeps. A quantized tensor has none: ask
  /// IntRepr() or Dequantize().</summary>
  public TensorData<T> Data<T>() where T : struct => new TensorData<T>(this);

  /// <summary>A copy of the elements, in row-major order.</summary>
  public T[] ToArray<T>() where T : struct {
    using (Tensor contiguous = Contiguous())
    using (var data = new TensorData<T>(contiguous)) return data.ToArray();
  }

  /// <summary>The bytes of the elements in row-major order, of every type: integers where quantized, two Int4 to a byte.
  /// </summary>
  public byte[] ToBytes() {
    using (Tensor contiguous = Contiguous()) {
      var bytes = new byte[contiguous.Nbytes];
      if (bytes.Length > 0) Marshal.Copy(contiguous.Pointer(), bytes, 0, bytes.Length);
      return bytes;
    }
  }

  /// <summary>The text of Describe().</summary>
  public override string ToString() => Describe();

  private static long[] ShapeOf(Array array, long[] shape) =>
      shape == null || shape.Length == 0 ? new long[] { array.Length } : shape;
}

/// <summary>Types of C# that tensors have elements of.</summary>
internal static unsafe class Elements {
  private static readonly Dictionary<Type, DType> Types = new Dictionary<Type, DType> {
    { typeof(float), DType.Float32 }, { typeof(double), DType.Float64 }, { typeof(byte), DType.UInt8 },
    { typeof(sbyte), DType.Int8 },    { typeof(ushort), DType.UInt16 },  { typeof(short), DType.Int16 },
    { typeof(int), DType.Int32 },     { typeof(long), DType.Int64 },     { typeof(bool), DType.Bool },
    { typeof(uint), DType.UInt32 },   { typeof(ulong), DType.UInt64 },
  };

  internal static DType DtypeOf<T>() {
    if (Types.TryGetValue(typeof(T), out DType dtype)) return dtype;
    throw new ArgumentException("tensors have no elements of type " + typeof(T));
  }

  /// <summary>Of arrays beyond 2 GB, too, which Buffer.ByteLength cannot count.</summary>
  internal static long BytesOf<T>(T[] array) => array.LongLength * Buffer.ByteLength(new T[1]);

  /// <summary>Shows the memory of an array for the time of a call. A GCHandle does not pin bool[] on every runtime.</summary>
  internal static void Pin(Array array, Action<IntPtr> use) {
    if (array is bool[] bools) {
      fixed (bool *data = bools) use((IntPtr)data);
      return;
    }
    GCHandle pin = GCHandle.Alloc(array, GCHandleType.Pinned);
    try {
      use(pin.AddrOfPinnedObject());
    } finally {
      pin.Free();
    }
  }
}

}
