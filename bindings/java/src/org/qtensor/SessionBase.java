// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.Map;

/** What Java adds to sessions. */
abstract class SessionBase extends NativeObject {
  private ModelInputs inputs;

  SessionBase(long box) {
    super(box);
  }

  final void remember(Model model) {
    inputs = new ModelInputs(model);
  }

  /**
   * The outputs for one tensor for each input of the model. Many threads may run one session.
   *
   * @param inputs in the order of the model; float64 is rounded where an input takes float32
   */
  public final Tensor[] run(Tensor... inputs) {
    return this.inputs.with(inputs, ((Session) this)::runAll);
  }

  /** The same, with the inputs by their names. */
  public final Tensor[] run(Map<String, Tensor> inputs) {
    return run(this.inputs.ordered(inputs));
  }

  /** Runs once and says how long each node took, in JSON. */
  public final String profile(Tensor... inputs) {
    return this.inputs.with(inputs, ((Session) this)::profileAll);
  }
}
