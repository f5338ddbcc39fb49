// SPDX-License-Identifier: Apache-2.0

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.qtensor.Batches;
import org.qtensor.Config;
import org.qtensor.DType;
import org.qtensor.Layer;
import org.qtensor.Mode;
import org.qtensor.Model;
import org.qtensor.Op;
import org.qtensor.QTensorException;
import org.qtensor.Report;
import org.qtensor.Samples;
import org.qtensor.Session;
import org.qtensor.Status;
import org.qtensor.Tensor;
import org.qtensor.Trainer;
import org.qtensor.TrainingProgress.Answer;

/** From a float model to an int8 one: data in every form, callbacks, sessions, training. */
class ModelTest {
  static float[] scores(Model model) {
    try (Session session = new Session(model)) {
      return session.run(Data.IMAGES)[0].toFloatArray();
    }
  }

  static QTensorException fails(Status status, String part, Executable call) {
    QTensorException thrown = assertThrows(QTensorException.class, call);
    assertEquals(status, thrown.status());
    assertTrue(thrown.getMessage().contains(part), thrown.getMessage());
    return thrown;
  }

  @Test
  void everyFormOfDataGivesTheSameModel() {
    Model model = Data.digits();
    float[] want = scores(model.quantize(Samples.rows(Data.IMAGES)));
    List<Tensor[]> rows = Data.rows();
    assertArrayEquals(want, scores(model.quantize(Samples.of(rows))));
    assertArrayEquals(want, scores(model.quantize(Samples.of(rows.size(), i -> rows.get((int) i)), "onnx")));
    assertArrayEquals(want, scores(model.quantize(Data.IMAGES)));
    assertArrayEquals(want, scores(model.quantize(Map.of("image", Data.IMAGES))));
    assertEquals("rows has the keys [picture], the model has the inputs [image]",
        assertThrows(IllegalArgumentException.class, () -> model.quantize(Map.of("picture", Data.IMAGES))).getMessage());
    assertEquals(14, Samples.rows(Data.IMAGES, 3).count());
    assertArrayEquals(new long[] {3, 1, 8, 8}, Samples.rows(Data.IMAGES, 3).sample(12)[0].shape());
    assertArrayEquals(new long[] {1, 1, 8, 8}, Samples.rows(Data.IMAGES, 3).sample(13)[0].shape());
    float[] floats = Data.IMAGES.toFloatArray();
    double[] doubles = IntStream.range(0, floats.length).mapToDouble(i -> floats[i]).toArray();
    assertArrayEquals(want, scores(model.quantize(Samples.rows(Tensor.of(doubles, Data.IMAGES.shape())))));
    Model prepared = model.prepare(new Config("onnx"), Mode.PTQ);
    rows.forEach(prepared::calibrate);
    Model plain = model.quantize(Samples.rows(Data.IMAGES), new Config("onnx"), Map.of("plain", true), null);
    assertArrayEquals(scores(plain), scores(prepared.convert()));
    assertFalse(Arrays.equals(want, scores(model)));
  }

  @Test
  void configurations(@TempDir Path folder) {
    Model model = Data.digits();
    Config config = new Config("onnx").leaveInFloat("op:Gemm").set("*", Map.of("observer", "entropy"));
    config.save(folder.resolve("config.json"));
    Model some = model.quantize(Samples.rows(Data.IMAGES), Config.load(folder.resolve("config.json")), null, null);
    assertTrue(some.inspect().contains("Gemm"));
    assertArrayEquals(scores(model.quantize(Samples.rows(Data.IMAGES), "nvidia")),
        scores(model.quantize(Samples.rows(Data.IMAGES), new Config("nvidia"), Map.of(), null)));
    fails(Status.EUNSUPPORTED, "nonsense", () -> model.quantize(Samples.rows(Data.IMAGES), "nonsense"));
    Config none = new Config("onnx").set("op:Gemm", null);
    float[] all = scores(model.quantize(Samples.rows(Data.IMAGES), "onnx"));
    assertFalse(Arrays.equals(all, scores(model.quantize(Samples.rows(Data.IMAGES), none, null, null))));
    assertArrayEquals(all,
        scores(model.quantize(Samples.rows(Data.IMAGES), new Config("onnx").set("op:Gemm", Map.of()), null, null)));
    fails(Status.EINVAL, "tensor:image", () -> new Config("onnx").set("tensor:image", null));
    Trainer trainer = new Trainer(model);
    trainer.setGroup("*", Map.of());
    fails(Status.EINVAL, "settings is NULL", () -> trainer.setGroup("*", null));
    assertEquals("config is null",
        assertThrows(NullPointerException.class, () -> model.quantize(Samples.rows(Data.IMAGES), null, null, null))
            .getMessage());
  }

