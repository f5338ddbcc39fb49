// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** What Java adds to trainers. */
abstract class TrainerBase extends NativeObject {
  TrainerBase(long box) {
    super(box);
  }

  /** The outputs that the converted model would give. */
  public final Tensor[] evaluate(Tensor... inputs) {
    return self().evaluateAll(inputs);
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
