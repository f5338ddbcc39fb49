// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

/** Told how far a training is. */
@FunctionalInterface
public interface TrainingProgress {
  /** What happens next. */
  enum Answer {
    /** The next batch. */
    GO_ON,
    /** The training ends here, and what has been learned is converted. */
    FINISH,
    /** The call throws a QTensorException with {@link Status#ECANCELED}. */
    CANCEL
  }

  /**
   * Batches are done.
   *
   * @param stage "calibrating" or "training"
   * @param done how many batches
   * @param total of how many
   * @param loss of the last one; NaN while calibrating
   */
  Answer advance(String stage, long done, long total, double loss);
}
