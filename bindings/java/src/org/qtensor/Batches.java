// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.List;
import java.util.Objects;

/** Data to train with. */
public interface Batches {
  /** The inputs of a step, one for each input of the model, and its targets. */
  record Batch(Tensor[] inputs, Tensor[] targets) {}

  /** How many there are in an epoch. */
  long count();

  /** A batch. What this throws comes out of the call that asked for it. */
  Batch batch(long epoch, long index);

  /** Batches that every epoch takes in this order. */
  static Batches of(List<Batch> batches) {
    List<Batch> all = List.copyOf(Objects.requireNonNull(batches, "batches is null"));
    return new Batches() {
      @Override
      public long count() {
        return all.size();
      }

      @Override
      public Batch batch(long epoch, long index) {
        return all.get((int) index);
      }
    };
  }
}
