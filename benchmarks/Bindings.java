// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import org.qtensor.Model;
import org.qtensor.Session;
import org.qtensor.Tensor;

/**
 * What bindings.py measures of Java. A line of standard input with the name of a case and a number of calls is answered
 * with the microseconds of one.
 *
 * <p>usage: Bindings MODEL.onnx DIMENSION...
 */
final class Bindings {
  private Bindings() {}

  public static void main(String[] arguments) throws Exception {
    long[] shape = Arrays.stream(arguments).skip(1).mapToLong(Long::parseLong).toArray();
    float[] array = new float[(int) Arrays.stream(shape).reduce(1, (a, b) -> a * b)];
    FloatBuffer buffer = ByteBuffer.allocateDirect(4 * array.length).order(ByteOrder.nativeOrder()).asFloatBuffer();
    Tensor x = Tensor.of(array, shape);
    Session session = new Session(Model.load(Path.of(arguments[0])), Map.of("threads", 1));
    Map<String, Runnable> cases = Map.of("java_run", () -> session.run(x)[0].close(), "java_run_arrays", () -> {
      try (Tensor in = Tensor.of(array, shape); Tensor out = session.run(in)[0]) {
        out.toFloatArray();
      }
    }, "java_wrap", () -> Tensor.wrap(buffer, shape).close(), "java_shape", x::shape);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.split(" ");
      Runnable call = cases.get(words[0]);
      int count = Integer.parseInt(words[1]);
      long start = System.nanoTime();
      for (int i = 0; i < count; ++i) {
        call.run();
      }
      System.out.println((System.nanoTime() - start) / 1e3 / count);
    }
  }
}
