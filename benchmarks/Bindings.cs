// SPDX-License-Identifier: Apache-2.0
// What bindings.py measures of C#. A line of standard input with the name of a case and a number of calls is answered with
// the microseconds of one.
// usage: mono Bindings.exe MODEL.onnx DIMENSION...
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.Linq;
using QTensor;

internal static class Bindings {
  private static void Main(string[] arguments) {
    long[] shape = arguments.Skip(1).Select(long.Parse).ToArray();
    var array = new float[shape.Aggregate(1L, (a, b) => a * b)];
    Tensor x = Tensor.Wrap(array, shape);
    var session = new Session(Model.Load(arguments[0]), new Attrs { { "threads", 1 } });
    var inputs = new[] { x };
    var cases = new Dictionary<string, Action> {
      ["csharp_run"] = () => session.Run(inputs)[0].Dispose(),
      ["csharp_run_arrays"] = () => {
        using (Tensor t = Tensor.Wrap(array, shape))
        using (Tensor y = session.Run(t)[0]) y.ToArray<float>();
      },
      ["csharp_wrap"] = () => Tensor.Wrap(array, shape).Dispose(),
      ["csharp_shape"] = () => x.Shape.ToString(),
    };
    string line;
    while ((line = Console.ReadLine()) != null) {
      string[] words = line.Split(' ');
      Action call = cases[words[0]];
      int count = int.Parse(words[1]);
      var watch = Stopwatch.StartNew();
      for (int i = 0; i < count; ++i) call();
      Console.WriteLine((watch.Elapsed.TotalMilliseconds * 1000 / count).ToString("R", CultureInfo.InvariantCulture));
    }
  }
}
