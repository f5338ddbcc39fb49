// SPDX-License-Identifier: Apache-2.0
// From a float model to an int8 one: samples, callbacks, sessions, training, threads.
using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using QTensor;

internal sealed class ModelTest {
  private static readonly string Digits = Environment.GetEnvironmentVariable("QTN_DIGITS");
  private static readonly Tensor[] Rows = Images();

  private static Tensor[] Images() {
    Tensor all = Tensor.LoadNpy(Path.Combine(Digits, "calibration.npy"));
    return Enumerable.Range(0, 40).Select(i => all.Slice(0, i, i + 1)).ToArray();
  }

  private static Model Load() => Model.Load(Path.Combine(Digits, "digits.onnx"));

  private static Tensor Together(int first, int count) => Op.Cat(Rows.Skip(first).Take(count).ToArray(), 0);

  private static float[] Scores(Model model) {
    using (var session = new Session(model)) return Scores(session);
  }

  private static float[] Scores(Session session) {
    using (Tensor scores = session.Run(Together(0, 40))[0]) return scores.ToArray<float>();
  }

  private static Tensor Labels(int count) => Tensor.Of(Enumerable.Range(0, count).Select(i => (long)i % 10).ToArray());

  // --- quantizing

  [Test]
  private void Samples_in_every_form_give_the_same_model() {
    Model model = Load();
    float[] want = Scores(model.Quantize(Rows));
    Check.Equal(want, Scores(model.Quantize(Rows.Select(row => row))));
    Check.Equal(want, Scores(model.Quantize(Rows.Select(row => new[] { row }))));
    Check.Equal(want, Scores(model.Quantize(new Lazily(Rows))));
    Check.Equal(want, Scores(model.Quantize(Together(0, 40))));
    double[] doubles = Together(0, 40).ToArray<float>().Select(value => (double)value).ToArray();
    Check.Equal(want, Scores(model.Quantize(Tensor.Of(doubles, 40, 1, 8, 8))));
    Model prepared = model.Prepare("onnx");
    foreach (Tensor row in Rows) prepared.Calibrate(new[] { row });
    Check.Equal(Scores(model.Quantize(Rows, attrs: new Attrs { { "plain", true } })), Scores(prepared.Convert()));
    Check.True(!want.SequenceEqual(Scores(model)), "nothing was quantized");
  }

  /// <summary>Makes a sample when it is asked for it.</summary>
  private sealed class Lazily : IReadOnlyList<Tensor[]> {
    private readonly Tensor[] rows;
    internal Lazily(Tensor[] rows) {
      this.rows = rows;
    }
    public int Count => rows.Length;
    public Tensor[] this[int index] => new[] { Tensor.Of(rows[index].ToArray<float>(), rows[index].Shape) };
    public IEnumerator<Tensor[]> GetEnumerator() => throw new Exception("a list is indexed");
    IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();
  }

