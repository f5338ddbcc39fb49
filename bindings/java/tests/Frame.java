// SPDX-License-Identifier: Apache-2.0

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.stream.StreamSupport;
import org.qtensor.DType;
import org.qtensor.Quantizer;
import org.qtensor.Scheme;
import org.qtensor.Tensor;

/** The handles of a case, and the arguments of its step. */
final class Frame {
  /** Why Java cannot express a step. */
  static final class CannotSay extends RuntimeException {
    private static final long serialVersionUID = 1;

    CannotSay(String why) {
      super(why);
    }
  }

  final Map<String, Object> handles = new HashMap<>();
  final Path folder;
  private final Path root;
  JsonObject step;

  Frame(Path root, Path folder) {
    this.root = root;
    this.folder = folder;
  }

  JsonElement get(String name) {
    JsonObject with = step.getAsJsonObject("with");
    return with == null || !with.has(name) ? JsonNull.INSTANCE : with.get(name);
  }

  /** Whether an argument is there and null. */
  boolean isNull(String name) {
    JsonObject with = step.getAsJsonObject("with");
    return with != null && with.has(name) && with.get(name).isJsonNull();
  }

  private void need(String name, String what) {
    if (get(name).isJsonNull()) {
      throw new CannotSay(what);
    }
  }

  <T> T handle(Class<T> type, String name) {
    return get(name).isJsonNull() ? null : named(type, get(name));
  }

  private <T> T named(Class<T> type, JsonElement name) {
    return type.cast(handles.get(name.getAsString().substring(1)));
  }

  Tensor tensor(String name) {
    return handle(Tensor.class, name);
  }

  Quantizer quantizer(String name) {
    return handle(Quantizer.class, name);
  }

  /** What a method is called on, or a class that has no absent value. */
  <T> T own(Class<T> type, String name) {
    need(name, "an object that is NULL");
    return handle(type, name);
  }

  String text(String name) {
    need(name, "a text that is NULL");
    return get(name).getAsString();
  }

  JsonArray list(String name) {
    need(name, "a list that is NULL");
    return get(name).getAsJsonArray();
  }

  Tensor[] tensors(String name) {
    return StreamSupport.stream(list(name).spliterator(), false)
        .map(item -> item.isJsonNull() ? null : named(Tensor.class, item))
        .toArray(Tensor[]::new);
  }

  List<String> texts(String name) {
    if (list(name).contains(JsonNull.INSTANCE)) {
      throw new CannotSay("a text that is NULL");
    }
    return StreamSupport.stream(list(name).spliterator(), false).map(JsonElement::getAsString).toList();
  }

  long number(String name, long otherwise) {
    return get(name).isJsonNull() ? otherwise : get(name).getAsLong();
  }

  int small(String name) {
    return (int) number(name, 0);
  }

  long index() {
    if (number("index", 0) < 0) {
      throw new CannotSay("an unsigned number below 0");
    }
    return number("index", 0);
  }

  long[] longs(String name) {
    return StreamSupport.stream(list(name).spliterator(), false).mapToLong(JsonElement::getAsLong).toArray();
  }

  long[] longsOrNone(String name) {
    return get(name).isJsonNull() ? new long[0] : longs(name);
  }

  double[] reals(String name) {
    return StreamSupport.stream(list(name).spliterator(), false).mapToDouble(Elements::real).toArray();
  }

  Path place(String text) {
    return text.startsWith("@") ? folder.resolve(text.substring(1)) : root.resolve(text);
  }

  String path() {
    return place(text("path")).toString();
  }

  /** A name or a number. */
  <T extends Enum<T>> T constant(String name, Class<T> type, IntFunction<T> of) {
    JsonElement value = get(name);
    try {
      return isWhole(value) ? of.apply(value.getAsInt()) : Enum.valueOf(type, value.getAsString().toUpperCase());
    } catch (IllegalArgumentException e) {
      throw new CannotSay("a number that no " + type.getSimpleName() + " has");
    }
  }

  DType dtype() {
    return constant("dtype", DType.class, DType::of);
  }

  Scheme scheme() {
    return constant("scheme", Scheme.class, Scheme::of);
  }

  /** A list of bytes, or what a call has given. */
  byte[] bytes() {
    return get("data").isJsonPrimitive() ? own(byte[].class, "data") : data(DType.UINT8);
  }

  byte[] data(DType dtype) {
    return get("data").isJsonNull() ? null : Elements.bytesOf(dtype, get("data").getAsJsonArray());
  }

  Map<String, Object> attrs() {
    return attrs("attrs");
  }

  Map<String, Object> attrs(String name) {
    Map<String, Object> attrs = new HashMap<>();
    if (!get(name).isJsonNull()) {
      get(name).getAsJsonObject().entrySet().forEach(entry -> attrs.put(entry.getKey(), attribute(entry.getValue())));
    }
    return attrs;
  }

  private static Object attribute(JsonElement value) {
    if (value instanceof JsonArray list) {
      return StreamSupport.stream(list.spliterator(), false)
          .<Object>map(item -> isWhole(item) ? (Object) item.getAsLong() : (Object) Elements.real(item))
          .toList();
    } else if (isWhole(value)) {
      return value.getAsLong();
    }
    return value.getAsJsonPrimitive().isNumber() ? (Object) value.getAsDouble() : value.getAsString();
  }

  static boolean isWhole(JsonElement value) {
    return value instanceof JsonPrimitive number && number.isNumber() && number.getAsString().matches("-?[0-9]+");
  }
}
