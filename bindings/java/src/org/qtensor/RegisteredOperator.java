// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Calls an operator of the program. Nothing is thrown through the library: what it throws is said to the call. */
final class RegisteredOperator extends OperatorDirector {
  private static final Set<RegisteredOperator> KEPT = ConcurrentHashMap.newKeySet();
  // What the library has let go of is deleted by the next registration: not within its last callback.
  private static final Queue<RegisteredOperator> RELEASED = new ConcurrentLinkedQueue<>();

  private final Operator operator;

  private RegisteredOperator(Operator operator) {
    this.operator = operator;
  }

  static void register(String domain, String name, long sinceVersion, Operator operator) {
    if (operator == null) {
      throw new NullPointerException("operator is null");
    }
    for (RegisteredOperator old = RELEASED.poll(); old != null; old = RELEASED.poll()) {
      old.delete();
    }
    RegisteredOperator registered = new RegisteredOperator(operator);
    KEPT.add(registered);
    try {
      Op.registerOperator(domain, name, sinceVersion, registered);
    } catch (RuntimeException e) {
      registered.released();
      throw e;
    }
  }

  @Override
  public boolean infer(Call call) {
    return guarded(call, () -> {
      List<Operator.Operand> inputs = new ArrayList<>();
      for (long i = 0; i < call.inputCount(); ++i) {
        inputs.add(call.hasInput(i)
            ? new Operator.Operand(call.inputDtype(i), call.inputShape(i), call.input(i)) : null);
      }
      List<Operator.Type> types = operator.infer(inputs, AttrsBase.map(call.attrs()), (int) call.outputCount());
      if (types == null) {
        return false;
      }
      check(types.size(), call, "types");
      for (int i = 0; i < types.size(); ++i) {
        call.setOutputType(i, types.get(i).dtype(), types.get(i).shape());
      }
      return true;
    });
  }

  @Override
  public void run(Call call) {
    guarded(call, () -> give(call, operator.run(inputs(call), AttrsBase.map(call.attrs()))));
  }

  @Override
  public boolean hasQuantized() {
    return operator.hasQuantized();
  }

  @Override
  public boolean runQuantized(Call call) {
    return guarded(call, () -> {
      Quantizer[] quantizers = new Quantizer[(int) call.outputCount()];
      Arrays.setAll(quantizers, call::outputQuantizer);
      Tensor[] results = operator.runQuantized(inputs(call), AttrsBase.map(call.attrs()), quantizers);
      return results != null && give(call, results);
    });
  }

  @Override
  public void released() {
    KEPT.remove(this);
    RELEASED.add(this);
  }

  private static Tensor[] inputs(Call call) {
    Tensor[] inputs = new Tensor[(int) call.inputCount()];
    Arrays.setAll(inputs, call::input);
    return inputs;
  }

  private static boolean give(Call call, Tensor[] results) {
    check(results.length, call, "results");
    for (int i = 0; i < results.length; ++i) {
      call.setOutput(i, results[i]);
    }
    return true;
  }

  private static void check(int count, Call call, String what) {
    if (count != call.outputCount()) {
      throw new IllegalArgumentException(count + " " + what + " for " + call.outputCount() + " outputs");
    }
  }

  private interface Body {
    boolean run();
  }

  private static boolean guarded(Call call, Body body) {
    try {
      return body.run();
    } catch (QTensorException e) {
      call.fail(e.status(), e.getMessage());
    } catch (Throwable e) {
      call.fail(Status.EINVAL, e.toString());
    }
    return false;
  }
}
