// SPDX-License-Identifier: Apache-2.0
// Tensors, grids, memory that is shared, values and errors.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using QTensor;

internal sealed class TensorTest {
  private static float[] Matrix() => new float[] { 0, 1, 2, 3, 4, 5 };
  private static Tensor Ramp() => Tensor.Of(Matrix(), 2, 3);
  private static Quantizer Int8(double scale) => Quantizer.PerTensor(DType.Int8, scale, 0);

  // --- memory

  [Test]
  private void Hundred_megabytes_in_and_out_are_the_same_memory() {
    var array = new float[25 << 20];
    array[7] = 3;
    using (Tensor tensor = Tensor.Wrap(array, 25, 1 << 20))
    using (TensorData<float> data = tensor.Data<float>()) {
      GCHandle pin = GCHandle.Alloc(array, GCHandleType.Pinned);
      Check.Equal(pin.AddrOfPinnedObject(), data.Pointer);
      pin.Free();
      Check.Equal(3f, data[7]);
      data[8] = 4;
      Check.Equal(4f, array[8]);
      Span<float> span = data.Span;
      span[9] = 5;
      Check.Equal(5f, array[9]);
      Check.Equal(array.LongLength, data.Length);
    }
  }

  [Test]
  private void Every_type_of_elements() {
    RoundTrip(DType.Float32, 1.5f, -2f);
    RoundTrip(DType.Float64, 1.5, double.NaN);
    RoundTrip<byte>(DType.UInt8, 1, 255);
    RoundTrip<sbyte>(DType.Int8, 1, -128);
    RoundTrip<ushort>(DType.UInt16, 1, 65535);
    RoundTrip<short>(DType.Int16, 1, -32768);
    RoundTrip(DType.Int32, 1, int.MinValue);
    RoundTrip(DType.Int64, 1, long.MinValue);
    RoundTrip<uint>(DType.UInt32, 1, uint.MaxValue);
    RoundTrip<ulong>(DType.UInt64, 1, ulong.MaxValue);
    RoundTrip(DType.Bool, true, false);
    Check.Throws<ArgumentException>(() => Tensor.Of(new[] { 'a' }), "no elements of type System.Char");
    Check.Throws<ArgumentException>(() => Tensor.Wrap(new[] { true }), "bool[] cannot be pinned");
  }

  private static void RoundTrip<T>(DType dtype, params T[] values) where T : struct {
    using (Tensor tensor = Tensor.Of(values)) {
      Check.Equal(dtype, tensor.Dtype);
      Check.Equal(new long[] { 2 }, tensor.Shape);
      Check.Equal(values, tensor.ToArray<T>());
      using (TensorData<T> data = tensor.Data<T>()) {
        Check.Equal(values[1], data[1]);
        data.CopyFrom(values.Reverse().ToArray());
        Check.Equal(values[0], data[1]);
        Check.Equal(values[1], data.Span[0]);
        Check.Throws<ArgumentException>(() => data.CopyFrom(new T[3]), "the tensor has 2 elements, the array 3");
        Check.Throws<IndexOutOfRangeException>(() => data[2].ToString(), "index 2 is out of range for 2 elements");
        Check.Throws<IndexOutOfRangeException>(() => data[-1] = values[0], "index -1 is out of range for 2 elements");
      }
    }
    Check.Equal(new T[0], Tensor.Of(new T[0], 0, 3).ToArray<T>());
  }

  [Test]
  private void Views_of_memory_outlive_the_tensor() {
    TensorData<float> data = Tensor.Wrap(Matrix(), 2, 3).Data<float>();
    Collect();
    Check.Equal(Matrix(), data.ToArray());
    Tensor tensor = Ramp();
    using (TensorData<float> shown = tensor.Data<float>()) {
      tensor.Dispose();
      Check.Equal(5f, shown[5]);
      shown.Dispose();
      Check.Throws<ObjectDisposedException>(() => shown[0].ToString());
      Check.Throws<ObjectDisposedException>(() => shown.ToArray());
      Check.Throws<ObjectDisposedException>(() => shown.Pointer.ToString());
      Check.Throws<ObjectDisposedException>(() => shown.Span.ToString());
    }
  }

