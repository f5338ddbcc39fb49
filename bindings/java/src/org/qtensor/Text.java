// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;

/** Texts as the library has them. */
final class Text {
  private Text() {}

  static byte[] bytes(String text, String name) {
    Objects.requireNonNull(text, () -> name + " is null");
    if (text.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(name + " has a NUL character at " + text.indexOf('\0'));
    }
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static byte[][] bytes(List<String> texts, String name) {
    Objects.requireNonNull(texts, () -> name + " is null");
    return texts.stream().map(text -> bytes(text, name)).toArray(byte[][]::new);
  }

  static String of(byte[] utf8) {
    return new String(utf8, StandardCharsets.UTF_8);
  }
}
