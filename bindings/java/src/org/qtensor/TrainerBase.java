// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** What Java adds to trainers. */
abstract class TrainerBase extends NativeObject {
  private ModelInputs inputs;

  TrainerBase(long box) {
    super(box);
  }

  final void remember(Model model) {
    inputs = new ModelInputs(model);
  }

  /**
   * Goes one step, and answers the loss before it.
   *
   * @param inputs one for each input of the model; float64 is rounded where an input takes float32
   * @param targets of the loss, float64 as float32
   */
  public final double step(Tensor[] inputs, Tensor[] targets) {
    return this.inputs.with(inputs, x -> ModelInputs.withTargets(targets, y -> self().stepWith(x, y)));
  }

  /** The same for a model with one input and a loss with one target. */
  public final double step(Tensor input, Tensor target) {
    return step(new Tensor[] {input}, new Tensor[] {target});
  }

  /** The same with the inputs by their names. */
  public final double step(Map<String, Tensor> inputs, Tensor... targets) {
    return step(this.inputs.ordered(inputs), targets);
  }

  /**
   * Adds the gradients of a batch to those since the last update, and answers its loss.
   *
   * @param inputs as of {@link #step(Tensor[], Tensor[])}
   * @param targets of the loss
   */
  public final double backward(Tensor[] inputs, Tensor[] targets) {
    return this.inputs.with(inputs, x -> ModelInputs.withTargets(targets, y -> self().backwardWith(x, y)));
  }

  /** The outputs that the converted model would give. */
  public final Tensor[] evaluate(Tensor... inputs) {
    return this.inputs.with(inputs, self()::evaluateAll);
  }

  /** The same with the inputs by their names. */
  public final Tensor[] evaluate(Map<String, Tensor> inputs) {
    return evaluate(this.inputs.ordered(inputs));
  }

  /** What is trained, by name; writing to a tensor changes the model. */
  public final Map<String, Tensor> parameters() {
    Map<String, Tensor> parameters = new LinkedHashMap<>();
    for (long i = 0; i < self().parameterCount(); ++i) {
      parameters.put(self().parameterName(i), self().parameter(i));
    }
    return parameters;
  }

  /** Writes a checkpoint, from which training goes on to the same bytes. */
  public final void save(Path path) {
    self().save(path.toString());
  }

  /** Goes on from a checkpoint. */
  public final void load(Path path) {
    self().load(path.toString());
  }

  private Trainer self() {
    return (Trainer) this;
  }
}
