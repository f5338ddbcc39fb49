// SPDX-License-Identifier: Apache-2.0

import com.google.gson.JsonArray;
import com.google.gson.JsonNull;
import java.util.Arrays;
import java.util.Set;
import org.qtensor.Lib;
import org.qtensor.QTensorException;
import org.qtensor.Status;

/**
 * The cases of tests/conformance through the package for Java, each call with its allocations failing in turn: it throws
 * QTensorException with ENOMEM, and the same call succeeds afterwards with what the case expects. Runs with failing_new
 * preloaded.
 *
 * <p>usage: WalkAllocations FAILING_NEW DENSE ROOT CASES.json...
 */
final class WalkAllocations {
  /** Once they have succeeded, these have taken what they were given into account. */
  private static final Set<String> ONCE = Set.of("qobserver_observe", "qobserver_merge", "qmodel_calibrate", "qtrainer_step",
      "qtrainer_backward", "qtrainer_update");

  private static long points;

  private WalkAllocations() {}

  private static native void fail(long allocation);

  /** Whether that allocation was reached. */
  private static native boolean stop();

  /** A run that does has moved it on, whatever becomes of the results on their way to Java. */
  private static boolean readsState(Frame f) {
    return f.get("inputs") instanceof JsonArray inputs && inputs.contains(JsonNull.INSTANCE);
  }

  private static Calls.Call over(String function, Calls.Call call, long dense) {
    return f -> {
      if (readsState(f)) {
        return call.of(f);
      }
      Exception other = null;
      for (long n = 1;; n += n <= dense ? 1 : n / 10 + 1) {
        Object result = null;
        Exception error = null;
        boolean failed;
        fail(n);
        try {
          result = call.of(f);
        } catch (QTensorException | Frame.CannotSay | IllegalArgumentException | IllegalStateException | NullPointerException e) {
          error = e;
        } finally {
          failed = stop();
        }
        points += failed ? 1 : 0;
        boolean lacked = failed && error instanceof QTensorException e && e.status() == Status.ENOMEM;
        if (!lacked && error != null && other == null) {
          other = error;
        }
        if (failed && (error != null || !ONCE.contains(function))) {
          continue;
        }
        // Where a call fails in any case, it may have found out before it missed the memory.
        if (other != null && (error == null || !String.valueOf(other.getMessage()).equals(error.getMessage()))) {
          throw new IllegalStateException(function + ", allocation " + n + ": " + other, other);
        }
        if (error != null) {
          throw error;
        }
        return result;
      }
    };
  }

  public static void main(String[] arguments) throws Exception {
    System.load(arguments[0]);
    Lib.version(); // The library is loaded with memory.
    long dense = Long.parseLong(arguments[1]);
    Calls.BY_NAME.replaceAll((name, call) -> over(name, call, dense));
    Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("points " + points)));
    Conformance.main(Arrays.copyOfRange(arguments, 2, arguments.length));
  }
}
