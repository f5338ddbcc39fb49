// SPDX-License-Identifier: Apache-2.0
using System.Collections.Generic;

namespace QTensor {

/// <summary>Options by their keys, as a short way to write a dictionary: new Attrs { { "bins", 64 } }. Values are whole or
/// real numbers, bools, strings, and lists of numbers.</summary>
public sealed class Attrs : Dictionary<string, object> {}

}