  [Test]
  private void Configurations_and_reports() {
    Model model = Load();
    Check.Equal(Scores(model.Quantize(Rows, new Config("nvidia"))), Scores(model.Quantize(Rows, "nvidia")));
    Config some = new Config("onnx").LeaveInFloat("op:Gemm").Set("*", new Attrs { { "observer", "entropy" } });
    Check.Contains("Gemm", model.Quantize(Rows, some).Inspect());
    Check.Throws(Status.EUNSUPPORTED, "nonsense", () => model.Quantize(Rows, "nonsense"));
    Check.Contains("Gemm", model.Quantize(Rows, new Config("onnx").Set("op:Gemm", null)).Inspect());
    Check.Equal(Scores(model.Quantize(Rows)), Scores(model.Quantize(Rows, new Config("onnx").Set("op:Gemm", new Attrs()))));
    Check.Throws(Status.EINVAL, "tensor:image", () => new Config("onnx").Set("tensor:image", null));
    var trainer = new Trainer(model);
    trainer.SetGroup("*", new Attrs());
    Check.Throws(Status.EINVAL, "settings is NULL", () => trainer.SetGroup("*", null));
    Check.Throws(Status.EINVAL, "the model has no input 1", () => model.InputName(1));
    Check.Throws(Status.EINVAL, "the model has no input 99", () => model.InputDtype(99));
    Check.Throws(Status.EINVAL, "nbytes is 0", () => Tensor.Of(new float[0], 3));
    Check.Throws(Status.EINVAL, "nbytes is 0", () => Tensor.Create(DType.Float32, new long[] { 3 }, null, new byte[0]));
    Check.True(model.Report == null, "a model that was loaded has a report");
    var attrs = new Attrs { { "bias_correction", true }, { "measured_samples", 4 } };
    Report report = model.Quantize(Rows, attrs: attrs).Report;
    Check.Contains("\"samples\":40", report.Json.Replace(" ", ""));
    Check.Contains("\naccuracy on 4 held-back samples: SQNR ", report.ToString());
    Check.Contains("\"samples\":40", model.Quantize(new[] { Together(0, 16), Together(16, 40) }).Report.Json);
    Check.Equal(Scores(model.Quantize(Rows)), Scores(model.Quantize(new Dictionary<string, Tensor> { { "image", Together(0, 40) } })));
    Check.Throws(Status.EFORMAT, "report: is no JSON", () => new Report("nothing"));
  }

  // Relu of float32 [4, 3], an ONNX file.
  private const string FourRows = "08084202100d3a3b0a0c0a0178120179220452656c751201675a130a0178120e0a0c080112080a0208" +
                                  "040a02080362130a0179120e0a0c080112080a0208040a020803";

  [Test]
  private void A_model_that_fixes_its_batch_takes_whole_ones() {
    byte[] onnx = Enumerable.Range(0, FourRows.Length / 2).Select(i => Convert.ToByte(FourRows.Substring(2 * i, 2), 16)).ToArray();
    Model model = Model.Load(onnx);
    Tensor rows = Tensor.Of(Enumerable.Range(0, 24).Select(i => (float)i).ToArray(), 8, 3);
    Check.Contains("{\"samples\":8,", model.Quantize(rows).Report.Json);
    Check.Throws<ArgumentException>(() => model.Quantize(rows.Slice(0, 0, 7)),
                                    "there are 7 rows, no multiple of the batch of 4 that the model fixes");
  }

  [Test]
  private void Doubles_and_names() {
    Model model = Load();
    var session = new Session(model);
    Tensor floats = Together(0, 40), labels = Labels(40);
    Tensor doubles = Tensor.Of(floats.ToArray<float>().Select(value => (double)value).ToArray(), floats.Shape);
    float[] want = session.Run(floats)[0].ToArray<float>();
    Check.Equal(want, session.Run(doubles)[0].ToArray<float>());
    Check.Equal(want, session.Run(new Dictionary<string, Tensor> { { "image", doubles } })[0].ToArray<float>());
    Check.Equal(DType.Float64, doubles.Dtype);
    Check.Contains("nodes", session.Profile(new[] { doubles }));
    Check.Throws<ArgumentException>(() => session.Run(new Dictionary<string, Tensor> { { "label", doubles } }), "has the keys label");
    Check.Throws(Status.EDTYPE, "int64", () => session.Run(Tensor.Zeros(DType.Int64, 1, 1, 8, 8)));
    double loss = new Trainer(model).Step(floats, labels);
    Check.Equal(loss, new Trainer(model).Step(doubles, labels));
    Check.Equal(loss, new Trainer(model).Step(new Dictionary<string, Tensor> { { "image", doubles } }, labels));
    Check.Equal(loss, new Trainer(model).Backward(new[] { doubles }, new[] { labels }));
    Check.Equal(400, new Trainer(model).Evaluate(new[] { doubles })[0].ToArray<float>().Length);
    Tensor likely = Tensor.Of(Enumerable.Repeat(0.1, 400).ToArray(), 40, 10);
    Check.True(new Trainer(model).Step(doubles, likely) > 0, "no loss of distributions");
    Model prepared = model.Prepare("onnx");
    prepared.Calibrate(new[] { doubles });
    Check.Equal(1, new Session(prepared.Convert()).Run(doubles).Length);
  }

