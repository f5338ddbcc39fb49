// SPDX-License-Identifier: Apache-2.0

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.qtensor.DType;
import org.qtensor.Model;
import org.qtensor.Op;
import org.qtensor.Operator;
import org.qtensor.QTensorException;
import org.qtensor.Quantizer;
import org.qtensor.Session;
import org.qtensor.Status;
import org.qtensor.Tensor;

/** Operators that programs register. The networks, and what they compute, are those of tests/golden/make_custom.py. */
class OperatorTest {
  private static final Path CUSTOM = Path.of(System.getProperty("qtensor.root"), "tests/golden/custom");

  private static class Swish implements Operator {
    @Override
    public List<Type> infer(List<Operand> inputs, Map<String, Object> attributes, int outputs) {
      return List.of(new Type(inputs.get(0).dtype(), inputs.get(0).shape()));
    }

    @Override
    public Tensor[] run(Tensor[] inputs, Map<String, Object> attributes) {
      float alpha = ((Double) attributes.getOrDefault("alpha", 1.0)).floatValue();
      float[] x = inputs[0].toFloatArray();
      for (int i = 0; i < x.length; ++i) {
        x[i] /= 1 + (float) Math.exp(-alpha * x[i]);
      }
      return new Tensor[] {Tensor.of(x, inputs[0].shape())};
    }
  }

  private static Tensor load(String name) {
    return Tensor.loadNpy(CUSTOM.resolve(name + ".npy").toString());
  }

  private static float[] run(Session session) {
    return session.run(load("swish_x"))[0].toFloatArray();
  }

  @Test
  void aSessionOutlivesARegistration() throws Exception {
    Operator swish = new Swish();
    WeakReference<Operator> last = new WeakReference<>(swish);
    Operator.register("com.example", "Swish", 1, swish);
    swish = null;
    try (Model model = Model.load(CUSTOM.resolve("swish.onnx")); Session session = new Session(model)) {
      Operator.unregister("com.example", "Swish", 1);
      assertArrayEquals(load("swish_y").toFloatArray(), run(session), 2e-5f);
      assertThrows(QTensorException.class, () -> Model.load(CUSTOM.resolve("swish.onnx")));
    }
    Operator.register("com.example", "Other", 1, new Swish()); // deletes what is not used any more
    Operator.unregister("com.example", "Other", 1);
    for (int tries = 0; last.get() != null && tries < 50; ++tries) {
      LifetimesTest.collect();
    }
    assertNull(last.get());
  }

  @Test
  void integersAreComputedWhereTheyAreWanted() {
    AtomicInteger calls = new AtomicInteger();
    Operator swish = new Swish() {
      @Override
      public boolean hasQuantized() {
        return true;
      }

      @Override
      public Tensor[] runQuantized(Tensor[] inputs, Map<String, Object> attributes, Quantizer[] quantizers) {
        calls.incrementAndGet();
        return new Tensor[] {run(new Tensor[] {inputs[0].dequantize()}, attributes)[0].quantize(quantizers[0])};
      }
    };
    Operator.register("com.example", "Swish", 1, swish);
    try (Model model = Model.load(CUSTOM.resolve("swish.onnx")); Model int8 = model.quantize(load("swish_x"));
        Session session = new Session(int8); Session reference = new Session(int8, Map.of("engine", "reference"))) {
      int before = calls.get();
      float[] y = run(session);
      assertEquals(before + 1, calls.get());
      assertArrayEquals(run(reference), y);
      assertArrayEquals(load("swish_y").toFloatArray(), y, 0.2f);
    } finally {
      Operator.unregister("com.example", "Swish", 1);
    }
  }

  @Test
  void whatIsThrownComesOut() {
    Operator broken = new Swish() {
      @Override
      public Tensor[] run(Tensor[] inputs, Map<String, Object> attributes) {
        throw new IllegalStateException("no such luck");
      }
    };
    Operator.register("com.example", "Broken", 1, broken);
    QTensorException e = assertThrows(QTensorException.class,
        () -> Op.run("com.example::Broken", new Tensor[] {Tensor.of(new float[] {1}, 1)}, null, 1));
    Operator.unregister("com.example", "Broken", 1);
    assertEquals(Status.EINVAL, e.status());
    assertTrue(e.getMessage().contains("com.example::Broken: java.lang.IllegalStateException: no such luck"), e.getMessage());
  }

  @Test
  void attributesHaveTheirKinds() {
    Operator look = new Swish() {
      @Override
      public List<Type> infer(List<Operand> inputs, Map<String, Object> attributes, int outputs) {
        assertNull(inputs.get(0));
        assertEquals(3L, attributes.get("i"));
        assertEquals(0.5, attributes.get("f"));
        assertEquals("text", attributes.get("s"));
        assertArrayEquals(new long[] {1, 2}, (long[]) attributes.get("is"));
        assertArrayEquals(new double[] {0.5, 1.5}, (double[]) attributes.get("fs"));
        return List.of(new Type(DType.FLOAT32, 1));
      }

      @Override
      public Tensor[] run(Tensor[] inputs, Map<String, Object> attributes) {
        assertNull(inputs[0]);
        return new Tensor[] {Tensor.of(new float[] {7}, 1)};
      }
    };
    Operator.register("com.example", "Look", 1, look);
    try {
      Tensor[] y = Op.run("com.example::Look", new Tensor[] {null, Tensor.of(new float[] {1}, 1)},
          Map.of("i", 3, "f", 0.5, "s", "text", "is", List.of(1, 2), "fs", List.of(0.5, 1.5)), 1);
      assertArrayEquals(new float[] {7}, y[0].toFloatArray());
    } finally {
      Operator.unregister("com.example", "Look", 1);
    }
  }
}
