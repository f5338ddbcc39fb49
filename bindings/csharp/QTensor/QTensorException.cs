// SPDX-License-Identifier: Apache-2.0
using System;

namespace QTensor {

/// <summary>A call of the library that failed. Its message is that of the library: one line, with the values in it.</summary>
public sealed class QTensorException : Exception {
  /// <summary>Makes what the library would have thrown.</summary>
  public QTensorException(Status status, string message) : base(message) {
    Status = status;
  }

  /// <summary>Why: catch (QTensorException e) when (e.Status == Status.ESHAPE).</summary>
  public Status Status { get; }
}

}
