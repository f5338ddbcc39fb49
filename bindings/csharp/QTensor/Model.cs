// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;

namespace QTensor {

/// <summary>Tensors to train with: one for each input of the model, and one for each target.</summary>
public sealed class Batch {
  /// <summary>Of a model with one input, and a loss with one target.</summary>
  public Batch(Tensor input, Tensor target) : this(new[] { input }, new[] { target }) {}

  /// <summary>Of any model.</summary>
  public Batch(Tensor[] inputs, Tensor[] targets) {
    Inputs = inputs;
    Targets = targets;
  }

  /// <summary>One for each input of the model.</summary>
  public Tensor[] Inputs { get; }

  /// <summary>One for each target of the loss.</summary>
  public Tensor[] Targets { get; }
}

/// <summary>What a function that is told of a training may answer. The library takes these numbers.</summary>
public enum TrainingAnswer {
  /// <summary>Train on.</summary>
  GoOn = 0,
  /// <summary>Convert what has been learned so far.</summary>
  Finish = 1,
  /// <summary>End the call with Status.ECANCELED.</summary>
  Cancel = 2,
}

/// <summary>A graph of ONNX operators with its weights: float, prepared, or quantized.</summary>
public sealed unsafe partial class Model {
  /// <summary>Of a model that Quantize or QuantizeQat made: what was done and why.</summary>
  public Report Report { get; private set; }

  /// <summary>The names of the inputs, in their order.</summary>
  public string[] InputNames => Enumerable.Range(0, InputCount).Select(i => InputName(i)).ToArray();

  /// <summary>The names of the outputs, in their order.</summary>
  public string[] OutputNames => Enumerable.Range(0, OutputCount).Select(i => OutputName(i)).ToArray();

  /// <summary>The names of the tensors that the model holds: weights, biases and other constants.</summary>
  public string[] TensorNames => Enumerable.Range(0, TensorCount).Select(i => TensorName(i)).ToArray();

  /// <summary>The model in integers, calibrated with the rows of a tensor, for a model with one input. Rows keep the axis of
  /// the batch where the model has one, and are as many together as it fixes.</summary>
  public Model Quantize(Tensor rows, Config config = null, IDictionary<string, object> attrs = null,
                        Func<string, long, long, bool> progress = null) {
    if (rows == null) throw new ArgumentNullException(nameof(rows));
    if (InputCount != 1)
      throw new ArgumentException("the model has " + InputCount + " inputs, " + string.Join(", ", InputNames) +
                                  ": pass their rows by name");
    return Quantize(Rows(new[] { rows }), config, attrs, progress);
  }

  /// <summary>The same for a model with several inputs, whose rows are given by their names.</summary>
  public Model Quantize(IDictionary<string, Tensor> rows, Config config = null, IDictionary<string, object> attrs = null,
                        Func<string, long, long, bool> progress = null) =>
      Quantize(Rows(new ModelInputs(this).Ordered(rows, nameof(rows))), config, attrs, progress);

  /// <summary>The model in integers, calibrated with samples for a model with one input.</summary>
  public Model Quantize(IEnumerable<Tensor> samples, Config config = null, IDictionary<string, object> attrs = null,
                        Func<string, long, long, bool> progress = null) {
    if (samples == null) throw new ArgumentNullException(nameof(samples));
    return Quantize(samples.Select(sample => new[] { sample }), config, attrs, progress);
  }

  /// <summary>The model in integers, calibrated with samples: one tensor for each input. A list is asked for a sample when it
  /// is wanted, in any order and more than once; what is no list is read to its end before.</summary>
  /// <param name="samples">of the data that the model will see; float64 is rounded where an input takes float32</param>
  /// <param name="config">a recipe, or the name of one; null is "onnx"</param>
  /// <param name="attrs">what to do about accuracy</param>
  /// <param name="progress">called with stage, done and total; false cancels</param>
  public Model Quantize(IEnumerable<Tensor[]> samples, Config config = null, IDictionary<string, object> attrs = null,
                        Func<string, long, long, bool> progress = null) {
    if (samples == null) throw new ArgumentNullException(nameof(samples));
    var callbacks = new Callbacks();
    IReadOnlyList<Tensor[]> list = samples as IReadOnlyList<Tensor[]> ?? samples.ToArray();
    var inputs = new ModelInputs(this);
    return callbacks.Run(() => {
      Model model = Quantize(config ?? "onnx", callbacks.Sample(list, inputs), list.Count, attrs, callbacks.Progress(progress),
                             out string report);
      model.Report = new Report(report);
      return model;
    });
  }