  [Test]
  private void Arrays_are_pinned_as_long_as_there_are_tensors_over_them() {
    WeakReference array = null, other = null, release = null;
    Tensor view = null;
    Action make = () => {
      var values = Matrix();
      array = new WeakReference(values);
      using (Tensor tensor = Tensor.Wrap(values, 2, 3)) view = tensor.Select(0, 1);
      values = Matrix();
      other = new WeakReference(values);
      Check.Throws(Status.EINVAL, "nbytes", () => Tensor.Wrap(values, 7));
      Action action = () => values.ToString();
      release = new WeakReference(action);
      Check.Throws(Status.EINVAL, "NULL", () => Tensor.Wrap(DType.Float32, IntPtr.Zero, 24, action, null, 6));
    };
    Deeper(make, 50);
    Collect();
    Check.True(array.IsAlive, "the array is gone");
    Check.True(!other.IsAlive && !release.IsAlive, "what could not be wrapped stays");
    Check.Equal(new float[] { 3, 4, 5 }, view.ToArray<float>());
    view.Dispose();
    Collect();
    Check.True(!array.IsAlive, "the array is still there");
  }

  [Test]
  private void Memory_of_others_is_given_back_once() {
    IntPtr memory = Marshal.AllocHGlobal(8);
    Marshal.Copy(new[] { 1.5f, 2 }, 0, memory, 2);
    int released = 0;
    Tensor tensor = Tensor.Wrap(DType.Float32, memory, 8, () => ++released, null, 2);
    Tensor shared = tensor.Share();
    tensor.Dispose();
    Check.Equal(0, released);
    Check.Equal(new[] { 1.5f, 2 }, shared.ToArray<float>());
    using (shared.Data<float>()) {
      shared.Dispose();
      Check.Equal(0, released);
    }
    Check.Equal(1, released);
    Tensor.Wrap(DType.Float32, memory, 8, () => throw new Exception("of a release"), null, 2).Dispose();
    using (Tensor plain = Tensor.Wrap(DType.Int8, memory, 8, null, Int8(0.5), 8)) Check.True(plain.IsQuantized, "has no grid");
    Check.Throws(Status.EINVAL, "nbytes", () => Tensor.Wrap(DType.Float32, memory, 4, () => ++released, null, 2));
    Check.Equal(1, released);
    Marshal.FreeHGlobal(memory);
  }

  [Test]
  private void What_is_no_array_says_so() {
    using (Tensor tensor = Ramp())
    using (Tensor quantized = tensor.Quantize(Int8(0.5))) {
      Check.Throws<InvalidOperationException>(() => quantized.Data<sbyte>(), "a tensor of quantized int8 is no array: ask IntRepr()");
      Check.Throws<InvalidOperationException>(() => tensor.Data<int>(), "a tensor of float32 has no elements of type System.Int32");
      Check.Throws<InvalidOperationException>(() => tensor.Permute(1, 0).Data<float>(), "not contiguous: ask Contiguous()");
      Check.Equal(new float[] { 0, 3, 1, 4, 2, 5 }, tensor.Permute(1, 0).ToArray<float>());
      Check.Equal(new sbyte[] { 0, 2, 4, 6, 8, 10 }, quantized.IntRepr().ToArray<sbyte>());
      Check.Equal(new byte[] { 0, 2, 4, 6, 8, 10 }, quantized.ToBytes());
    }
  }

  [Test]
  private void DLPack_goes_out_and_comes_in() {
    using (Tensor tensor = Ramp()) {
      using (Tensor back = Tensor.FromDLPack(tensor.ToDLPack())) {
        Check.Equal(tensor.Data<float>().Pointer, back.Data<float>().Pointer);
        Check.Equal(tensor.Shape, back.Shape);
      }
      using (Tensor back = Tensor.FromDLPackVersioned(tensor.ToDLPackVersioned())) Check.True(back.Equal(tensor), "is another");
    }
  }