  @Test
  void indicesOutOfRange() {
    Model model = Data.digits();
    fails(Status.EINVAL, "the model has no input 1", () -> model.inputName(1));
    fails(Status.EINVAL, "the model has no input 99", () -> model.inputDtype(99));
    fails(Status.EINVAL, "the model has no output 1", () -> model.outputName(1));
  }

  @Test
  void theReport() {
    Model model = Data.digits();
    assertNull(model.report());
    Model int8 = model.quantize(
        Samples.rows(Data.IMAGES), new Config("onnx"), Map.of("bias_correction", true, "measured_samples", 4), null);
    Report report = int8.report();
    assertTrue(report.json().contains("\"name\":\"bias_correction\""), report.json());
    assertTrue(report.toString().startsWith("tried: plain "), report.toString());
    assertTrue(report.toString().contains("\naccuracy on 4 held-back samples: SQNR "), report.toString());
    assertFalse(report.toString().endsWith("\n"));
    assertTrue(model.quantize(Samples.rows(Data.IMAGES, 3)).report().json().startsWith("{\"samples\":40,"));
    fails(Status.EFORMAT, "report: is no JSON", () -> new Report("nothing"));
  }

  /** Relu of float32 [4, 3], an ONNX file. */
  private static final String FOUR_ROWS = "08084202100d3a3b0a0c0a0178120179220452656c751201675a130a0178120e0a0c080112080a0208"
      + "040a02080362130a0179120e0a0c080112080a0208040a020803";

  @Test
  void aModelThatFixesItsBatchTakesWholeOnes() {
    Model fixed = Model.load(HexFormat.of().parseHex(FOUR_ROWS));
    Report report = fixed.quantize(Data.IMAGES.slice(0, 0, 12).reshape(256, 3)).report();
    assertTrue(report.json().startsWith("{\"samples\":256,"), report.json());
    assertEquals("there are 7 rows, no multiple of the batch of 4 that the model fixes",
        assertThrows(IllegalArgumentException.class, () -> fixed.quantize(Tensor.create(DType.FLOAT32, 7, 3))).getMessage());
    fails(Status.ESHAPE, "takes 4x3, not 3x3",
        () -> fixed.quantize(Samples.rows(Tensor.create(DType.FLOAT32, 7, 3), 4)));
  }

  @Test
  void doublesAndNames() {
    Model model = Data.digits();
    Session session = new Session(model);
    float[] floats = Data.IMAGES.toFloatArray();
    Tensor doubles =
        Tensor.of(IntStream.range(0, floats.length).mapToDouble(i -> floats[i]).toArray(), Data.IMAGES.shape());
    float[] want = session.run(Data.IMAGES)[0].toFloatArray();
    assertArrayEquals(want, session.run(doubles)[0].toFloatArray());
    assertArrayEquals(want, session.run(Map.of("image", doubles))[0].toFloatArray());
    assertEquals(DType.FLOAT64, doubles.dtype());
    assertTrue(session.profile(doubles).contains("nodes"));
    assertThrows(IllegalArgumentException.class, () -> session.run(Map.of("image", doubles, "label", doubles)));
    fails(Status.EDTYPE, "int64", () -> session.run(Tensor.of(new long[64], 1, 1, 8, 8)));
    Tensor labels = Tensor.of(filled(40, 3));
    double loss = new Trainer(model).step(Data.IMAGES, labels);
    assertEquals(loss, new Trainer(model).step(doubles, labels));
    assertEquals(loss, new Trainer(model).step(Map.of("image", doubles), labels));
    assertEquals(loss, new Trainer(model).backward(new Tensor[] {doubles}, new Tensor[] {labels}));
    assertEquals(400, new Trainer(model).evaluate(Map.of("image", doubles))[0].numel());
    double[] likely = new double[400];
    Arrays.fill(likely, 0.1);
    assertTrue(new Trainer(model).step(doubles, Tensor.of(likely, 40, 10)) > 0);
    Model prepared = model.prepare(new Config("onnx"));
    prepared.calibrate(Map.of("image", doubles));
    assertEquals(400, new Session(prepared.convert()).run(doubles)[0].numel());
  }

