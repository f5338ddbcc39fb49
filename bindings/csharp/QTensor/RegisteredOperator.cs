// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace QTensor {

[UnmanagedFunctionPointer(CallingConvention.Cdecl)]
internal delegate int CallFunction(IntPtr call);

[UnmanagedFunctionPointer(CallingConvention.Cdecl)]
internal delegate void ReleasedFunction();

/// <summary>Calls an operator of the program. Nothing is thrown through the library: what it throws is said to the call.</summary>
internal sealed class RegisteredOperator {
  private const int No = 0, Yes = 1, NoMemory = -1;
  // Delegates must live until the library has let go of them.
  private static readonly HashSet<RegisteredOperator> Kept = new HashSet<RegisteredOperator>();

  private readonly Operator op;
  private readonly CallFunction infer, run, runQuantized;
  private readonly ReleasedFunction released;

  internal RegisteredOperator(Operator op) {
    this.op = op;
    infer = call => Guarded(call, Infer);
    run = call => Guarded(call, c => Give(c, op.Run(Inputs(c), c.Attrs())));
    if (op.HasQuantized) runQuantized = call => Guarded(call, RunQuantized);
    released = Release;
  }

  internal void Register(string domain, string name, long sinceVersion) {
    lock (Kept) Kept.Add(this);
    try {
      Op.Register(domain, name, sinceVersion, infer, run, runQuantized, released);
    } catch {
      Release();
      throw;
    }
  }

  private void Release() {
    lock (Kept) Kept.Remove(this);
  }

  private bool Infer(Call call) {
    var inputs = new Operand[call.InputCount()];
    for (long i = 0; i < inputs.Length; ++i) {
      if (call.HasInput(i)) inputs[i] = new Operand(call, i);
    }
    IReadOnlyList<OutputType> types = op.Infer(inputs, call.Attrs(), (int)call.OutputCount());
    if (types == null) return false;
    Check(types.Count, call, "types");
    for (int i = 0; i < types.Count; ++i) call.SetOutputType(i, types[i].Dtype, types[i].Shape);
    return true;
  }

  private bool RunQuantized(Call call) {
    var quantizers = new Quantizer[call.OutputCount()];
    for (long i = 0; i < quantizers.Length; ++i) quantizers[i] = call.OutputQuantizer(i);
    Tensor[] results = op.RunQuantized(Inputs(call), call.Attrs(), quantizers);
    return results != null && Give(call, results);
  }

  private static Tensor[] Inputs(Call call) {
    var inputs = new Tensor[call.InputCount()];
    for (long i = 0; i < inputs.Length; ++i) inputs[i] = call.Input(i);
    return inputs;
  }

  private static bool Give(Call call, Tensor[] results) {
    if (results == null) throw new ArgumentException("the results are null");
    Check(results.Length, call, "results");
    for (int i = 0; i < results.Length; ++i) call.SetOutput(i, results[i]);
    return true;
  }

  private static void Check(int count, Call call, string what) {
    if (count != call.OutputCount()) throw new ArgumentException(count + " " + what + " for " + call.OutputCount() + " outputs");
  }

  private static int Guarded(IntPtr address, Func<Call, bool> body) {
    var call = new Call(address);
    try {
      return body(call) ? Yes : No;
    } catch (QTensorException exception) {
      return Say(call, exception.Status, exception.Message);
    } catch (Exception exception) {
      return Say(call, Status.EINVAL, exception.GetType().Name + ": " + exception.Message);
    }
  }

  private static int Say(Call call, Status status, string message) {
    try {
      call.Fail(status, message);
      return No;
    } catch (Exception) {
      return NoMemory;
    }
  }
}

}
