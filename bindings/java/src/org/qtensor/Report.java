// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.Objects;

/** What a quantization did, and why. It prints in sentences, as {@code qtensor quantize} ends. */
public final class Report {
  private final String json;
  private final String text;

  /**
   * The report of a JSON text, such as one with "speed" added: {"batch": 1, "float_ms": 3.1, "int8_ms": 1.2}.
   *
   * @param json of {@link #json()}
   */
  public Report(String json) {
    this.json = Objects.requireNonNull(json, "json is null");
    this.text = Model.reportSummary(json).stripTrailing();
  }

  /** All of it, as JSON; docs/quantization.md has the members. */
  public String json() {
    return json;
  }

  /** What was tried, how near the model is to float on samples held back, what runs in integers, warnings, what to do next. */
  @Override
  public String toString() {
    return text;
  }
}