  @Test
  void layers() {
    Tensor weight = Tensor.of(new float[] {1, -2, 3, 0.5f, 0.25f, -0.125f}, 2, 3);
    Tensor x = Tensor.of(new float[] {1, 2, 3}, 1, 3);
    try (Layer layer = new Layer("linear", weight, null, new Config("onnx"))) {
      assertNull(layer.bias());
      assertEquals(DType.INT8, layer.weight().dtype());
      assertArrayEquals(Op.linear(x, layer.weight(), null, null).toFloatArray(), layer.run(x).toFloatArray());
      assertArrayEquals(layer.weight().intRepr().toByteArray(),
          new Layer("linear", layer.weight()).weight().intRepr().toByteArray());
    }
    fails(Status.EINVAL, "there is no config", () -> new Layer("linear", weight));
  }

  @Test
  void progress() {
    List<String> told = new ArrayList<>();
    Config config = new Config("onnx");
    Samples samples = Samples.rows(Data.IMAGES);
    Map<String, ?> plain = Map.of("plain", true);
    Data.digits().quantize(samples, config, plain, (stage, done, total) -> told.add(stage + done + "/" + total));
    assertTrue(told.contains("calibrating1/40"), told.toString());
    fails(Status.ECANCELED, "canceled while calibrating, 3 of 40 done",
        () -> Data.digits().quantize(samples, config, plain, (stage, done, total) -> done < 3));
  }

  @Test
  void whatJavaThrowsInACallbackComesOutUnchanged() {
    IllegalStateException mine = new IllegalStateException("of a callback");
    Config config = new Config("onnx");
    Executable ofProgress =
        () -> Data.digits().quantize(Samples.rows(Data.IMAGES), config, null, (stage, done, total) -> { throw mine; });
    Executable ofSamples = () -> Data.digits().quantize(Samples.of(3, index -> { throw mine; }));
    Executable ofCount = () -> Data.digits().quantize(new Samples() {
      @Override
      public long count() {
        throw mine;
      }

      @Override
      public Tensor[] sample(long index) {
        return null;
      }
    });
    for (Executable call : List.of(ofProgress, ofSamples, ofCount)) {
      assertSame(mine, assertThrows(IllegalStateException.class, call));
    }
    Error error = new StackOverflowError();
    assertSame(error,
        assertThrows(StackOverflowError.class, () -> Data.digits().quantize(Samples.of(3, index -> { throw error; }))));
  }

  @Test
  void samplesThatDoNotFit() {
    Tensor row = Data.rows().get(0)[0];
    fails(Status.EINVAL, "sample 0 has 2 tensors, but the model 1 inputs",
        () -> Data.digits().quantize(Samples.of(List.<Tensor[]>of(new Tensor[] {row, row}))));
    fails(Status.ESTATE, "there are no samples", () -> Data.digits().quantize(Samples.of(List.of())));
    assertEquals("a sample or batch is null",
        assertThrows(NullPointerException.class, () -> Data.digits().quantize(Samples.of(1, index -> null)))
            .getMessage());
    Tensor closed = row.share();
    closed.close();
    assertEquals("Tensor is closed",
        assertThrows(
            IllegalStateException.class, () -> Data.digits().quantize(Samples.of(1, index -> new Tensor[] {closed})))
            .getMessage());
  }

  @Test
  void namesAndFiles(@TempDir Path folder) throws Exception {
    Model model = Data.digits();
    assertEquals(List.of("image"), model.inputs());
    assertEquals(List.of("scores"), model.outputs());
    assertEquals(List.of("11.weight", "11.bias"), model.tensors().subList(0, 2));
    assertEquals(DType.FLOAT32, model.inputDtype(0));
    assertArrayEquals(new long[] {-1, 1, 8, 8}, model.inputShape(0));
    assertEquals("index is -1", assertThrows(IllegalArgumentException.class, () -> model.inputName(-1)).getMessage());
    Model int8 = model.quantize(Samples.rows(Data.IMAGES));
    Path path = folder.resolve("int8.onnx");
    int8.save(path, Map.of("format", "qoperator"));
    assertArrayEquals(scores(int8), scores(Model.load(path)));
    assertArrayEquals(scores(int8), scores(Model.load(Files.readAllBytes(path))));
    fails(Status.EFORMAT, "", () -> Model.load(new byte[] {1, 2, 3}));
  }

