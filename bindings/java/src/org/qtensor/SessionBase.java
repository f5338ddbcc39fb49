// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

/** What Java adds to sessions. */
abstract class SessionBase extends NativeObject {
  SessionBase(long box) {
    super(box);
  }

  /** The outputs for one tensor for each input of the model. Many threads may run one session. */
  public final Tensor[] run(Tensor... inputs) {
    return ((Session) this).runAll(inputs);
  }

  /** Runs once and says how long each node took, in JSON. */
  public final String profile(Tensor... inputs) {
    return ((Session) this).profileAll(inputs);
  }
}
