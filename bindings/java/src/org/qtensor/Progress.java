// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

/** Told how far a long call is. */
@FunctionalInterface
public interface Progress {
  /**
   * Pieces of work are done.
   *
   * @param stage of which kind, "calibrating" for example
   * @param done how many
   * @param total of how many
   * @return whether to go on; if not, the call throws a QTensorException with {@link Status#ECANCELED}
   */
  boolean advance(String stage, long done, long total);
}
