// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

/**
 * What the library refuses or cannot do. The message is the library's, one line with the values in it.
 *
 * <p>What never reaches the library has Java's own exceptions: a null or a closed object, a buffer or a value of a Map
 * that is of no use.
 */
public final class QTensorException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final Status status;

  /**
   * For an {@link Operator} that fails a call.
   *
   * @param status why
   * @param message one line for people
   */
  public QTensorException(Status status, String message) {
    super(message);
    this.status = status;
  }

  static QTensorException of(int status, byte[] message) {
    return new QTensorException(Status.of(status), Text.of(message));
  }

  /** Why the call failed. */
  public Status status() {
    return status;
  }
}
