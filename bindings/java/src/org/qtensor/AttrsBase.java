// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;

/** Named options, of which programs make a Map. */
abstract class AttrsBase extends NativeObject {
  AttrsBase(long box) {
    super(box);
  }

  /** Null for null. */
  static Attrs of(Map<String, ?> map) {
    if (map == null) {
      return null;
    }
    Attrs attrs = Attrs.fresh();
    map.forEach((key, value) -> set(attrs, key, value));
    return attrs;
  }

  private static void set(Attrs attrs, String key, Object value) {
    if (value instanceof Boolean flag) {
      attrs.setInt(key, flag ? 1 : 0);
    } else if (isWhole(value)) {
      attrs.setInt(key, ((Number) value).longValue());
    } else if (value instanceof Float || value instanceof Double) {
      attrs.setFloat(key, ((Number) value).doubleValue());
    } else if (value instanceof String text) {
      attrs.setString(key, text);
    } else if (value instanceof long[] longs) {
      attrs.setInts(key, longs);
    } else if (value instanceof int[] ints) {
      attrs.setInts(key, Arrays.stream(ints).asLongStream().toArray());
    } else if (value instanceof double[] doubles) {
      attrs.setFloats(key, doubles);
    } else if (value instanceof Collection<?> list && list.stream().allMatch(AttrsBase::isWhole)) {
      attrs.setInts(key, list.stream().mapToLong(item -> ((Number) item).longValue()).toArray());
    } else if (value instanceof Collection<?> list && list.stream().allMatch(Number.class::isInstance)) {
      attrs.setFloats(key, list.stream().mapToDouble(item -> ((Number) item).doubleValue()).toArray());
    } else {
      throw new IllegalArgumentException("attribute \"" + key + "\" is of "
          + (value == null ? "null" : value.getClass())
          + ", not a whole number, a real, a boolean, a String, or a list of numbers");
    }
  }

  /** What the library lends for a callback, as values of their kinds. */
  static Map<String, Object> map(Attrs attrs) {
    Map<String, Object> map = new LinkedHashMap<>();
    for (long i = 0; i < attrs.count(); ++i) {
      String key = attrs.key(i);
      map.put(key, switch (attrs.kind(key)) {
        case "int" -> attrs.getInt(key);
        case "float" -> attrs.getFloat(key);
        case "string" -> attrs.getString(key);
        case "ints" -> attrs.getInts(key);
        case "floats" -> attrs.getFloats(key);
        default -> attrs.getTensor(key);
      });
    }
    return map;
  }

  private static boolean isWhole(Object value) {
    return value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte;
  }
}
