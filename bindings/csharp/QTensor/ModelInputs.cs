// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;

namespace QTensor {

/// <summary>The inputs of a model: what programs give is put into their order, and doubles, as programs compute them, into
/// floats.</summary>
internal sealed class ModelInputs {
  private static readonly Attrs ToFloats = new Attrs { { "to", (long)DType.Float32 } };
  private readonly string[] names;
  private readonly DType[] dtypes;

  internal ModelInputs(Model model) {
    names = model.InputNames;
    dtypes = Enumerable.Range(0, names.Length).Select(i => model.InputDtype(i)).ToArray();
  }

  /// <summary>One tensor for each input, of those that a dictionary has by their names.</summary>
  internal Tensor[] Ordered(IDictionary<string, Tensor> byName, string what) {
    if (byName == null) throw new ArgumentNullException(what);
    if (byName.Count != names.Length || !names.All(byName.ContainsKey))
      throw new ArgumentException(what + " has the keys " + string.Join(", ", byName.Keys) + ", the model has the inputs " +
                                  string.Join(", ", names));
    return names.Select(name => byName[name]).ToArray();
  }

  /// <summary>The same, where inputs of these numbers may be left out.</summary>
  internal Tensor[] Ordered(IDictionary<string, Tensor> byName, string what, int[] optional) {
    if (optional.Length == 0 || byName == null) return Ordered(byName, what);
    var all = new Dictionary<string, Tensor>(byName);
    foreach (int i in optional)
      if (!all.ContainsKey(names[i])) all[names[i]] = null;
    return Ordered(all, what);
  }

  /// <summary>What a call gives for tensors in the element types of the inputs; copies that were made for it are disposed.
  /// </summary>
  internal R With<R>(IReadOnlyList<Tensor> given, Func<IReadOnlyList<Tensor>, R> call) =>
      given == null || given.Count != dtypes.Length ? call(given) : Fitted(given, i => dtypes[i], call);

  /// <summary>The same for targets of a loss, which takes no doubles.</summary>
  internal static R WithTargets<R>(IReadOnlyList<Tensor> given, Func<IReadOnlyList<Tensor>, R> call) =>
      given == null ? call(null) : Fitted(given, i => DType.Float32, call);

  /// <summary>The tensor that input number `index` takes, and behind the inputs a target: itself, or a copy that is the
  /// caller's.</summary>
  internal Tensor Narrowed(Tensor given, int index) =>
      IsWider(given, index < dtypes.Length ? dtypes[index] : DType.Float32) ? Floats(given) : null;

  private static bool IsWider(Tensor given, DType wanted) =>
      given != null && wanted == DType.Float32 && given.Dtype == DType.Float64;

  private static Tensor Floats(Tensor doubles) => Op.Run("Cast", new[] { doubles }, ToFloats)[0];

  // Converts what the library has refused: so what fits costs no look at it.
  private static R Fitted<R>(IReadOnlyList<Tensor> given, Func<int, DType> wanted, Func<IReadOnlyList<Tensor>, R> call) {
    try {
      return call(given);
    } catch (QTensorException e) when (e.Status == Status.EDTYPE && given.Where((x, i) => IsWider(x, wanted(i))).Any()) {
      Tensor[] tensors = given.ToArray();
      try {
        for (int i = 0; i < tensors.Length; ++i)
          if (IsWider(given[i], wanted(i))) tensors[i] = Floats(given[i]);
        return call(tensors);
      } finally {
        for (int i = 0; i < tensors.Length; ++i)
          if (!ReferenceEquals(tensors[i], given[i])) tensors[i].Dispose();
      }
    }
  }
}

}