  // --- values

  [Test]
  private void Accessors() {
    using (Tensor tensor = Ramp()) {
      Check.Equal("6 2 24", tensor.Numel + " " + tensor.Rank + " " + tensor.Nbytes);
      Check.Equal(new long[] { 2, 3 }, tensor.Shape);
      Check.Equal(new long[] { 3, 1 }, tensor.Strides);
      Check.True(tensor.Quantizer == null && !tensor.IsQuantized, "has a grid");
      Check.Equal(new long[] { 3, 2 }, tensor.Reshape(3, 2).Shape);
      Check.Equal(0, Tensor.Of(new[] { 1f }).Reshape().Rank);
      Check.Equal(4.0, tensor.Select(0, 1).Select(0, 1).Item());
      Check.Equal(new float[] { 1, 4 }, tensor.Slice(1, 1, 2).ToArray<float>());
      Check.Equal(new float[] { 0, 2, 3, 5 }, tensor.Slice(1, 0, 3, 2).ToArray<float>());
      Check.True(tensor.Equal(tensor.Share()) && !tensor.Equal(tensor.Permute(1, 0)), "Equal");
      Check.Equal(new double[6], Tensor.Zeros(DType.Float64, 2, 3).ToArray<double>());
    }
  }

  [Test]
  private void Text() {
    using (Quantizer grid = Quantizer.PerTensor(DType.Int8, 0.1, 10))
    using (Tensor tensor = Tensor.Create(DType.Int8, new long[] { 2 }, grid, new byte[] { 0, 127 })) {
      Check.Equal("tensor([-1.0000, 11.7000], size=(2,), dtype=qint8,\n" +
                  "       quantization_scheme=per_tensor_affine, scale=0.1, zero_point=10)", tensor.ToString());
      Check.Equal("Quantizer(Int8, PerTensorAffine, scale=0.1, zero_point=10, numerics=fbgemm)", tensor.Quantizer.ToString());
    }
  }

  [Test]
  private void Enumerations_have_the_names_and_numbers_of_C() {
    foreach (DType dtype in Enum.GetValues(typeof(DType)))
      Check.Equal(Lib.DtypeName(dtype).Replace("_", ""), dtype.ToString().ToLowerInvariant());
    foreach (Status status in Enum.GetValues(typeof(Status))) Check.Equal("QTN_" + status, Lib.StatusName(status));
    Check.True(typeof(DType).GetEnumNames().All(name => name != name.ToUpperInvariant()), "a name is still that of C");
    Check.Equal("2 26 1 10", (int)DType.UInt8 + " " + (int)DType.Int2 + " " + (int)Mode.Qat + " " + (int)Status.ECANCELED);
    Check.Equal("0, 1, 2, 3, 4, 5, 6", string.Join(", ", Enum.GetValues(typeof(Scheme)).Cast<int>()));
    Check.Equal("PerChannelSymmetric", ((Scheme)3).ToString());
    Check.Equal("0.1.0", Lib.Version());
  }

  [Test]
  private void Quantizers() {
    using (var grid = new Quantizer(DType.Int8, Scheme.PerChannelSymmetric, -1, new[] { 0.5, 0.25, 1 })) {
      Check.Equal(new[] { 0.5, 0.25, 1 }, grid.Scales);
      Check.Equal(new long[3], grid.ZeroPoints);
      Check.Equal("3 -1 -128 127 0 fbgemm", grid.Count + " " + grid.Axis + " " + grid.QuantMin + " " + grid.QuantMax + " " +
                                            grid.BlockSize + " " + grid.Numerics);
      using (Tensor tensor = Ramp().Quantize(grid)) Check.Equal(1, tensor.Quantizer.Axis);
    }
    using (var named = new Quantizer(dtype: DType.Int8, scheme: Scheme.PerTensorAffine, axis: 0, scales: new[] { 0.5 }, zeroPoints: new long[] { 3 }))
      Check.Equal(3L, named.ZeroPoints[0]);
    using (Quantizer chosen = Quantizer.Choose(DType.UInt8, Scheme.PerTensorAffine, 0, new double[] { -1 }, new double[] { 3 },
                                               new Attrs { { "numerics", "onnx" } }))
      Check.Equal("onnx 64", chosen.Numerics + " " + chosen.ZeroPoints[0]);
  }

