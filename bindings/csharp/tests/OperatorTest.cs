// SPDX-License-Identifier: Apache-2.0
// Operators that programs register. The networks, and what they compute, are those of tests/golden/make_custom.py.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using QTensor;

internal sealed class OperatorTest {
  private static readonly string Custom =
      Path.Combine(Environment.GetEnvironmentVariable("QTN_DIGITS"), "../../tests/golden/custom");

  private class Swish : Operator {
    public override IReadOnlyList<OutputType> Infer(IReadOnlyList<Operand> inputs,
                                                    IReadOnlyDictionary<string, object> attributes, int outputs) =>
        new[] { new OutputType(inputs[0].Dtype, inputs[0].Shape) };

    public override Tensor[] Run(Tensor[] inputs, IReadOnlyDictionary<string, object> attributes) {
      float alpha = attributes.TryGetValue("alpha", out object value) ? (float)(double)value : 1;
      float[] x = inputs[0].ToArray<float>();
      for (int i = 0; i < x.Length; ++i) x[i] /= 1 + (float)Math.Exp(-alpha * x[i]);
      return new[] { Tensor.Of(x, inputs[0].Shape) };
    }
  }

  private sealed class QuantizedSwish : Swish {
    internal int Calls;

    public override bool HasQuantized => true;

    public override Tensor[] RunQuantized(Tensor[] inputs, IReadOnlyDictionary<string, object> attributes, Quantizer[] quantizers) {
      ++Calls;
      return new[] { Run(new[] { inputs[0].Dequantize() }, attributes)[0].Quantize(quantizers[0]) };
    }
  }

  private sealed class Broken : Swish {
    public override Tensor[] Run(Tensor[] inputs, IReadOnlyDictionary<string, object> attributes) {
      Check.Equal("1,2", string.Join(",", (long[])attributes["is"]));
      Check.Equal("text", attributes["s"]);
      throw new InvalidOperationException("no such luck");
    }
  }

  private static Tensor Load(string name) => Tensor.LoadNpy(Path.Combine(Custom, name + ".npy"));

  private static float[] Run(Session session) => session.Run(Load("swish_x"))[0].ToArray<float>();

  private static float Difference(float[] a, float[] b) => a.Zip(b, (x, y) => Math.Abs(x - y)).Max();

  [Test]
  private void A_session_outlives_a_registration() {
    Operator.Register("com.example", "Swish", 1, new Swish());
    using (Model model = Model.Load(Path.Combine(Custom, "swish.onnx")))
    using (var session = new Session(model)) {
      Operator.Unregister("com.example", "Swish", 1);
      GC.Collect();
      Check.True(Difference(Run(session), Load("swish_y").ToArray<float>()) < 2e-5f, "results");
      Check.Throws<QTensorException>(() => Model.Load(Path.Combine(Custom, "swish.onnx")));
    }
  }

  [Test]
  private void Integers_are_computed_where_they_are_wanted() {
    var swish = new QuantizedSwish();
    Operator.Register("com.example", "Swish", 1, swish);
    using (Model model = Model.Load(Path.Combine(Custom, "swish.onnx")))
    using (Model int8 = model.Quantize(Load("swish_x")))
    using (var session = new Session(int8))
    using (var reference = new Session(int8, new Attrs { { "engine", "reference" } })) {
      int before = swish.Calls;
      float[] y = Run(session);
      Check.Equal(before + 1, swish.Calls);
      Check.Equal(0f, Difference(Run(reference), y));
      Check.True(Difference(Load("swish_y").ToArray<float>(), y) < 0.2f, "results");
    }
    Operator.Unregister("com.example", "Swish", 1);
  }

  [Test]
  private void What_is_thrown_comes_out() {
    Operator.Register("com.example", "Broken", 1, new Broken());
    var e = Check.Throws<QTensorException>(() => Op.Run("com.example::Broken", new[] { Tensor.Of(new float[] { 1 }) },
        new Attrs { { "is", new long[] { 1, 2 } }, { "s", "text" } }));
    Operator.Unregister("com.example", "Broken", 1);
    Check.Equal(Status.EINVAL, e.Status);
    Check.True(e.Message.Contains("com.example::Broken: InvalidOperationException: no such luck"), e.Message);
  }
}
