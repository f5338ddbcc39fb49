// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** What Java adds to sessions. */
abstract class SessionBase extends NativeObject {
  private ModelInputs inputs;
  private final Set<Integer> bound = ConcurrentHashMap.newKeySet();

  SessionBase(long box) {
    super(box);
  }

  final void remember(Model model) {
    inputs = new ModelInputs(model);
  }

  /**
   * The outputs for one tensor for each input of the model. Many threads may run one session.
   *
   * @param inputs in the order of the model; float64 is rounded where an input takes float32; null for state
   */
  public final Tensor[] run(Tensor... inputs) {
    return this.inputs.with(inputs, ((Session) this)::runAll);
  }

  /** The same, with the inputs by their names, without those that have state. */
  public final Tensor[] run(Map<String, Tensor> inputs) {
    return run(this.inputs.ordered(inputs, bound));
  }

  /**
   * Makes an output of each run an input of the next one: {@link #run} takes null there. The first state is zeros, or what the
   * first run is given. Close what run gives for the output before the next run but one, and no memory is taken for it.
   */
  public final void bind(int output, int input) {
    ((Session) this).bindNumbers(output, input);
    bound.add(input);
  }

  /** Runs once and says how long each node took, in JSON. */
  public final String profile(Tensor... inputs) {
    return this.inputs.with(inputs, ((Session) this)::profileAll);
  }
}