  [Test]
  private void Names_and_paths_in_every_script() {
    string folder = Path.Combine(Path.GetTempPath(), "qtensor-größe-量子化-" + Guid.NewGuid());
    Directory.CreateDirectory(folder);
    try {
      string path = Path.Combine(folder, "ä漢字.safetensors");
      Tensor.SaveAll(path, new[] { "höhe", "高さ" }, new[] { Ramp(), Tensor.Of(new long[] { 1 }) });
      Check.True(File.Exists(path), "there is no " + path);
      Check.Equal(1.0, Tensor.LoadNamed(path, "高さ").Item());
      Check.Contains("höhe", Tensor.Inspect(path));
      Check.Throws(Status.EINVAL, "長さ", () => Tensor.LoadNamed(path, "長さ"));
      Ramp().SaveNpy(Path.Combine(folder, "ö.npy"));
      Check.True(Ramp().Equal(Tensor.LoadNpy(Path.Combine(folder, "ö.npy"))), "is another");
      Check.Throws(Status.EIO, folder, () => Tensor.Load(Path.Combine(folder, "nichts")));
    } finally {
      Directory.Delete(folder, true);
    }
    Check.Throws<ArgumentException>(() => Tensor.Load("a\0b"), "holds the character 0");
    Check.Throws<ArgumentException>(() => Tensor.Load("\ud800"));
  }

  // --- options

  [Test]
  private void Attributes_of_every_kind() {
    foreach (object bins in new object[] { 64, 64L, (short)64, (byte)64, 64u, (sbyte)64, (ushort)64 })
      using (var observer = new Observer("percentile", new Attrs { { "dtype", "int8" }, { "percentile", 99f }, { "bins", bins },
                                                                    { "reduce_range", true } })) {
        observer.Observe(Ramp());
        Check.Equal(DType.Int8, observer.Quantizer().Dtype);
      }
    using (Tensor picture = Tensor.Zeros(DType.Float32, 1, 1, 4, 4)) {
      var window = new Dictionary<string, object> { { "kernel_shape", new[] { 2, 2 } }, { "strides", new List<long> { 2, 2 } } };
      Check.Equal(new long[] { 1, 1, 2, 2 }, Op.MaxPool2d(picture, window).Shape);
      Check.Equal(new long[] { 1, 1, 2, 2 }, Op.Run("MaxPool", new[] { picture }, window)[0].Shape);
    }
    using (Tensor scaled = Op.Run("Resize", new[] { Tensor.Zeros(DType.Float32, 1, 1, 2, 2), null, Tensor.Of(new[] { 1f, 1, 2, 2 }) })[0])
      Check.Equal(new long[] { 1, 1, 4, 4 }, scaled.Shape);
    foreach (object bad in new object[] { null, new object(), 'a', new[] { "a" }, new object[] { 1, "a" }, 1m, ulong.MaxValue })
      Check.Throws<ArgumentException>(() => new Observer("minmax", new Attrs { { "bins", bad } }), "attribute \"bins\" is ");
    Check.Throws(Status.EINVAL, "key", () => new Observer("minmax", new Attrs { { "", 3 } }));
    Check.Throws(Status.EINVAL, "\"bin\"", () => new Observer("minmax", new Attrs { { "bin", 3 } }));
    Check.Throws(Status.EINVAL, "\"bins\"", () => new Observer("minmax", new Attrs { { "bins", new[] { 1, 2.5 } } }));
  }

  // --- errors

