// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/** The inputs of a model: what programs give is put into their order, and doubles, as programs compute them, into floats. */
final class ModelInputs {
  private final List<String> names;
  private final DType[] dtypes;

  ModelInputs(Model model) {
    names = model.inputs();
    dtypes = LongStream.range(0, names.size()).mapToObj(model::inputDtype).toArray(DType[]::new);
  }

  /** One value for each input, of those that a map has by their names. */
  <T> List<T> ordered(Map<String, T> byName, String what) {
    Objects.requireNonNull(byName, () -> what + " is null");
    if (!byName.keySet().equals(Set.copyOf(names))) {
      throw new IllegalArgumentException(what + " has the keys " + byName.keySet() + ", the model has the inputs " + names);
    }
    return names.stream().map(byName::get).toList();
  }

  /** Inputs of these numbers may be left out. */
  Tensor[] ordered(Map<String, Tensor> byName, Set<Integer> optional) {
    if (optional.isEmpty()) {
      return ordered(byName);
    }
    Objects.requireNonNull(byName, "inputs is null");
    Map<String, Tensor> all = new HashMap<>(byName);
    optional.forEach(i -> all.putIfAbsent(names.get(i), null));
    if (!all.keySet().equals(Set.copyOf(names))) {
      return ordered(byName); // which refuses it
    }
    return names.stream().map(all::get).toArray(Tensor[]::new);
  }

  Tensor[] ordered(Map<String, Tensor> byName) {
    return ordered(byName, "inputs").toArray(Tensor[]::new);
  }

  /** What a call gives for tensors in the element types of the inputs; copies that were made for it are closed. */
  <R> R with(Tensor[] given, Function<Tensor[], R> call) {
    if (given == null || given.length != dtypes.length) {
      return call.apply(given); // which refuses it
    }
    return fitted(given, dtypes, call);
  }

  /** The same for targets of a loss, which takes no doubles. */
  static <R> R withTargets(Tensor[] given, Function<Tensor[], R> call) {
    return given == null ? call.apply(null)
                         : fitted(given, Stream.generate(() -> DType.FLOAT32).limit(given.length).toArray(DType[]::new), call);
  }

  /** Converts what the library has refused: so what fits costs no look at it. */
  private static <R> R fitted(Tensor[] given, DType[] wanted, Function<Tensor[], R> call) {
    try {
      return call.apply(given);
    } catch (QTensorException e) {
      List<Tensor> made = new ArrayList<>();
      try {
        Tensor[] tensors = given.clone();
        for (int i = 0; i < given.length && e.status() == Status.EDTYPE; ++i) {
          if (given[i] != null && wanted[i] == DType.FLOAT32 && given[i].dtype() == DType.FLOAT64) {
            tensors[i] = floats(given[i]);
            made.add(tensors[i]);
          }
        }
        if (made.isEmpty()) {
          throw e;
        }
        return call.apply(tensors);
      } finally {
        made.forEach(Tensor::close);
      }
    }
  }

  /** Tensors of callbacks, which the library keeps. */
  Tensor[] kept(Tensor[] given) {
    return given == null || given.length < dtypes.length ? given : kept(given, dtypes);
  }

  private static Tensor[] kept(Tensor[] given, DType[] wanted) {
    Tensor[] tensors = given.clone();
    for (int i = 0; i < given.length; ++i) {
      DType dtype = i < wanted.length ? wanted[i] : DType.FLOAT32; // behind the inputs are targets
      if (given[i] != null && dtype == DType.FLOAT32 && given[i].dtype() == DType.FLOAT64) {
        tensors[i] = floats(given[i]);
      }
    }
    return tensors;
  }

  private static Tensor floats(Tensor doubles) {
    return Op.run("Cast", new Tensor[] {doubles}, Map.of("to", DType.FLOAT32.value()))[0];
  }
}