  [Test]
  private void Layers() {
    Tensor weight = Tensor.Of(new float[] { 1, -2, 3, 0.5f, 0.25f, -0.125f }, 2, 3), x = Tensor.Of(new float[] { 1, 2, 3 }, 1, 3);
    using (var layer = new Layer("linear", weight, null, "onnx")) {
      Check.True(layer.Bias == null, "a layer without a bias has one");
      Check.Equal(DType.Int8, layer.Weight.Dtype);
      Check.Equal(Op.Linear(x, layer.Weight).ToArray<float>(), layer.Run(x).ToArray<float>());
      Check.Equal(layer.Weight.ToBytes(), new Layer("linear", layer.Weight).Weight.ToBytes());
    }
    Check.Throws(Status.EINVAL, "there is no config", () => new Layer("linear", weight));
  }

  [Test]
  private void Progress_is_told_and_cancels() {
    var told = new List<string>();
    var plain = new Attrs { { "plain", true } };
    Load().Quantize(Rows, attrs: plain, progress: (stage, done, total) => {
      told.Add(stage + " " + done + "/" + total);
      return true;
    });
    Check.True(told.Contains("calibrating 1/40"), string.Join(", ", told));
    Check.Throws(Status.ECANCELED, "canceled while calibrating, 3 of 40 done",
                 () => Load().Quantize(Rows, attrs: plain, progress: (stage, done, total) => done < 3));
  }

  private sealed class Mine : Exception {}

  [Test]
  private void What_a_callback_throws_comes_out_as_the_same_object() {
    var mine = new Mine();
    Func<bool> broken = () => throw mine;
    foreach (Action call in new Action[] {
               () => Load().Quantize(Rows, progress: (stage, done, total) => broken()),
               () => Load().Quantize(new Broken(mine)),
               () => Load().QuantizeQat((epoch, index) => throw mine, 2),
               () => Load().QuantizeQat(Batches(), progress: (stage, done, total, loss) => throw mine) }) {
      Mine thrown = Check.Throws<Mine>(call);
      Check.True(ReferenceEquals(mine, thrown), "another object");
      Check.Contains("ModelTest", thrown.StackTrace);
    }
    Check.Throws(Status.EINVAL, "has 2 tensors, but the model 1 inputs", () => Load().Quantize(Rows.Select(row => new[] { row, row })));
    Check.Throws<ArgumentException>(() => Load().Quantize(new Tensor[][] { null }), "sample 0 is null");
    Check.Throws<ArgumentNullException>(() => Load().Quantize((Tensor[])null), "samples");
    Check.Throws(Status.ESTATE, "there are no samples", () => Load().Quantize(new Tensor[0]));
    Check.Throws<ArgumentException>(() => Load().Quantize(Tensor.Zeros(DType.Float32)), "rows of the input image are a scalar");
    Check.Throws<ArgumentException>(() => Load().Quantize(new Dictionary<string, Tensor> { { "picture", Rows[0] } }),
                                    "rows has the keys picture, the model has the inputs image");
    Check.Throws(Status.ESHAPE, "image", () => Load().Quantize(Tensor.Zeros(DType.Float32, 2, 8, 8)));
    Tensor disposed = Rows[0].Share();
    disposed.Dispose();
    Check.Throws<ObjectDisposedException>(() => Load().Quantize(new[] { disposed }));
  }

  private sealed class Broken : IReadOnlyList<Tensor[]> {
    private readonly Exception exception;
    internal Broken(Exception exception) {
      this.exception = exception;
    }
    public int Count => 3;
    public Tensor[] this[int index] => throw exception;
    public IEnumerator<Tensor[]> GetEnumerator() => throw exception;
    IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();
  }

