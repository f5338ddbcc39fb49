// SPDX-License-Identifier: Apache-2.0

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.qtensor.DType;
import org.qtensor.Lib;
import org.qtensor.QTensorException;
import org.qtensor.Quantizer;
import org.qtensor.Tensor;

/**
 * Runs the cases of tests/conformance through the package: the same values, bits and error texts as C. Steps that Java
 * cannot express, a NULL where there is always an object, are counted by what they lack.
 *
 * <p>usage: Conformance ROOT CASES.json...
 */
final class Conformance {
  /** What a step gave instead of what it must. */
  private static final class Wrong extends RuntimeException {
    private static final long serialVersionUID = 1;

    Wrong(String what) {
      super(what);
    }
  }

  private static final Set<String> REALS = Set.of("nan", "inf", "-inf");
  private static final List<String> OUTPUTS = List.of("out", "outputs", "out_loss", "out_len", "buf");
  private static final List<String> COUNTS = List.of("count", "rank", "input_count", "target_count", "nbytes", "cap");

  private final Path root;
  private final Path folder;
  private final Map<String, List<String>> unsayable = new TreeMap<>();

  private Conformance(Path root, Path folder) {
    this.root = root;
    this.folder = folder;
  }

  // --- what came out beside what must

  private static boolean same(JsonElement got, JsonElement want, double tolerance) {
    if (want instanceof JsonObject members) {
      return got instanceof JsonObject object
          && members.keySet().stream().allMatch(
              key -> object.has(key) && same(object.get(key), members.get(key), tolerance));
    } else if (want instanceof JsonArray items) {
      if (!(got instanceof JsonArray list) || list.size() != items.size()) {
        return false;
      }
      for (int i = 0; i < items.size(); ++i) {
        if (!same(list.get(i), items.get(i), tolerance)) {
          return false;
        }
      }
      return true;
    } else if (isNumber(got) && (isNumber(want) || want.isJsonPrimitive() && REALS.contains(want.getAsString()))) {
      if (Frame.isWhole(got) && Frame.isWhole(want)) {
        return got.getAsBigInteger().equals(want.getAsBigInteger());
      }
      double a = got.getAsDouble();
      double b = Elements.real(want);
      return a == b || a != a && b != b || Math.abs(a - b) <= tolerance;
    }
    return got.equals(want);
  }

  private static boolean isNumber(JsonElement value) {
    return value instanceof JsonPrimitive primitive && primitive.isNumber();
  }

  private static void check(String what, JsonElement got, JsonElement want, double tolerance) {
    if (!same(got, want, tolerance)) {
      throw new Wrong(String.format("%s is %.180s, not %.180s", what, got, want));
    }
  }

  private static void check(String what, String got, String want) {
    check(what, new JsonPrimitive(got), new JsonPrimitive(want), 0);
  }

  private static JsonElement json(Object value) {
    if (value instanceof Boolean flag) {
      return new JsonPrimitive(flag);
    } else if (value instanceof Number number) {
      return new JsonPrimitive(number);
    } else if (value instanceof String text) {
      return new JsonPrimitive(text);
    } else if (value instanceof long[] longs) {
      return array(Arrays.stream(longs).boxed());
    } else if (value instanceof double[] doubles) {
      return array(Arrays.stream(doubles).boxed());
    } else if (value instanceof Map<?, ?> map) {
      JsonObject object = new JsonObject();
      map.forEach((key, member) -> object.add((String) key, json(member)));
      return object;
    }
    return JsonNull.INSTANCE;
  }

  private static JsonArray array(Stream<? extends Number> numbers) {
    JsonArray array = new JsonArray();
    numbers.forEach(array::add);
    return array;
  }

  private static JsonElement gridOf(Quantizer q) {
    return q == null ? JsonNull.INSTANCE
                     : json(Map.of("scheme", q.scheme().value(), "axis", q.axis(), "scales", q.scales(), "zero_points",
                         q.zeroPoints(), "numerics", q.numerics(), "block_size", q.blockSize()));
  }

  // --- steps

  private static double tolerance(Frame f) {
    return f.step.has("tolerance") ? f.step.get("tolerance").getAsDouble() : 0;
  }

  private static void expect(Frame f) {
    Object got = f.handles.get(f.step.get("expect").getAsString().substring(1));
    double tolerance = tolerance(f);
    if (f.step.has("json")) {
      check("json", JsonParser.parseString((String) got), f.step.get("json"), tolerance);
      return;
    }
    Tensor t = (Tensor) got;
    for (String key : f.step.keySet()) {
      JsonElement want = f.step.get(key);
      switch (key) {
        case "expect", "tolerance" -> { }
        case "dtype" -> check(key, Lib.dtypeName(t.dtype()), want.getAsString());
        case "shape" -> check(key, json(t.shape()), want, 0);
        case "data" -> check(key, Elements.elementsOf(t), rounded(t, want.getAsJsonArray()), tolerance);
        case "quantizer" -> check(key, gridOf(t.quantizer()), want, 0);
        case "text" -> check(key, t.toString(), want.getAsString());
        default -> throw new Wrong('"' + key + "\" is nothing to expect");
      }
    }
  }

