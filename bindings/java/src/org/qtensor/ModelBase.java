// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.LongStream;

/** What Java adds to models. */
abstract class ModelBase extends NativeObject {
  private Report report;

  ModelBase(long box) {
    super(box);
  }

  /** Reads an ONNX file. */
  public static Model load(Path path) {
    return Model.load(path.toString());
  }

  /** Reads an ONNX file that is in memory. */
  public static Model load(byte[] onnx) {
    return Model.loadBytes(Objects.requireNonNull(onnx, "onnx is null"));
  }

  /** Writes an ONNX file that other runtimes run, too. */
  public final void save(Path path) {
    self().save(path.toString());
  }

  /**
   * Writes an ONNX file.
   *
   * @param attrs "format": "qdq" or "qoperator"; "opset"
   */
  public final void save(Path path, Map<String, ?> attrs) {
    self().save(path.toString(), attrs);
  }

  /** The names of the inputs, in the order in which a session takes them. */
  public final List<String> inputs() {
    return LongStream.range(0, self().inputCount()).mapToObj(self()::inputName).toList();
  }

  /** The names of the outputs. */
  public final List<String> outputs() {
    return LongStream.range(0, self().outputCount()).mapToObj(self()::outputName).toList();
  }

  /** The names of the tensors that the model holds: weights, biases and other constants. */
  public final List<String> tensors() {
    return LongStream.range(0, self().tensorCount()).mapToObj(self()::tensorName).toList();
  }

  /** Shows a model made by {@link Model#prepare(Config)} one sample: one tensor for each input. */
  public final void calibrate(Tensor... inputs) {
    new ModelInputs(self()).with(inputs, x -> {
      self().calibrateWith(x);
      return null;
    });
  }

  /** The same, with the inputs by their names. */
  public final void calibrate(Map<String, Tensor> inputs) {
    calibrate(new ModelInputs(self()).ordered(inputs));
  }

  /**
   * The model in integers, by the recipe "onnx", calibrated with the rows of a tensor, for a model with one input. Rows keep
   * the axis of the batch where the model has one, and are as many together as it fixes.
   */
  public final Model quantize(Tensor rows) {
    return quantize(Samples.rows(rows, self()), "onnx");
  }

  /** The same for a model with several inputs, whose rows are given by their names. */
  public final Model quantize(Map<String, Tensor> rows) {
    return quantize(Samples.rows(rows, self()), "onnx");
  }

  /** The model in integers, by the recipe "onnx". */
  public final Model quantize(Samples samples) {
    return quantize(samples, "onnx");
  }

  /** The model in integers, by a recipe: "onnx", "fbgemm", "nvidia" ... */
  public final Model quantize(Samples samples, String recipe) {
    try (Config config = new Config(recipe)) {
      return quantize(samples, config, null, null);
    }
  }

  /**
   * The model in integers.
   *
   * @param samples what it is calibrated with; float64 is rounded where an input takes float32
   * @param config a recipe, and what has been changed of it
   * @param attrs what to do about accuracy, {@code Map.of("bias_correction", 1)}; may be null
   * @param progress is told how far the call is, and may cancel it; may be null
   */
  public final Model quantize(Samples samples, Config config, Map<String, ?> attrs, Progress progress) {
    SamplesDirector asked = Directors.of(Objects.requireNonNull(samples, "samples is null"), self());
    ProgressDirector told = Directors.of(progress);
    byte[][] report = new byte[1][];
    try {
      return reported(self().quantizeWith(config, asked, attrs, told, report), report);
    } finally {
      asked.delete();
      if (told != null) {
        told.delete();
      }
    }
  }

  /**
   * The model in integers, trained on its grids.
   *
   * @param batches what it is trained with
   * @param config a recipe, and what has been changed of it
   * @param attrs of the training, {@code Map.of("epochs", 3, "lr", 0.001)}; may be null
   * @param progress is told the loss of each step, and may end the training; may be null
   */
  public final Model quantizeQat(Batches batches, Config config, Map<String, ?> attrs, TrainingProgress progress) {
    BatchesDirector asked = Directors.of(Objects.requireNonNull(batches, "batches is null"), self());
    TrainingProgressDirector told = Directors.of(progress);
    byte[][] report = new byte[1][];
    try {
      return reported(self().quantizeQatWith(config, asked, attrs, told, report), report);
    } finally {
      asked.delete();
      if (told != null) {
        told.delete();
      }
    }
  }

  /** What was done and why, for a model that quantize or quantizeQat made; null for others. */
  public final Report report() {
    return report;
  }

  private static Model reported(Model model, byte[][] report) {
    ((ModelBase) model).report = new Report(Text.of(report[0]));
    return model;
  }

  private Model self() {
    return (Model) this;
  }
}
