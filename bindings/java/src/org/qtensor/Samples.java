// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongFunction;

/** Data to calibrate with, or to measure with. The library may ask for any sample, in any order and more than once. */
public interface Samples {
  /** How many there are. */
  long count();

  /** One tensor for each input of the model. What this throws comes out of the call that asked for it. */
  Tensor[] sample(long index);

  /** Samples that are made when they are asked for. */
  static Samples of(long count, LongFunction<Tensor[]> sample) {
    return new Samples() {
      @Override
      public long count() {
        return count;
      }

      @Override
      public Tensor[] sample(long index) {
        return sample.apply(index);
      }
    };
  }

  /** The samples of a list or of anything else that can be iterated. */
  static Samples of(Iterable<Tensor[]> samples) {
    List<Tensor[]> list = new ArrayList<>();
    samples.forEach(list::add);
    return of(list.size(), index -> list.get((int) index));
  }

  /** The rows of a tensor, one at a time, for a model with one input whose first axis is the batch. */
  static Samples rows(Tensor tensor) {
    return rows(tensor, 1);
  }

  /** The same for a model that fixes its batch; rows that do not fill one are left out. */
  static Samples rows(Tensor tensor, long batch) {
    return of(tensor.shape()[0] / batch, index -> new Tensor[] {tensor.slice(0, index * batch, (index + 1) * batch)});
  }
}
