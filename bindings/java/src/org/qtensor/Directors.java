// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.Arrays;
import java.util.stream.Stream;

/** What the library calls back, each as an interface of this package. */
final class Directors {
  private Directors() {}

  static SamplesDirector of(Samples samples, Model model) {
    ModelInputs inputs = new ModelInputs(model);
    return new SamplesDirector() {
      @Override
      public long count() {
        return samples.count();
      }

      @Override
      public Tensor[] sample(long index) {
        Tensor[] sample = samples.sample(index);
        return sample == null || sample.length != model.inputCount() ? sample : inputs.kept(sample);
      }
    };
  }

  static ProgressDirector of(Progress progress) {
    return progress == null ? null : new ProgressDirector() {
      @Override
      public boolean advance(String stage, long done, long total) {
        return progress.advance(stage, done, total);
      }
    };
  }

  static BatchesDirector of(Batches batches, Model model) {
    ModelInputs inputs = new ModelInputs(model);
    long targets = batches.count() > 0 ? batches.batch(0, 0).targets().length : 1;
    return new BatchesDirector() {
      @Override
      public long count() {
        return batches.count();
      }

      @Override
      public long targetCount() {
        return targets;
      }

      @Override
      public Tensor[] batch(long epoch, long index) {
        Batches.Batch batch = batches.batch(epoch, index);
        return inputs.kept(Stream.of(batch.inputs(), batch.targets()).flatMap(Arrays::stream).toArray(Tensor[]::new));
      }
    };
  }

  static TrainingProgressDirector of(TrainingProgress progress) {
    return progress == null ? null : new TrainingProgressDirector() {
      @Override
      public int advance(String stage, long done, long total, double loss) {
        return progress.advance(stage, done, total, loss).ordinal();
      }
    };
  }
}