  [Test]
  private void Exceptions_have_the_status_and_the_message_of_the_library() {
    Tensor tensor = Ramp();
    Check.Throws(Status.ESHAPE, "reshape: 2x3 has 6 elements, 4x2 has 8", () => tensor.Reshape(4, 2));
    Check.Throws(Status.EDTYPE, "", () => tensor.Dequantize());
    Check.Throws(Status.EIO, "nowhere: No such file or directory", () => Tensor.Load("nowhere"));
    Check.Throws(Status.EFORMAT, "", () => Model.Load(new byte[] { 1, 2, 3 }));
    Check.Throws(Status.EINVAL, "", () => Quantizer.PerTensor(DType.Int8, -1, 0));
    Check.Throws(Status.EUNSUPPORTED, "Foo", () => Op.Run("Foo", new[] { tensor }));
    Check.Throws(Status.ENOMEM, "", () => Tensor.Zeros(DType.Int8, 1L << 60));
    Check.Throws(Status.EINVAL, "qtensor_create: dtype 99 is unknown", () => Tensor.Zeros((DType)99, 1));
    Check.Throws(Status.EINVAL, "qop_relu: x is NULL", () => Op.Relu(null));
    Check.Throws(Status.EINVAL, "quantizer is NULL", () => tensor.Quantize(null));
    Check.Throws(Status.EINVAL, "2 scales, but 1 zero points",
                 () => new Quantizer(DType.Int8, Scheme.PerChannelAffine, 0, new double[] { 1, 2 }, new long[] { 0 }));
    Check.Throws<ArgumentNullException>(() => tensor.Reshape(null), "dimensions");
    Check.Throws<ArgumentNullException>(() => Tensor.Load(null), "path");
    Check.Throws<ArgumentNullException>(() => Op.Cat(null, 0), "inputs");
    Check.Throws<ArgumentNullException>(() => Tensor.Wrap<float>(null), "array");
    Check.Throws<ArgumentNullException>(() => new Session(null), "model");
    Check.Throws<ArgumentNullException>(() => new Observer("minmax").Merge(null), "other");
    Check.Throws<ArgumentOutOfRangeException>(() => Op.Run("Relu", new[] { tensor }, null, -1), "outputCount is below 0");
  }

  [Test]
  private void Disposed_objects_say_so() {
    Tensor tensor = Ramp(), other = Ramp();
    Quantizer grid = Int8(1);
    var observer = new Observer("minmax");
    var config = new Config("onnx");
    foreach (IDisposable thing in new IDisposable[] { tensor, grid, observer, config }) {
      thing.Dispose();
      thing.Dispose();
    }
    foreach (Action call in new Action[] {
               () => tensor.Shape.ToString(), () => tensor.Data<float>(), () => tensor.ToArray<float>(), () => tensor.ToString(),
               () => Op.Relu(tensor), () => Op.Cat(new[] { other, tensor }, 0), () => grid.Scales.ToString(),
               () => observer.Quantizer(), () => observer.Observe(other), () => config.Set("op:Conv", new Attrs { { "bins", 3 } }),
               () => Tensor.Create(DType.Int8, new long[] { 1 }, grid), () => other.Quantize(grid) })
      Check.Throws<ObjectDisposedException>(call, "QTensor.");
    Check.Equal(6f, Op.Cat(new[] { other, other }, 0).Shape[1] + Op.Relu(other).Shape[1]);
  }

  [Test]
  private void A_setter_gives_its_object() {
    using (var config = new Config("onnx"))
      Check.True(ReferenceEquals(config, config.Set("op:Conv", new Attrs { { "observer", "entropy" } }).LeaveInFloat("op:Gemm")), "is another");
  }

  private static void Collect() {
    for (int i = 0; i < 3; ++i) {
      GC.Collect();
      GC.WaitForPendingFinalizers();
    }
  }

  // mono's collector looks at the stack without knowing types: what stays there must lie deep.
  private static void Deeper(Action call, int depth) {
    if (depth == 0) call();
    else Deeper(call, depth - 1);
  }
}
