// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;

namespace QTensor {

[UnmanagedFunctionPointer(CallingConvention.Cdecl)]
internal delegate int SampleFunction(long index, IntPtr tensors);

[UnmanagedFunctionPointer(CallingConvention.Cdecl)]
internal delegate int BatchFunction(long epoch, long index, IntPtr tensors);

[UnmanagedFunctionPointer(CallingConvention.Cdecl)]
internal delegate int ProgressFunction(IntPtr stage, long size, long done, long total);

[UnmanagedFunctionPointer(CallingConvention.Cdecl)]
internal delegate int TrainingFunction(IntPtr stage, long size, long done, long total, double loss);

/// <summary>What the library calls while it quantizes a model. Exceptions do not pass through it: the first one waits here,
/// the callback answers that it has failed, and Run throws the same object once the library is back.</summary>
internal sealed class Callbacks {
  private const int Failed = 0, Done = 1;
  private ExceptionDispatchInfo thrown;

  internal Model Run(Func<Model> call) {
    try {
      return call();
    } catch (QTensorException) when (thrown != null) {
      thrown.Throw();
      throw;
    }
  }

  internal SampleFunction Sample(IReadOnlyList<Tensor[]> samples, ModelInputs inputs) => (index, tensors) => Guarded(Failed, () => {
    Give(tensors, samples[(int)index], "sample " + index, inputs, 0);
    return Done;
  });

  internal BatchFunction Batch(Func<long, long, Batch> batches, ModelInputs inputs) => (epoch, index, tensors) => Guarded(Failed, () => {
    Batch batch = batches(epoch, index);
    if (batch == null) throw new ArgumentException("batch " + index + " is null");
    Give(tensors, batch.Inputs, "inputs of batch " + index, inputs, 0);
    Give(tensors, batch.Targets, "targets of batch " + index, inputs, batch.Inputs.Length);
    return Done;
  });

  internal ProgressFunction Progress(Func<string, long, long, bool> progress) {
    if (progress == null) return null;
    return (stage, size, done, total) =>
        Guarded(Failed, () => progress(Utf8.Text(stage, size), done, total) ? Done : Failed);
  }

  internal TrainingFunction Training(Func<string, long, long, double, TrainingAnswer> progress) {
    if (progress == null) return null;
    return (stage, size, done, total, loss) =>
        Guarded((int)TrainingAnswer.Cancel, () => (int)progress(Utf8.Text(stage, size), done, total, loss));
  }

  private static void Give(IntPtr list, Tensor[] tensors, string name, ModelInputs inputs, int first) {
    if (tensors == null) throw new ArgumentException(name + " is null");
    for (int i = 0; i < tensors.Length; ++i) {
      using (Tensor floats = inputs.Narrowed(tensors[i], first + i)) Tensor.Give(list, floats ?? tensors[i]);
    }
  }

  private int Guarded(int failed, Func<int> call) {
    try {
      return call();
    } catch (Exception exception) {
      thrown = thrown ?? ExceptionDispatchInfo.Capture(exception);
      return failed;
    }
  }
}

}
