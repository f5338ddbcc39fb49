// SPDX-License-Identifier: Apache-2.0
// Memory stays flat, whatever is made, thrown away, or fails.
using System;
using System.IO;
using System.Linq;
using QTensor;

internal sealed class LifetimesTest {
  private static readonly string Digits = Environment.GetEnvironmentVariable("QTN_DIGITS");

  private static void Collect() {
    GC.Collect();
    GC.WaitForPendingFinalizers();
  }

  private static long Resident() {
    for (int i = 0; i < 3; ++i) Collect();
    return long.Parse(File.ReadAllText("/proc/self/statm").Split(' ')[1]) * Environment.SystemPageSize;
  }

  private static void Flat(int count, Action call, long limit = 1 << 20) {
    for (int i = 0; i < count; ++i) call();
    long before = Resident();
    for (int i = 0; i < count; ++i) call();
    long grown = Resident() - before;
    Console.WriteLine("    " + grown + " bytes after " + count + " calls");
    Check.True(grown < limit, grown + " bytes after " + count + " calls");
  }

  [Test]
  private void Tensors_that_are_disposed() {
    var array = new float[1024];
    using (Quantizer grid = Quantizer.PerTensor(DType.Int8, 0.1, 0))
      Flat(50000, () => {
        using (Tensor tensor = Tensor.Wrap(array, 32, 32))
        using (Tensor view = tensor.Select(0, 1))
        using (Tensor quantized = view.Quantize(grid))
        using (Quantizer again = quantized.Quantizer)
        using (TensorData<float> data = tensor.Data<float>()) data[0] = tensor.Shape[0] + (float)again.Scales[0];
      });
  }

  [Test]
  private void Tensors_that_are_left_to_the_collector() {
    var array = new float[16];
    int made = 0;
    Flat(50000, () => {
      Tensor.Wrap(array, 4, 4).Select(0, 1).Data<float>();
      Tensor.Of(array);
      if (++made % 1000 == 0) Collect();  // which comes when it likes, and with it the peak
    });
  }

  [Test]
  private void Failing_calls() {
    Tensor tensor = Tensor.Of(new float[16], 4, 4);
    var array = new float[3];
    Flat(10000, () => {
      foreach (Action bad in new Action[] { () => tensor.Reshape(5), () => Op.Relu(null), () => Model.Load("nowhere"),
                                            () => new Observer("minmax", new Attrs { { "bins", tensor } }), () => Tensor.Wrap(array, 4),
                                            () => Op.Cat(new[] { tensor, Tensor.Of(array) }, 0), () => new Config("nonsense") }) {
        try {
          bad();
        } catch (QTensorException) {
        } catch (ArgumentException) {
        }
      }
    });
  }

  [Test]
  private void Models_and_callbacks() {
    Tensor images = Tensor.LoadNpy(Path.Combine(Digits, "calibration.npy"));
    Tensor[] rows = Enumerable.Range(0, 4).Select(i => images.Slice(0, i, i + 1)).ToArray();
    using (Model model = Model.Load(Path.Combine(Digits, "digits.onnx")))
      Flat(100, () => {
        using (Model int8 = model.Quantize(rows, progress: (stage, done, total) => true))
        using (var session = new Session(int8)) session.Run(rows[0])[0].Dispose();
        try {
          model.Quantize(rows, progress: (stage, done, total) => throw new InvalidOperationException());
        } catch (InvalidOperationException) {
        }
      }, 4 << 20);  // a model has 100 kB
  }
}