  @Test
  void withoutSamples() {
    Model model = Data.digits();
    assertEquals(400, scores(model.quantizeDynamic(new Config("onnx"))).length);
    assertEquals(400, scores(model.quantizeWeights(Map.of("dtype", "int4", "block_size", 16))).length);
  }

  @Test
  void sessions() {
    Session session = new Session(Data.digits(), Map.of("threads", 1));
    assertTrue(session.profile(Data.IMAGES).contains("\"nodes\""));
    fails(Status.ESHAPE, "image", () -> session.run(Data.IMAGES.select(0, 0)));
    fails(Status.EINVAL, "unknown attribute \"thread\"; valid are",
        () -> new Session(Data.digits(), Map.of("thread", 1)));
    session.close();
    session.close();
    assertEquals(
        "Session is closed", assertThrows(IllegalStateException.class, () -> session.run(Data.IMAGES)).getMessage());
  }

  @Test
  void training(@TempDir Path folder) {
    Trainer trainer = new Trainer(Data.digits(), Map.of("lr", 0.01));
    Tensor[] images = {Data.IMAGES};
    Tensor[] labels = {Tensor.create(DType.INT64, 40)};
    double first = trainer.step(images, labels);
    trainer.save(folder.resolve("checkpoint.safetensors"));
    double last = first;
    for (int i = 0; i < 4; ++i) {
      last = trainer.step(images, labels);
    }
    assertTrue(last < first);
    trainer.load(folder.resolve("checkpoint.safetensors"));
    Tensor weight = trainer.parameters().values().iterator().next();
    weight.floatBuffer().put(0, 42);
    assertEquals(42, trainer.parameter(0).floatBuffer().get(0));
    assertArrayEquals(scores(trainer.model()), trainer.evaluate(Data.IMAGES)[0].toFloatArray());
    fails(Status.EINVAL, "label", () -> trainer.step(images, new Tensor[] {Tensor.of(filled(40, 10))}));
  }

  static long[] filled(int count, long value) {
    long[] labels = new long[count];
    Arrays.fill(labels, value);
    return labels;
  }

  @Test
  void quantizationAwareTraining() {
    Tensor[] labels = {Tensor.of(filled(20, 3))};
    Batches batches = Batches.of(List.of(new Batches.Batch(new Tensor[] {Data.IMAGES.slice(0, 0, 20)}, labels),
        new Batches.Batch(new Tensor[] {Data.IMAGES.slice(0, 20, 40)}, labels)));
    Config config = new Config("onnx");
    Map<String, Object> attrs = Map.of("epochs", 2, "lr", 0.001);
    List<Double> losses = new ArrayList<>();
    Model trained = Data.digits().quantizeQat(batches, config, attrs, (stage, done, total, loss) -> {
      if (stage.equals("training")) {
        losses.add(loss);
      }
      return Answer.GO_ON;
    });
    assertEquals(4, losses.size());
    assertNotNull(trained.report());
    assertArrayEquals(scores(trained), scores(Data.digits().quantizeQat(batches, config, attrs, null)));
    Model sooner = Data.digits().quantizeQat(
        batches, config, attrs, (stage, done, total, loss) -> stage.equals("training") ? Answer.FINISH : Answer.GO_ON);
    assertFalse(Arrays.equals(scores(trained), scores(sooner)));
    fails(Status.ECANCELED, "",
        () -> Data.digits().quantizeQat(batches, config, attrs, (stage, done, total, loss) -> Answer.CANCEL));
    RuntimeException mine = new RuntimeException();
    assertSame(mine,
        assertThrows(RuntimeException.class,
            () -> Data.digits().quantizeQat(batches, config, attrs, (stage, done, total, loss) -> { throw mine; })));
  }
}
