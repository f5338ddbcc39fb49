// SPDX-License-Identifier: Apache-2.0
// What C# adds to the smaller classes.
using System;
using System.Collections.Generic;
using System.Linq;

namespace QTensor {

/// <summary>An immutable mapping real = (q - zero point) * scale, of the whole tensor, of channels or of blocks.</summary>
public sealed unsafe partial class Quantizer {
  /// <summary>Element type, scheme and grid.</summary>
  public override string ToString() {
    string grid = Count == 1 ? FormattableString.Invariant($"scale={Scales[0]:R}, zero_point={ZeroPoints[0]}")
                             : "axis=" + Axis + ", " + Count + " scales";
    return "Quantizer(" + Dtype + ", " + Scheme + ", " + grid + ", numerics=" + Numerics + ")";
  }
}

/// <summary>Statistics of the tensors that it is shown, from which it chooses a Quantizer.</summary>
public sealed unsafe partial class Observer {}

/// <summary>What of a model is quantized, and how: a recipe, and what Set() changes of it.</summary>
public sealed unsafe partial class Config {
  /// <summary>A recipe by its name: model.Quantize(samples, "nvidia").</summary>
  public static implicit operator Config(string name) => name == null ? null : new Config(name);
}

/// <summary>A model ready to run, from many threads at once; with state, one run at a time.</summary>
public sealed unsafe partial class Session {
  private readonly ModelInputs inputs;
  private volatile int[] bound = new int[0];

  /// <summary>The outputs, for one tensor for each input, null for state; Float64 is rounded where an input takes Float32.
  /// </summary>
  public Tensor[] Run(params Tensor[] inputs) => Run((IReadOnlyList<Tensor>)inputs);

  /// <summary>The outputs, for a list of one tensor for each input.</summary>
  public Tensor[] Run(IReadOnlyList<Tensor> inputs) => this.inputs.With(inputs, RunAll);

  /// <summary>The outputs, for tensors by the names of the inputs, without those that have state.</summary>
  public Tensor[] Run(IDictionary<string, Tensor> inputs) => Run(this.inputs.Ordered(inputs, nameof(inputs), bound));

  /// <summary>Makes an output of each run an input of the next one: Run takes null there. The first state is zeros, or what
  /// the first run is given. Dispose what Run gives for the output before the next run but one, and no memory is taken for it.
  /// </summary>
  public void Bind(int output, int input) {
    BindNumbers(output, input);
    bound = bound.Union(new[] { input }).ToArray();
  }

  /// <summary>Runs once and says how long each node took, in JSON.</summary>
  public string Profile(IReadOnlyList<Tensor> inputs) => this.inputs.With(inputs, ProfileAll);
}

/// <summary>One layer with weights in integers, for programs that run a network themselves. Many threads may run one.</summary>
public sealed unsafe partial class Layer {}

/// <summary>A model being trained, with its optimizer.</summary>
public sealed unsafe partial class Trainer {
  private readonly ModelInputs inputs;

  /// <summary>The loss of a step on one batch.</summary>
  public double Step(Tensor input, Tensor target) => Step(new[] { input }, new[] { target });

  /// <summary>Goes one step, and answers the loss before it. Float64 is rounded where Float32 is taken.</summary>
  public double Step(IReadOnlyList<Tensor> inputs, IReadOnlyList<Tensor> targets) =>
      this.inputs.With(inputs, x => ModelInputs.WithTargets(targets, y => StepWith(x, y)));

  /// <summary>The same with the inputs by their names.</summary>
  public double Step(IDictionary<string, Tensor> inputs, params Tensor[] targets) =>
      Step(this.inputs.Ordered(inputs, nameof(inputs)), targets);

  /// <summary>Adds the gradients of a batch to those since the last Update(), and answers its loss.</summary>
  public double Backward(IReadOnlyList<Tensor> inputs, IReadOnlyList<Tensor> targets) =>
      this.inputs.With(inputs, x => ModelInputs.WithTargets(targets, y => BackwardWith(x, y)));

  /// <summary>The outputs that the converted model would give.</summary>
  public Tensor[] Evaluate(IReadOnlyList<Tensor> inputs) => this.inputs.With(inputs, EvaluateAll);

  /// <summary>The same with the inputs by their names.</summary>
  public Tensor[] Evaluate(IDictionary<string, Tensor> inputs) => Evaluate(this.inputs.Ordered(inputs, nameof(inputs)));

  /// <summary>What is trained, by name; writing to a tensor changes the model.</summary>
  public IReadOnlyDictionary<string, Tensor> Parameters =>
      Enumerable.Range(0, ParameterCount).ToDictionary(i => ParameterName(i), i => Parameter(i));

  /// <summary>What moves with the batches but has no gradient: running statistics.</summary>
  public IReadOnlyDictionary<string, Tensor> Buffers =>
      Enumerable.Range(0, BufferCount).ToDictionary(i => BufferName(i), i => Buffer(i));
}

/// <summary>Operators on tensors, one at a time.</summary>
public static unsafe partial class Op {}

/// <summary>The library: its version, instruction set and threads.</summary>
public static unsafe partial class Lib {}

}