  [Test]
  private void Callbacks_may_call_the_library() {
    Model model = Load();
    var session = new Session(model);
    var samples = new List<Tensor[]> { new[] { Rows[0] } };
    int failures = 0;
    model.Quantize(samples, progress: (stage, done, total) => {
      session.Run(Rows[1]);
      Check.Throws(Status.ESHAPE, "reshape", () => Rows[0].Reshape(3));
      ++failures;
      return true;
    });
    Check.True(failures > 0, "nothing was told");
  }

  private static Batch[] Batches() =>
      new[] { new Batch(Together(0, 20), Labels(20)), new Batch(new[] { Together(20, 20) }, new[] { Labels(20) }) };

  [Test]
  private void Quantization_aware_training() {
    var attrs = new Attrs { { "epochs", 2 }, { "lr", 0.001 } };
    var told = new List<string>();
    Model trained = Load().QuantizeQat(Batches(), "onnx", attrs, (stage, done, total, loss) => {
      told.Add(stage + " " + done + "/" + total + (loss > 0 ? " loss" : ""));
      return TrainingAnswer.GoOn;
    });
    Check.Equal("training 4/4 loss", told.Last());
    Check.Contains("{", trained.Report.Json);
    var epochs = new HashSet<long>();
    Batch[] batches = Batches();
    Model same = Load().QuantizeQat((epoch, index) => {
      epochs.Add(epoch);
      return batches[index];
    }, 2, attrs: attrs);
    Check.Equal(Scores(trained), Scores(same));
    Check.Equal(2, epochs.Count);
    Model sooner = Load().QuantizeQat(Batches(), attrs: attrs, progress: (stage, done, total, loss) =>
        stage == "training" ? TrainingAnswer.Finish : TrainingAnswer.GoOn);
    Check.True(!Scores(sooner).SequenceEqual(Scores(trained)), "it trained to the end");
    Check.Throws(Status.EINVAL, "target", () => Load().QuantizeQat((epoch, index) => batches[index], 2, 2));
    Check.Throws(Status.ECANCELED, "", () => Load().QuantizeQat(Batches(), progress: (stage, done, total, loss) => TrainingAnswer.Cancel));
  }

  // --- models and sessions

  [Test]
  private void Names_and_files() {
    Model model = Load();
    Check.Equal("Model(image -> scores)", model.ToString());
    Check.Equal(new long[] { -1, 1, 8, 8 }, model.InputShape(0));
    Check.Equal(DType.Float32, model.InputDtype(0));
    Model int8 = model.Quantize(Rows);
    string path = Path.Combine(Path.GetTempPath(), "qtensor-量-" + Guid.NewGuid() + ".onnx");
    try {
      int8.Save(path, new Attrs { { "format", "qoperator" } });
      Check.Equal(Scores(int8), Scores(Model.Load(path)));
      Check.Equal(Scores(int8), Scores(Model.Load(File.ReadAllBytes(path))));
    } finally {
      File.Delete(path);
    }
    Check.Equal(400, Scores(model.QuantizeDynamic("onnx")).Length);
    Check.Equal(400, Scores(model.QuantizeWeights(new Attrs { { "dtype", "int4" }, { "block_size", 16 } })).Length);
  }

  [Test]
  private void Sessions() {
    var session = new Session(Load(), new Attrs { { "threads", 1 } });
    Check.Equal(1, session.OutputCount);
    Check.Equal(new long[] { 1, 10 }, session.Run(Rows[0])[0].Shape);
    Check.Equal(new long[] { 1, 10 }, session.Run(new List<Tensor> { Rows[0] })[0].Shape);
    Check.Contains("\"nodes\"", session.Profile(new[] { Rows[0] }));
    Check.Throws(Status.ESHAPE, "image", () => session.Run(Rows[0].Reshape(64)));
    Check.Throws(Status.EINVAL, "unknown attribute \"thread\"; valid are", () => new Session(Load(), new Attrs { { "thread", 1 } }));
    session.Dispose();
    Check.Throws<ObjectDisposedException>(() => session.Run(Rows[0]), "QTensor.Session");
  }

