// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.Arrays;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/** What the library calls back, each as an interface of this package. */
final class Directors {
  private Directors() {}

  static SamplesDirector of(Samples samples, Model model) {
    DType[] wanted = LongStream.range(0, model.inputCount()).mapToObj(model::inputDtype).toArray(DType[]::new);
    return new SamplesDirector() {
      @Override
      public long count() {
        return samples.count();
      }

      @Override
      public Tensor[] sample(long index) {
        return narrowed(samples.sample(index), wanted);
      }
    };
  }

  /** Doubles, as programs compute them, for inputs that take floats. */
  private static Tensor[] narrowed(Tensor[] sample, DType[] wanted) {
    if (sample == null || sample.length != wanted.length) {
      return sample;
    }
    return IntStream.range(0, wanted.length)
        .mapToObj(i -> sample[i] != null && sample[i].dtype() == DType.FLOAT64 && wanted[i] == DType.FLOAT32
            ? Op.run("Cast", new Tensor[] {sample[i]}, Map.of("to", DType.FLOAT32.value()))[0] : sample[i])
        .toArray(Tensor[]::new);
  }

  static ProgressDirector of(Progress progress) {
    return progress == null ? null : new ProgressDirector() {
      @Override
      public boolean advance(String stage, long done, long total) {
        return progress.advance(stage, done, total);
      }
    };
  }

  static BatchesDirector of(Batches batches) {
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
        return Stream.of(batch.inputs(), batch.targets()).flatMap(Arrays::stream).toArray(Tensor[]::new);
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
