// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
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

  /** The same, so many rows at a time; the last batch has what is left, which a model that fixes its batch refuses. */
  static Samples rows(Tensor tensor, long batch) {
    if (batch < 1) {
      throw new IllegalArgumentException("batch is " + batch + ", not positive");
    }
    long count = tensor.shape()[0];
    return of((count + batch - 1) / batch,
        index -> new Tensor[] {tensor.slice(0, index * batch, Math.min(count, (index + 1) * batch))});
  }

  /** The rows of a tensor as a model with one input takes them: with the axis of its batch, as many together as it fixes. */
  static Samples rows(Tensor tensor, Model model) {
    Objects.requireNonNull(tensor, "rows is null");
    if (model.inputCount() != 1) {
      throw new IllegalArgumentException(
          "the model has " + model.inputCount() + " inputs, " + model.inputs() + ": pass their rows by name");
    }
    return rows(Map.of(model.inputName(0), tensor), model);
  }

  /** The same of one tensor for each input of a model, by the names of these. */
  static Samples rows(Map<String, Tensor> tensors, Model model) {
    List<Tensor> inputs = new ModelInputs(model).ordered(tensors, "rows");
    long count = -1;
    for (int i = 0; i < inputs.size(); ++i) {
      long[] shape = inputs.get(i).shape();
      if (shape.length == 0) {
        throw new IllegalArgumentException("rows of input \"" + model.inputName(i) + "\" are a scalar");
      }
      if (count >= 0 && shape[0] != count) {
        throw new IllegalArgumentException("there are " + count + " rows of input \"" + model.inputName(0) + "\" and "
            + shape[0] + " of \"" + model.inputName(i) + "\"");
      }
      count = shape[0];
    }
    long[] wanted = model.inputShape(0);
    if (wanted.length == inputs.get(0).rank() - 1) { // without an axis for the batch
      return of(count, index -> inputs.stream().map(rows -> rows.select(0, index)).toArray(Tensor[]::new));
    }
    long batch = wanted.length == 0 ? 1 : Math.max(wanted[0], 1);
    if (count % batch != 0) {
      throw new IllegalArgumentException(
          "there are " + count + " rows, no multiple of the batch of " + batch + " that the model fixes");
    }
    return of(count / batch, index -> inputs.stream().map(rows -> rows.slice(0, index * batch, (index + 1) * batch))
        .toArray(Tensor[]::new));
  }
}
