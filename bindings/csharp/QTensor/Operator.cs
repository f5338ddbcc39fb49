// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;

namespace QTensor {

/// <summary>What an output of an Operator is.</summary>
public sealed class OutputType {
  /// <summary>An element type and a shape.</summary>
  public OutputType(DType dtype, params long[] shape) {
    Dtype = dtype;
    Shape = shape;
  }

  /// <summary>The element type.</summary>
  public DType Dtype { get; }
  /// <summary>The dimensions.</summary>
  public long[] Shape { get; }
}

/// <summary>An input as Operator.Infer sees it.</summary>
public sealed class Operand {
  internal Operand(Call call, long index) {
    Dtype = call.InputDtype(index);
    Shape = call.InputShape(index);
    Value = call.Input(index);
  }

  /// <summary>The element type.</summary>
  public DType Dtype { get; }
  /// <summary>The dimensions.</summary>
  public long[] Shape { get; }
  /// <summary>The elements; null where they are not known before a run.</summary>
  public Tensor Value { get; }
}

/// <summary>An operator that a program adds to those that files may use. Many threads may call one at once. What its methods
/// throw comes out of the call that asked them as a QTensorException, whose message holds that of the exception.</summary>
public abstract class Operator {
  /// <summary>Says what the outputs are. Absent inputs are null.</summary>
  /// <param name="inputs">What is known of the inputs.</param>
  /// <param name="attributes">Of the node: long, double, string, long[], double[] or Tensor.</param>
  /// <param name="outputs">How many there are.</param>
  /// <returns>A type for each; null: these follow from the value of an input that is not known yet.</returns>
  public abstract IReadOnlyList<OutputType> Infer(IReadOnlyList<Operand> inputs,
                                                  IReadOnlyDictionary<string, object> attributes, int outputs);

  /// <summary>Computes the outputs. Tensors are copies, which may be kept, and absent inputs are null.</summary>
  /// <param name="inputs">The inputs, not quantized.</param>
  /// <param name="attributes">Of the node.</param>
  /// <returns>A tensor for each output.</returns>
  public abstract Tensor[] Run(Tensor[] inputs, IReadOnlyDictionary<string, object> attributes);

  /// <summary>Whether there is a RunQuantized: asked once.</summary>
  public virtual bool HasQuantized => false;

  /// <summary>Computes in integers.</summary>
  /// <param name="inputs">The inputs, of which some are quantized.</param>
  /// <param name="attributes">Of the node.</param>
  /// <param name="quantizers">Those of the outputs, null for one that is not quantized.</param>
  /// <returns>A tensor for each output: on its quantizer, or real, which is rounded to it; null: Run is to compute these.</returns>
  public virtual Tensor[] RunQuantized(Tensor[] inputs, IReadOnlyDictionary<string, object> attributes,
                                       Quantizer[] quantizers) => null;

  /// <summary>Adds an operator: from now on files may use it, as "domain::name".</summary>
  /// <param name="domain">The domain, such as "com.example"; "" for an operator of ONNX's own that this version lacks.</param>
  /// <param name="name">What nodes call it.</param>
  /// <param name="sinceVersion">The first version of the domain that has this form of it.</param>
  /// <param name="op">What computes it, which the library keeps.</param>
  public static void Register(string domain, string name, long sinceVersion, Operator op) {
    if (op == null) throw new ArgumentNullException(nameof(op));
    new RegisteredOperator(op).Register(domain, name, sinceVersion);
  }

  /// <summary>Takes Register back. Models and sessions that have the operator go on.</summary>
  /// <param name="domain">As it was registered.</param>
  /// <param name="name">As it was registered.</param>
  /// <param name="sinceVersion">As it was registered.</param>
  public static void Unregister(string domain, string name, long sinceVersion) =>
      Op.UnregisterOperator(domain, name, sinceVersion);
}

}
