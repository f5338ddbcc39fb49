// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.InteropServices;

namespace QTensor {

/// <summary>The elements of a tensor, in its memory and as long as that: a view keeps it, whatever becomes of the tensor.
/// </summary>
public sealed unsafe class TensorData<T> : IDisposable where T : struct {
  private readonly TensorMemory memory;
  private static readonly int Size = Buffer.ByteLength(new T[1]);

  internal TensorData(Tensor tensor) {
    if (tensor.IsQuantized)
      throw new InvalidOperationException("a tensor of quantized " + Lib.DtypeName(tensor.Dtype) +
                                          " is no array: ask IntRepr() or Dequantize()");
    if (tensor.Dtype != Elements.DtypeOf<T>())
      throw new InvalidOperationException("a tensor of " + Lib.DtypeName(tensor.Dtype) + " has no elements of type " + typeof(T));
    if (tensor.Numel > 0 && !IsContiguous(tensor.Shape, tensor.Strides))
      throw new InvalidOperationException("the tensor is not contiguous: ask Contiguous()");
    Length = tensor.Numel;
    memory = new TensorMemory(tensor.Share());
  }

  /// <summary>The number of elements.</summary>
  public long Length { get; }

  /// <summary>The address of the first element, for as long as the view is not disposed.</summary>
  public IntPtr Pointer {
    get {
      if (memory.IsClosed) throw new ObjectDisposedException(GetType().FullName);
      return memory.DangerousGetHandle();
    }
  }

  /// <summary>The elements as a span, which does not keep the memory: do not use it after the view.</summary>
  public Span<T> Span => new Span<T>((void *)Pointer, checked((int)Length));

  /// <summary>An element in row-major order.</summary>
  public T this[long index] {
    get => memory.Read<T>(OffsetOf(index));
    set => memory.Write(OffsetOf(index), value);
  }

  /// <summary>A copy of the elements.</summary>
  public T[] ToArray() {
    var array = new T[Length];
    Elements.Pin(array, data => Copy(Pointer, data));
    return array;
  }

  /// <summary>Writes the elements of an array of the same length.</summary>
  public void CopyFrom(T[] array) {
    if (array == null) throw new ArgumentNullException(nameof(array));
    if (array.Length != Length)
      throw new ArgumentException("the tensor has " + Length + " elements, the array " + array.Length, nameof(array));
    Elements.Pin(array, data => Copy(data, Pointer));
  }

  /// <summary>Lets go of the memory.</summary>
  public void Dispose() => memory.Dispose();

  private ulong OffsetOf(long index) {
    if (index < 0 || index >= Length)
      throw new IndexOutOfRangeException("index " + index + " is out of range for " + Length + " elements");
    return (ulong)(index * Size);
  }

  // Counts as a use of the memory, which nobody can free meanwhile.
  private void Copy(IntPtr from, IntPtr to) {
    bool added = false;
    try {
      memory.DangerousAddRef(ref added);
      Buffer.MemoryCopy((void *)from, (void *)to, Length * Size, Length * Size);
    } finally {
      if (added) memory.DangerousRelease();
    }
  }

  private static bool IsContiguous(long[] shape, long[] strides) {
    long expected = 1;
    for (int i = shape.Length - 1; i >= 0; --i) {
      if (shape[i] != 1 && strides[i] != expected) return false;
      expected *= shape[i];
    }
    return true;
  }

  /// <summary>Memory that a tensor of its own keeps.</summary>
  private sealed class TensorMemory : SafeBuffer {
    private readonly Tensor owner;

    internal TensorMemory(Tensor owner) : base(true) {
      this.owner = owner;
      SetHandle(owner.Pointer());
      Initialize((ulong)owner.Nbytes);
    }

    protected override bool ReleaseHandle() {
      owner.Dispose();
      return true;
    }
  }
}

}