  [Test]
  private void Training() {
    var trainer = new Trainer(Load(), new Attrs { { "lr", 0.01 } });
    double[] losses = Enumerable.Range(0, 5).Select(i => trainer.Step(Together(0, 40), Labels(40))).ToArray();
    Check.True(losses[4] < losses[0], string.Join(", ", losses));
    KeyValuePair<string, Tensor> parameter = trainer.Parameters.First();
    using (TensorData<float> weights = parameter.Value.Data<float>()) weights.CopyFrom(new float[weights.Length]);
    Check.True(trainer.Parameters[parameter.Key].ToArray<float>().All(w => w == 0), "another memory");
    Check.Equal(Scores(trainer.Model()), trainer.Evaluate(new[] { Together(0, 40) })[0].ToArray<float>());
    Check.True(trainer.Backward(new[] { Together(0, 8) }, new[] { Labels(8) }) > 0, "no loss");
    Check.True(trainer.Gradient(0).ToArray<float>().Length > 0, "no gradient");
    trainer.Update();
    trainer.Set(new Attrs { { "lr", 0.001 } });
    Check.Throws(Status.EINVAL, "label", () => trainer.Step(Together(0, 1), Tensor.Of(new long[] { 10 })));
    Check.True(new Trainer(Model.Load(Path.Combine(Digits, "untrained.onnx"))).Buffers.Count > 0, "no buffers");
  }

  // --- threads

  private static void Parallel(int count, Action work) {
    Exception failure = null;
    Thread[] threads = Enumerable.Range(0, count).Select(i => new Thread(() => {
      try {
        work();
      } catch (Exception exception) {
        failure = exception;
      }
    })).ToArray();
    foreach (Thread thread in threads) thread.Start();
    foreach (Thread thread in threads) thread.Join();
    if (failure != null) throw new Exception("in a thread", failure);
  }

  [Test]
  private void Eight_threads_get_the_bits_of_one() {
    using (var session = new Session(Load().Quantize(Rows))) {
      float[] want = Scores(session);
      Parallel(8, () => {
        for (int i = 0; i < 20; ++i) Check.Equal(want, Scores(session));
      });
    }
  }

  [Test]
  private void Disposing_while_others_run_ends_in_an_exception_or_nothing() {
    Tensor input = Together(0, 40);
    for (int i = 0; i < 20; ++i) {
      var session = new Session(Load());
      int ended = 0;
      using (var running = new CountdownEvent(4)) {
        var disposer = new Thread(() => {
          running.Wait();
          session.Dispose();
        });
        disposer.Start();
        Parallel(4, () => {
          session.Run(input);
          running.Signal();
          Check.Throws<ObjectDisposedException>(() => {
            while (true) session.Run(input)[0].Dispose();
          });
          Interlocked.Increment(ref ended);
        });
        disposer.Join();
      }
      Check.Equal(4, ended);
    }
  }

  [Test]
  private void Threads_that_train_one_trainer_are_told() {
    var trainer = new Trainer(Load(), new Attrs { { "lr", 0.001 } });
    Tensor images = Together(0, 8), labels = Labels(8);
    int steps = 0;
    Parallel(4, () => {
      for (int i = 0; i < 40; ++i) {
        try {
          double loss = trainer.Step(images, labels);
          Check.True(!double.IsNaN(loss) && !double.IsInfinity(loss), "loss " + loss);
          Interlocked.Increment(ref steps);
        } catch (QTensorException exception) {
          Check.Equal(Status.ESTATE, exception.Status);
          Check.Contains("another call", exception.Message);
        }
      }
    });
    Check.True(steps > 0, "no step was made");
  }
}