  /// <summary>The model in integers, trained on its grids with batches that every epoch takes in their order.</summary>
  public Model QuantizeQat(IReadOnlyList<Batch> batches, Config config = null, IDictionary<string, object> attrs = null,
                           Func<string, long, long, double, TrainingAnswer> progress = null) {
    if (batches == null) throw new ArgumentNullException(nameof(batches));
    int targets = batches.Count > 0 && batches[0] != null && batches[0].Targets != null ? batches[0].Targets.Length : 1;
    return QuantizeQat((epoch, index) => batches[(int)index], batches.Count, targets, config, attrs, progress);
  }

  /// <summary>The model in integers, trained on its grids.</summary>
  /// <param name="batch">gives a batch of an epoch</param>
  /// <param name="count">batches of an epoch</param>
  /// <param name="targetCount">targets of a batch</param>
  /// <param name="config">a recipe, or the name of one; null is "onnx"</param>
  /// <param name="attrs">of the training: "epochs", "lr" ...</param>
  /// <param name="progress">called with stage, done, total and loss</param>
  public Model QuantizeQat(Func<long, long, Batch> batch, long count, long targetCount = 1, Config config = null,
                           IDictionary<string, object> attrs = null,
                           Func<string, long, long, double, TrainingAnswer> progress = null) {
    if (batch == null) throw new ArgumentNullException(nameof(batch));
    var callbacks = new Callbacks();
    var inputs = new ModelInputs(this);
    return callbacks.Run(() => {
      Model model = QuantizeQat(config ?? "onnx", callbacks.Batch(batch, inputs), count, targetCount, attrs,
                                callbacks.Training(progress), out string report);
      model.Report = new Report(report);
      return model;
    });
  }

  /// <summary>Shows a model that Prepare made a sample: one tensor for each input; Float64 is rounded where an input takes
  /// Float32.</summary>
  public void Calibrate(IReadOnlyList<Tensor> inputs) => new ModelInputs(this).With<object>(inputs, x => {
    CalibrateWith(x);
    return null;
  });

  /// <summary>The same with the inputs by their names.</summary>
  public void Calibrate(IDictionary<string, Tensor> inputs) => Calibrate(new ModelInputs(this).Ordered(inputs, nameof(inputs)));

  private IEnumerable<Tensor[]> Rows(Tensor[] inputs) {
    int count = -1;
    for (int i = 0; i < inputs.Length; ++i) {
      if (inputs[i] == null) throw new ArgumentException("rows of the input " + InputName(i) + " are null");
      if (inputs[i].Rank == 0) throw new ArgumentException("rows of the input " + InputName(i) + " are a scalar");
      int rows = checked((int)inputs[i].Shape[0]);
      if (count >= 0 && rows != count)
        throw new ArgumentException("there are " + count + " rows of the input " + InputName(0) + " and " + rows + " of " +
                                    InputName(i));
      count = rows;
    }
    long[] shape = InputShape(0);
    if (shape.Length == inputs[0].Rank - 1)
      return Enumerable.Range(0, count).Select(i => inputs.Select(rows => rows.Select(0, i)).ToArray()).ToArray();
    int batch = shape.Length == 0 ? 1 : (int)Math.Max(shape[0], 1);
    if (count % batch != 0)
      throw new ArgumentException("there are " + count + " rows, no multiple of the batch of " + batch + " that the model fixes");
    return Enumerable.Range(0, count / batch)
        .Select(i => inputs.Select(rows => rows.Slice(0, i * batch, (i + 1) * batch)).ToArray())
        .ToArray();
  }

  /// <summary>Inputs and outputs.</summary>
  public override string ToString() =>
      "Model(" + string.Join(", ", InputNames) + " -> " + string.Join(", ", OutputNames) + ")";
}

}