  /** Reals as the tensor has them. */
  private static JsonArray rounded(Tensor t, JsonArray want) {
    if (t.dtype() != DType.FLOAT32) {
      return want;
    }
    JsonArray rounded = new JsonArray();
    want.forEach(value -> rounded.add((double) (float) Elements.real(value)));
    return rounded;
  }

  private static void refuseUnsayable(Frame f, String call) {
    for (String name : OUTPUTS) {
      if (f.isNull(name)) {
        throw new Frame.CannotSay("an output that is NULL");
      }
    }
    for (String name : COUNTS) {
      boolean counts = !(call.equals("qlib_set_threads") && name.equals("count"))
          && !(call.equals("qobserver_load") && name.equals("nbytes"));
      if (counts && f.step.has("status") && !f.get(name).isJsonNull()) {
        throw new Frame.CannotSay("a list of another length than it has");
      }
    }
  }

  private void call(Frame f) throws Exception {
    String call = f.step.get("call").getAsString();
    refuseUnsayable(f, call);
    if (!Calls.BY_NAME.containsKey(call)) {
      throw new Wrong("Calls.java has no row for " + call);
    }
    Object result;
    try {
      result = Calls.BY_NAME.get(call).of(f);
    } catch (QTensorException e) {
      if (!f.step.has("status")) {
        throw new Wrong(call + " is " + e.status() + ": " + e.getMessage());
      }
      check("status", "QTN_" + e.status(), f.step.get("status").getAsString());
      check("message", e.getMessage(), f.step.get("message").getAsString().replace("{folder}", folder.toString()));
      return;
    }
    if (f.step.has("status")) {
      throw new Wrong(call + " is QTN_OK, not " + f.step.get("status"));
    }
    JsonElement out = f.step.get("out");
    if (out instanceof JsonArray names) {
      for (int i = 0; i < names.size(); ++i) {
        f.handles.put(names.get(i).getAsString(), ((Tensor[]) result)[i]);
      }
    } else if (out != null) {
      f.handles.put(out.getAsString(), result instanceof Tensor[] several ? several[0] : result);
    }
    if (f.step.has("equals")) {
      check(call, json(result), f.step.get("equals"), tolerance(f));
    }
  }

  private void run(JsonObject test) {
    Frame f = new Frame(root, folder);
    int number = 0;
    for (JsonElement step : test.getAsJsonArray("steps")) {
      ++number;
      f.step = step.getAsJsonObject();
      try {
        if (f.step.has("expect")) {
          expect(f);
        } else {
          call(f);
        }
      } catch (Frame.CannotSay why) {
        unsayable.computeIfAbsent(why.getMessage(), unused -> new ArrayList<>()).add(f.step.get("call").getAsString());
        if (!f.step.has("status")) {
          return; // what follows needs it
        }
      } catch (Exception e) {
        throw new Wrong(test.get("name").getAsString() + ", step " + number + ": " + e);
      }
    }
  }

  private boolean runAll(List<Path> files) throws Exception {
    int total = 0;
    int failed = 0;
    for (Path file : files) {
      for (JsonElement test : JsonParser.parseString(Files.readString(file)).getAsJsonArray()) {
        ++total;
        try {
          run(test.getAsJsonObject());
        } catch (Wrong wrong) {
          ++failed;
          System.out.println("FAILED  " + wrong.getMessage());
        }
      }
    }
    for (Map.Entry<String, List<String>> entry : unsayable.entrySet()) {
      List<String> calls = entry.getValue();
      System.out.printf("Java cannot say %s: %d steps of %d functions%n", entry.getKey(), calls.size(),
          calls.stream().distinct().count());
    }
    String symbols = Files.readString(root.resolve("capi/symbols.txt"));
    List<String> unknown = Calls.BY_NAME.keySet().stream()
        .filter(name -> !Pattern.compile("(?m)^" + name + " ").matcher(symbols).find()).toList();
    if (!unknown.isEmpty()) {
      System.out.println("C has no " + unknown);
    }
    System.out.printf("%d cases, %d failed%n", total, failed);
    return failed == 0 && unknown.isEmpty() && total > 0;
  }

  public static void main(String[] arguments) throws Exception {
    Path folder = Files.createTempDirectory("conformance");
    boolean good;
    try {
      good = new Conformance(Path.of(arguments[0]), folder).runAll(Stream.of(arguments).skip(1).map(Path::of).toList());
    } finally {
      try (Stream<Path> left = Files.walk(folder)) {
        for (Path path : left.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(path);
        }
      }
    }
    System.exit(good ? 0 : 1);
  }
}
