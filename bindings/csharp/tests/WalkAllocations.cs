// SPDX-License-Identifier: Apache-2.0
// The cases of tests/conformance through the package for C#, each call with its allocations failing in turn: it throws
// QTensorException with ENOMEM, and the same call succeeds afterwards with what the case expects. Runs with failing_new
// preloaded.
//
// usage: mono WalkAllocations.exe DENSE ROOT CASES.json...
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using QTensor;

internal static class WalkAllocations {
  // Once they have succeeded, these have taken what they were given into account.
  private static readonly HashSet<string> Once = new HashSet<string> {
    "qobserver_observe", "qobserver_merge", "qmodel_calibrate", "qtrainer_step", "qtrainer_backward", "qtrainer_update",
  };
  private static long points;

  [DllImport("__Internal", EntryPoint = "fail_new")]
  private static extern void Fail(IntPtr allocation);

  /// <summary>Whether that allocation was reached.</summary>
  [DllImport("__Internal", EntryPoint = "stop_failing_new")]
  [return: MarshalAs(UnmanagedType.I1)]
  private static extern bool Stop();

  /// <summary>A run that does has moved it on, whatever becomes of the results on their way to C#.</summary>
  private static bool ReadsState(Frame f) => f.Get("inputs") is List<object> inputs && inputs.Contains(null);

  private static Func<Frame, object> Over(string function, Func<Frame, object> call, long dense) => f => {
    if (ReadsState(f)) return call(f);
    Exception other = null;
    for (long n = 1;; n += n <= dense ? 1 : n / 10 + 1) {
      object result = null;
      Exception error = null;
      bool failed;
      Fail((IntPtr)n);
      try {
        result = call(f);
      } catch (Exception exception) {
        error = exception;
      } finally {
        failed = Stop();
      }
      points += failed ? 1 : 0;
      bool lacked = failed && error is QTensorException exhausted && exhausted.Status == Status.ENOMEM;
      if (!lacked && error != null && other == null) other = error;
      if (failed && (error != null || !Once.Contains(function))) continue;
      // Where a call fails in any case, it may have found out before it missed the memory.
      if (other != null && other.Message != error?.Message) throw new Wrong(function + ", allocation " + n + ": " + other);
      if (error != null) throw error;
      return result;
    }
  };

  private static int Main(string[] arguments) {
    Lib.Version();  // The library is loaded with memory.
    long dense = long.Parse(arguments[0]);
    foreach (string name in Conformance.Calls.Keys.ToArray()) Conformance.Calls[name] = Over(name, Conformance.Calls[name], dense);
    int status = Conformance.Main(arguments.Skip(1).ToArray());
    Console.WriteLine("points " + points);
    return status;
  }
}
