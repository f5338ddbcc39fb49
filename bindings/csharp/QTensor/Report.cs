// SPDX-License-Identifier: Apache-2.0
using System;

namespace QTensor {

/// <summary>What a quantization did, and why. It prints in sentences, as `qtensor quantize` ends.</summary>
public sealed class Report {
  private readonly string text;

  /// <summary>The report of a JSON text, such as one with "speed" added: {"batch": 1, "float_ms": 3.1, "int8_ms": 1.2}.
  /// </summary>
  public Report(string json) {
    Json = json ?? throw new ArgumentNullException(nameof(json));
    text = Model.ReportSummary(json).TrimEnd();
  }

  /// <summary>All of it, as JSON; docs/quantization.md has the members.</summary>
  public string Json { get; }

  /// <summary>What was tried, how near the model is to float on samples held back, what runs in integers, warnings, what to do
  /// next.</summary>
  public override string ToString() => text;
}

}
