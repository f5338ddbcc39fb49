// SPDX-License-Identifier: Apache-2.0
// Runs the cases of tests/conformance through the package: the same values, bits and error texts as C. Steps that C# cannot
// express, a NULL where there is always an object, are counted by what they lack.
//
// usage: mono Conformance.exe ROOT CASES.json...
using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text;
using System.Text.RegularExpressions;
using QTensor;
using Step = System.Collections.Generic.Dictionary<string, object>;

/// <summary>The operator that cases register: each element times the attribute "factor".</summary>
internal sealed class Scale : Operator {
  public override IReadOnlyList<OutputType> Infer(IReadOnlyList<Operand> inputs,
                                                  IReadOnlyDictionary<string, object> attributes, int outputs) =>
      new[] { new OutputType(inputs[0].Dtype, inputs[0].Shape) };

  public override Tensor[] Run(Tensor[] inputs, IReadOnlyDictionary<string, object> attributes) {
    if (!attributes.TryGetValue("factor", out object factor)) throw new QTensorException(Status.EINVAL, "factor is missing");
    float[] x = inputs[0].ToArray<float>();
    for (int i = 0; i < x.Length; ++i) x[i] *= (float)(double)factor;
    return new[] { Tensor.Of(x, inputs[0].Shape) };
  }
}

/// <summary>Why C# cannot express a step.</summary>
internal sealed class CannotSay : Exception {
  internal CannotSay(string what) : base(what) {}
}

/// <summary>What a step gave instead of what it must.</summary>
internal sealed class Wrong : Exception {
  internal Wrong(string message) : base(message) {}
}

/// <summary>The handles of a case, and the arguments of its step.</summary>
internal sealed class Frame {
  internal readonly Dictionary<string, object> Handles = new Dictionary<string, object>();
  internal readonly string Folder;
  private readonly string root;
  internal Step With;

  internal Frame(string root, string folder) {
    this.root = root;
    Folder = folder;
  }

  internal bool Has(string name) => With.ContainsKey(name);
  internal object Get(string name) => With.TryGetValue(name, out object value) ? value : null;
  internal long Long(string name) => Convert.ToInt64(Get(name) ?? 0L);
  internal int Int(string name) => (int)Long(name);

  internal T Handle<T>(string name) where T : class => Get(name) == null ? null : (T)Handles[((string)Get(name)).Substring(1)];

  /// <summary>What a method is called on, or a class that has no absent value.</summary>
  internal T Own<T>(string name) where T : class => Handle<T>(name) ?? throw new CannotSay("an object that is NULL");

  internal Tensor T(string name) => Handle<Tensor>(name);
  internal Quantizer Q(string name) => Handle<Quantizer>(name);

  internal string Text(string name) => (string)Get(name) ?? throw new CannotSay("a text that is NULL");
  internal List<object> List(string name) => (List<object>)Get(name) ?? throw new CannotSay("a list that is NULL");
  internal long[] Longs(string name) => List(name).Select(Convert.ToInt64).ToArray();
  internal double[] Doubles(string name) => List(name).Select(ElementsOf.Real).ToArray();
  internal string[] Texts(string name) => List(name).Select(text => (string)text ?? throw new CannotSay("a text that is NULL")).ToArray();
  internal Tensor[] Tensors(string name) =>
      List(name).Select(value => value == null ? null : (Tensor)Handles[((string)value).Substring(1)]).ToArray();

  internal long Index() => Long("index") >= 0 ? Long("index") : throw new CannotSay("an unsigned number below 0");

  internal string Place(string text) => text.StartsWith("@") ? Folder + "/" + text.Substring(1) : root + "/" + text;
  internal string Path() => Place(Text("path"));

  internal Step Attrs(string name = "attrs") => ((Step)Get(name))?.ToDictionary(
      pair => pair.Key, pair => pair.Value is List<object> list ? list.Select(v => v is string ? ElementsOf.Real(v) : v).ToList() : pair.Value);

  /// <summary>An enumeration by its name in the library, or by a number.</summary>
  internal E Enum<E>(string name) {
    if (!(Get(name) is string text)) return (E)(object)Int(name);
    return (E)System.Enum.Parse(typeof(E), text.Replace("_", ""), true);
  }

  /// <summary>A list of bytes, or what a call has given.</summary>
  internal byte[] Bytes() => Get("data") is string ? Own<byte[]>("data") : Data(DType.UInt8);

  /// <summary>The elements of `data`, `nbytes` of them where that is given.</summary>
  internal byte[] Data(DType dtype) {
    byte[] bytes = Get("data") == null ? null : ElementsOf.Bytes(dtype, List("data"));
    if (bytes != null && Has("nbytes")) Array.Resize(ref bytes, Int("nbytes"));
    return bytes;
  }
}

internal static class Conformance {
  private static readonly HashSet<string> Counts =
      new HashSet<string> { "count", "rank", "input_count", "target_count", "cap" };
  internal static readonly Dictionary<string, Func<Frame, object>> Calls = MakeCalls();

  private static object Do(Action call) {
    call();
    return null;
  }

  private static Tensor Wrap(Frame f) {
    byte[] data = f.Data(f.Enum<DType>("dtype"));
    if (data == null) return Tensor.Wrap(f.Enum<DType>("dtype"), IntPtr.Zero, 0, null, f.Q("quantizer"), f.Longs("shape"));
    IntPtr memory = Marshal.AllocHGlobal(data.Length + 8), start = memory + f.Int("misaligned");
    Marshal.Copy(data, 0, start, data.Length);
    try {
      return Tensor.Wrap(f.Enum<DType>("dtype"), start, data.Length, () => Marshal.FreeHGlobal(memory), f.Q("quantizer"), f.Longs("shape"));
    } catch {
      Marshal.FreeHGlobal(memory);
      throw;
    }
  }

  private static object Describe(Frame f) {
    string text = f.Own<Tensor>("t").Describe();
    return new Step { { "text", text }, { "length", (long)Encoding.UTF8.GetByteCount(text) } };
  }

  private static Model Quantize(Frame f) {
    if (f.Has("sample")) throw new CannotSay("a callback that is NULL");
    return WithReport(f, f.Own<Model>("m").Quantize(f.Tensors("samples"), f.Own<Config>("config"), f.Attrs()));
  }

  private static Model WithReport(Frame f, Model model) {
    if (f.Has("report")) f.Handles[f.Text("report")] = model.Report.Json;
    return model;
  }

  private static Layer MakeLayer(Frame f) => new Layer(f.Text("kind"), f.Own<Tensor>("weight"), f.T("bias"), f.Handle<Config>("config"),
                                                       f.Q("x_quantizer"), f.Q("out_quantizer"), f.Attrs());

  private static Model QuantizeQat(Frame f) {
    if (f.Has("batch")) throw new CannotSay("a callback that is NULL");
    Batch[] batches = f.Tensors("inputs").Zip(f.Tensors("targets"), (input, target) => new Batch(input, target)).ToArray();
    return WithReport(f, f.Own<Model>("m").QuantizeQat(batches, f.Own<Config>("config"), f.Attrs()));
  }

  private static Tensor[] RunSession(Frame f) {
    if (f.Has("output_count") && f.Long("output_count") != f.Own<Session>("s").OutputCount)
      throw new CannotSay("another number of outputs than there are");
    return f.Own<Session>("s").Run(f.Tensors("inputs"));
  }

  private static Tensor[] Evaluate(Frame f) {
    if (f.Has("output_count") && f.Long("output_count") != 1) throw new CannotSay("another number of outputs than there are");
    return f.Own<Trainer>("t").Evaluate(f.Tensors("inputs"));
  }

  private static object FromDLPack(Frame f, Func<IntPtr, Tensor> take) =>
      f.Has("managed") ? take(IntPtr.Zero) : throw new CannotSay("a structure of DLPack made by hand");

  private static object Version(Frame f) {
    int[] parts = Lib.Version().Split('.').Select(int.Parse).ToArray();
    return parts[0] << 16 | parts[1] << 8 | parts[2];
  }

  private static Observer LoadObserver(Frame f) => Observer.Load(f.Own<byte[]>("data").Take(f.Has("nbytes") ? f.Int("nbytes") : int.MaxValue).ToArray());

  private static Dictionary<string, Func<Frame, object>> MakeCalls() {
    var calls = new Dictionary<string, Func<Frame, object>> {
      ["qlib_version"] = Version,
      ["qlib_set_isa"] = f => Do(() => Lib.SetIsa(f.Text("isa"))),
      ["qlib_set_threads"] = f => Do(() => Lib.SetThreads(f.Int("count"))),
      ["qlib_set_limits"] = f => Do(() => Lib.SetLimits(f.Attrs("limits"))),
      ["qlib_limit"] = f => Lib.Limit(f.Text("name")),
      ["qstatus_name"] = f => Lib.StatusName((Status)f.Int("status")),
      ["qdtype_name"] = f => Lib.DtypeName((DType)f.Int("dtype")),
      ["qquantizer_create"] = f => new Quantizer(f.Enum<DType>("dtype"), f.Enum<Scheme>("scheme"), f.Int("axis"), f.Doubles("scales"),
                                                 f.Get("zero_points") == null ? new long[0] : f.Longs("zero_points"), f.Attrs()),
      ["qquantizer_choose"] = f => Quantizer.Choose(f.Enum<DType>("dtype"), f.Enum<Scheme>("scheme"), f.Int("axis"), f.Doubles("mins"),
                                                    f.Doubles("maxs"), f.Attrs()),
      ["qquantizer_choose_dynamic"] = f => Quantizer.ChooseDynamic(f.Enum<DType>("dtype"), f.T("x"), f.Attrs()),
      ["qquantizer_dtype"] = f => Lib.DtypeName(f.Own<Quantizer>("q").Dtype),
      ["qquantizer_scheme"] = f => (long)f.Own<Quantizer>("q").Scheme,
      ["qquantizer_axis"] = f => f.Own<Quantizer>("q").Axis,
      ["qquantizer_count"] = f => f.Own<Quantizer>("q").Count,
      ["qquantizer_scales"] = f => f.Own<Quantizer>("q").Scales,
      ["qquantizer_zero_points"] = f => f.Own<Quantizer>("q").ZeroPoints,
      ["qquantizer_float_zero_points"] = f => f.Own<Quantizer>("q").FloatZeroPoints,
      ["qquantizer_block_size"] = f => f.Own<Quantizer>("q").BlockSize,
      ["qquantizer_quant_min"] = f => f.Own<Quantizer>("q").QuantMin,
      ["qquantizer_quant_max"] = f => f.Own<Quantizer>("q").QuantMax,
      ["qquantizer_numerics"] = f => f.Own<Quantizer>("q").Numerics,
      ["qtensor_create"] = f => Tensor.Create(f.Enum<DType>("dtype"), f.Longs("shape"), f.Q("quantizer"), f.Data(f.Enum<DType>("dtype"))),
      ["qtensor_wrap"] = Wrap,
      ["qtensor_share"] = f => f.Own<Tensor>("t").Share(),
      ["qtensor_quantize"] = f => f.Own<Tensor>("x").Quantize(f.Q("quantizer")),
      ["qtensor_dequantize"] = f => f.Own<Tensor>("x").Dequantize(),
      ["qtensor_select"] = f => f.Own<Tensor>("t").Select(f.Int("axis"), f.Long("index")),
      ["qtensor_slice"] = f => f.Own<Tensor>("t").Slice(f.Int("axis"), f.Long("start"), f.Long("stop"), f.Long("step")),
      ["qtensor_permute"] = f => f.Own<Tensor>("t").Permute(f.Longs("axes")),
      ["qtensor_reshape"] = f => f.Own<Tensor>("t").Reshape(f.Longs("shape")),
      ["qtensor_contiguous"] = f => f.Own<Tensor>("t").Contiguous(),
      ["qtensor_int_repr"] = f => f.Own<Tensor>("t").IntRepr(),
      ["qtensor_equal"] = f => f.Own<Tensor>("a").Equal(f.T("b")) ? 1 : 0,
      ["qtensor_copy"] = f => Do(() => f.Own<Tensor>("dst").Copy(f.T("src"))),
      ["qtensor_item"] = f => f.Own<Tensor>("t").Item(),
      ["qtensor_describe"] = Describe,
      ["qtensor_data_mut"] = f => f.Own<Tensor>("t").Data<float>().Pointer != IntPtr.Zero,
      ["qtensor_dtype"] = f => Lib.DtypeName(f.Own<Tensor>("t").Dtype),
      ["qtensor_rank"] = f => f.Own<Tensor>("t").Rank,
      ["qtensor_shape"] = f => f.Own<Tensor>("t").Shape,
      ["qtensor_strides"] = f => f.Own<Tensor>("t").Strides,
      ["qtensor_numel"] = f => f.Own<Tensor>("t").Numel,
      ["qtensor_nbytes"] = f => f.Own<Tensor>("t").Nbytes,
      ["qtensor_quantizer"] = f => f.Own<Tensor>("t").Quantizer != null,
      ["qtensor_save"] = f => Do(() => f.Own<Tensor>("t").Save(f.Path())),
      ["qtensor_load"] = f => Tensor.Load(f.Path()),
      ["qtensor_save_npy"] = f => Do(() => f.Own<Tensor>("t").SaveNpy(f.Path())),
      ["qtensor_load_npy"] = f => Tensor.LoadNpy(f.Path()),
      ["qtensor_save_all"] = f => Do(() => Tensor.SaveAll(f.Path(), f.Texts("names"), f.Tensors("tensors"))),
      ["qtensor_load_named"] = f => Tensor.LoadNamed(f.Path(), f.Text("name")),
      ["qtensor_load_rows"] = f => Tensor.LoadRows(f.Path(), (string)f.Get("name") ?? "", f.Long("start"), f.Long("stop")),
      ["qtensor_inspect"] = f => Tensor.Inspect(f.Path()),
      ["qtensor_to_dlpack"] = f => Tensor.FromDLPack(f.Own<Tensor>("t").ToDLPack()).Rank,
      ["qtensor_to_dlpack_versioned"] = f => Tensor.FromDLPackVersioned(f.Own<Tensor>("t").ToDLPackVersioned()).Rank,
      ["qtensor_from_dlpack"] = f => FromDLPack(f, Tensor.FromDLPack),
      ["qtensor_from_dlpack_versioned"] = f => FromDLPack(f, Tensor.FromDLPackVersioned),
      ["qobserver_create"] = f => new Observer(f.Text("kind"), f.Attrs()),
      ["qobserver_observe"] = f => Do(() => f.Own<Observer>("o").Observe(f.T("x"))),
      ["qobserver_merge"] = f => Do(() => f.Own<Observer>("o").Merge(f.Own<Observer>("other"))),
      ["qobserver_quantizer"] = f => f.Own<Observer>("o").Quantizer(),
      ["qobserver_save"] = f => f.Own<Observer>("o").Save(),
      ["qobserver_load"] = LoadObserver,
      ["qobserver_save_file"] = f => Do(() => f.Own<Observer>("o").SaveFile(f.Path())),
      ["qobserver_load_file"] = f => Observer.LoadFile(f.Path()),
      ["qop_register"] = f => Do(() => {
        if (f.Has("infer") || f.Has("run")) throw new CannotSay("a callback that is NULL");
        Operator.Register(f.Text("domain"), f.Text("name"), f.Long("since_version"), new Scale());
      }),
      ["qop_unregister"] = f => Do(() => Operator.Unregister(f.Text("domain"), f.Text("name"), f.Long("since_version"))),
      ["qop_run"] = f => Op.Run(f.Text("op"), f.Tensors("inputs"), f.Attrs(), f.Has("output_count") ? f.Long("output_count") : 1),
      ["qop_linear"] = f => Op.Linear(f.T("x"), f.T("weight"), f.T("bias"), f.Q("out_quantizer")),
      ["qop_conv2d"] = f => Op.Conv2d(f.T("x"), f.T("weight"), f.T("bias"), f.Q("out_quantizer"), f.Attrs()),
      ["qop_relu"] = f => Op.Relu(f.T("x")),
      ["qop_fake_quantize"] = f => Op.FakeQuantize(f.T("x"), f.Q("quantizer")),
      ["qop_fake_quantize_backward"] = f => Op.FakeQuantizeBackward(f.T("dy"), f.T("x"), f.Q("quantizer")),
      ["qop_add"] = f => Op.Add(f.T("a"), f.T("b"), f.Q("out_quantizer")),
      ["qop_matmul"] = f => Op.Matmul(f.T("a"), f.T("b"), f.Q("out_quantizer")),
      ["qop_cat"] = f => Op.Cat(f.Tensors("inputs"), f.Int("axis"), f.Q("out_quantizer")),
      ["qop_max_pool2d"] = f => Op.MaxPool2d(f.T("x"), f.Attrs()),
      ["qop_avg_pool2d"] = f => Op.AvgPool2d(f.T("x"), f.Q("out_quantizer"), f.Attrs()),
      ["qconfig_create"] = f => new Config(f.Text("name")),
      ["qconfig_set"] = f => f.Own<Config>("c").Set(f.Text("selector"), f.Attrs("settings")),
      ["qconfig_save"] = f => Do(() => f.Own<Config>("c").Save(f.Path())),
      ["qconfig_load"] = f => Config.Load(f.Path()),
      ["qmodel_load"] = f => Model.Load(f.Path()),
      ["qmodel_load_bytes"] = f => Model.Load(f.Bytes()),
      ["qmodel_save"] = f => Do(() => f.Own<Model>("m").Save(f.Path(), f.Attrs())),
      ["qmodel_save_bytes"] = f => f.Own<Model>("m").SaveBytes(f.Attrs()),
      ["qmodel_fuse"] = f => f.Own<Model>("m").Fuse(f.Texts("nodes")),
      ["qmodel_prepare"] = f => f.Own<Model>("m").Prepare(f.Own<Config>("config"), (Mode)f.Int("mode")),
      ["qmodel_calibrate"] = f => Do(() => f.Own<Model>("prepared").Calibrate(f.Tensors("inputs"))),
      ["qmodel_convert"] = f => f.Own<Model>("prepared").Convert(f.Attrs()),
      ["qmodel_save_calibration"] = f => Do(() => f.Own<Model>("prepared").SaveCalibration(f.Path())),
      ["qmodel_load_calibration"] = f => Do(() => f.Own<Model>("prepared").LoadCalibration(f.Path())),
      ["qmodel_merge_calibrations"] = f => Do(() => Model.MergeCalibrations(f.Path(), f.Texts("parts").Select(f.Place))),
      ["qmodel_quantize"] = Quantize,
      ["qmodel_quantize_qat"] = QuantizeQat,
      ["qmodel_quantize_dynamic"] = f => f.Own<Model>("m").QuantizeDynamic(f.Own<Config>("config"), f.Attrs()),
      ["qmodel_quantize_weights"] = f => f.Own<Model>("m").QuantizeWeights(f.Attrs()),
      ["qmodel_input_count"] = f => f.Own<Model>("m").InputCount,
      ["qmodel_output_count"] = f => f.Own<Model>("m").OutputCount,
      ["qmodel_tensor_count"] = f => f.Own<Model>("m").TensorCount,
      ["qmodel_tensor_name"] = f => f.Own<Model>("m").TensorName(f.Index()),
      ["qmodel_tensor"] = f => f.Own<Model>("m").GetTensor(f.Text("name")),
      ["qmodel_set_tensor"] = f => Do(() => f.Own<Model>("m").SetTensor(f.Text("name"), f.T("t"))),
      ["qmodel_input_name"] = f => f.Own<Model>("m").InputName(f.Index()),
      ["qmodel_input_dtype"] = f => Lib.DtypeName(f.Own<Model>("m").InputDtype(f.Index())),
      ["qmodel_input_rank"] = f => f.Own<Model>("m").InputShape(f.Index()).Length,
      ["qmodel_input_shape"] = f => f.Own<Model>("m").InputShape(f.Index()),
      ["qmodel_output_name"] = f => f.Own<Model>("m").OutputName(f.Index()),
      ["qmodel_inspect"] = f => f.Own<Model>("m").Inspect(),
      ["qsession_create"] = f => new Session(f.Own<Model>("m"), f.Attrs()),
      ["qsession_run"] = RunSession,
      ["qsession_bind"] = f => Do(() => f.Own<Session>("s").Bind((int)f.Long("output"), (int)f.Long("input"))),
      ["qsession_reset"] = f => Do(() => f.Own<Session>("s").Reset()),
      ["qsession_profile"] = f => f.Own<Session>("s").Profile(f.Tensors("inputs")),
      ["qreport_summary"] = f => new Report(f.Text("report")) + "\n",
      ["qlayer_create"] = MakeLayer,
      ["qlayer_run"] = f => f.Own<Layer>("layer").Run(f.Own<Tensor>("x")),
      ["qlayer_weight"] = f => f.Own<Layer>("layer").Weight,
      ["qlayer_bias"] = f => f.Own<Layer>("layer").Bias,
      ["qtrainer_create"] = f => new Trainer(f.Own<Model>("m"), f.Attrs()),
      ["qtrainer_step"] = f => f.Own<Trainer>("t").Step(f.Tensors("inputs"), f.Tensors("targets")),
      ["qtrainer_backward"] = f => f.Own<Trainer>("t").Backward(f.Tensors("inputs"), f.Tensors("targets")),
      ["qtrainer_update"] = f => Do(() => f.Own<Trainer>("t").Update()),
      ["qtrainer_evaluate"] = Evaluate,
      ["qtrainer_set"] = f => Do(() => f.Own<Trainer>("t").Set(f.Attrs())),
      ["qtrainer_set_group"] = f => Do(() => f.Own<Trainer>("t").SetGroup(f.Text("selector"), f.Attrs("settings"))),
      ["qtrainer_parameter_count"] = f => f.Own<Trainer>("t").ParameterCount,
      ["qtrainer_parameter_name"] = f => f.Own<Trainer>("t").ParameterName(f.Index()),
      ["qtrainer_parameter"] = f => f.Own<Trainer>("t").Parameter(f.Index()),
      ["qtrainer_gradient"] = f => f.Own<Trainer>("t").Gradient(f.Index()),
      ["qtrainer_buffer_count"] = f => f.Own<Trainer>("t").BufferCount,
      ["qtrainer_buffer_name"] = f => f.Own<Trainer>("t").BufferName(f.Index()),
      ["qtrainer_buffer"] = f => f.Own<Trainer>("t").Buffer(f.Index()),
      ["qtrainer_model"] = f => f.Own<Trainer>("t").Model(),
      ["qtrainer_save"] = f => Do(() => f.Own<Trainer>("t").Save(f.Path())),
      ["qtrainer_load"] = f => Do(() => f.Own<Trainer>("t").Load(f.Path())),
      ["qtrainer_save_bytes"] = f => f.Own<Trainer>("t").SaveBytes(),
      ["qtrainer_load_bytes"] = f => Do(() => f.Own<Trainer>("t").LoadBytes(f.Bytes())),
    };
    foreach (string name in new[] { "input_count", "input_dtype", "input_rank", "input_shape", "input", "attrs",
                                    "output_count", "output", "set_output_type", "fail" })
      calls["qcall_" + name] = f => throw new CannotSay("a call outside of a callback");
    foreach (string name in new[] { "create", "set_int", "set_float", "set_string", "set_ints", "set_floats", "count", "key", "kind",
                                    "get_int", "get_float", "get_string", "get_ints", "get_floats", "get_tensor" })
      calls["qattrs_" + name] = f => throw new CannotSay("attributes without what takes them");
    return calls;
  }

  // --- what must come out

  private static bool Same(object got, object want, double tolerance) {
    if (want is Step members)
      return got is Step given && members.All(pair => given.TryGetValue(pair.Key, out object value) && Same(value, pair.Value, tolerance));
    if (want is List<object> list) {
      if (got is string || !(got is IEnumerable)) return false;
      object[] items = ((IEnumerable)got).Cast<object>().ToArray();
      return items.Length == list.Count && items.Zip(list, (a, b) => Same(a, b, tolerance)).All(same => same);
    }
    if (IsNumber(got) && (IsNumber(want) || want is string)) {
      if (want is long && !(got is double)) return Convert.ToInt64(got) == (long)want;
      double a = Convert.ToDouble(got), b = ElementsOf.Real(want);
      return a == b || double.IsNaN(a) && double.IsNaN(b) || Math.Abs(a - b) <= tolerance;
    }
    return Equals(got, want);
  }

  private static bool IsNumber(object value) => value is double || value is long || value is int;

  private static string Show(object value) {
    string text = value is string || !(value is IEnumerable list) ? "" + value : "[" + string.Join(", ", list.Cast<object>().Select(Show)) + "]";
    return text.Length > 180 ? text.Substring(0, 180) : text;
  }

  private static void Require(string what, object got, object want, double tolerance = 0) {
    if (!Same(got, want, tolerance)) throw new Wrong(what + " is " + Show(got) + ", not " + Show(want));
  }

  private static object GridOf(Quantizer q) => q == null ? null : new Step {
    { "scheme", (long)q.Scheme }, { "axis", q.Axis }, { "scales", q.Scales }, { "zero_points", q.ZeroPoints },
    { "numerics", q.Numerics }, { "block_size", q.BlockSize },
  };

  private static void Expect(Frame f, Step step) {
    object got = f.Handles[((string)step["expect"]).Substring(1)];
    double tolerance = step.ContainsKey("tolerance") ? ElementsOf.Real(step["tolerance"] ?? 0L) : 0;
    if (step.ContainsKey("json")) {
      Require("json", Json.Read((string)got), step["json"], tolerance);
      return;
    }
    var tensor = (Tensor)got;
    foreach (string key in step.Keys.Except(new[] { "expect", "tolerance" })) {
      object want = step[key];
      if (key == "dtype") Require(key, Lib.DtypeName(tensor.Dtype), want);
      else if (key == "shape") Require(key, tensor.Shape, want);
      else if (key == "quantizer") Require(key, GridOf(tensor.Quantizer), want);
      else if (key == "text") Require(key, tensor.ToString(), want);
      else if (key == "data" && tensor.Dtype == DType.Float32)
        Require(key, ElementsOf.List(tensor), ((List<object>)want).Select(v => (object)(double)(float)ElementsOf.Real(v)).ToList(), tolerance);
      else if (key == "data") Require(key, ElementsOf.List(tensor), want, tolerance);
      else throw new Wrong("\"" + key + "\" is nothing to expect");
    }
  }

  private static void RefuseUnsayable(Frame f, string call, bool fails) {
    foreach (string name in new[] { "out", "outputs", "out_loss", "out_len", "buf" })
      if (f.Has(name) && f.Get(name) == null) throw new CannotSay("an output that is NULL");
    if (fails && call != "qlib_set_threads" && f.With.Keys.Any(Counts.Contains)) throw new CannotSay("a list of another length than it has");
  }

  private static void Call(Frame f, Step step) {
    var name = (string)step["call"];
    bool fails = step.ContainsKey("status");
    RefuseUnsayable(f, name, fails);
    object result;
    try {
      result = Calls[name](f);
    } catch (QTensorException exception) {
      Require("status", "QTN_" + exception.Status, fails ? step["status"] : "QTN_OK, but \"" + exception.Message + "\"");
      Require("message", exception.Message, ((string)step["message"]).Replace("{folder}", f.Folder));
      return;
    }
    if (fails) throw new Wrong(name + " is QTN_OK, not " + step["status"]);
    step.TryGetValue("out", out object to);
    if (to is List<object> names)
      for (int i = 0; i < names.Count; ++i) f.Handles[(string)names[i]] = ((Tensor[])result)[i];
    else if (to != null) f.Handles[(string)to] = result is Tensor[] tensors ? tensors[0] : result;
    if (step.ContainsKey("equals"))
      Require(name, result, step["equals"], step.ContainsKey("tolerance") ? ElementsOf.Real(step["tolerance"]) : 0);
  }

  private static void Run(Step @case, string root, string folder, Dictionary<string, List<string>> unsayable) {
    var f = new Frame(root, folder);
    int number = 0;
    foreach (Step step in ((List<object>)@case["steps"]).Cast<Step>()) {
      ++number;
      f.With = step.ContainsKey("with") ? (Step)step["with"] : new Step();
      try {
        if (step.ContainsKey("expect")) Expect(f, step);
        else Call(f, step);
      } catch (CannotSay why) {
        if (!unsayable.ContainsKey(why.Message)) unsayable[why.Message] = new List<string>();
        unsayable[why.Message].Add((string)step["call"]);
        if (!step.ContainsKey("status")) return;  // what follows needs it
      } catch (Exception exception) {
        throw new Wrong(@case["name"] + ", step " + number + ": " + (exception is Wrong ? exception.Message : exception.ToString()));
      }
    }
  }

  internal static int Main(string[] arguments) {
    var unsayable = new Dictionary<string, List<string>>();
    int total = 0, failed = 0;
    string root = arguments[0], folder = Path.Combine(Path.GetTempPath(), "qtensor-" + Path.GetRandomFileName());
    Directory.CreateDirectory(folder);
    try {
      foreach (Step @case in arguments.Skip(1).SelectMany(file => (List<object>)Json.Read(File.ReadAllBytes(file)))) {
        ++total;
        try {
          Run(@case, root, folder, unsayable);
        } catch (Wrong wrong) {
          ++failed;
          Console.WriteLine("FAILED  " + wrong.Message);
        }
      }
    } finally {
      Directory.Delete(folder, true);
    }
    foreach (KeyValuePair<string, List<string>> why in unsayable)
      Console.WriteLine("C# cannot say " + why.Key + ": " + why.Value.Count + " steps of " + why.Value.Distinct().Count() + " functions");
    string symbols = File.ReadAllText(Path.Combine(root, "capi/symbols.txt"));
    string[] unknown = Calls.Keys.Where(name => !Regex.IsMatch(symbols, "^" + name + " ", RegexOptions.Multiline)).ToArray();
    if (unknown.Length > 0) Console.WriteLine("C has no " + string.Join(" ", unknown));
    Console.WriteLine(total + " cases, " + failed + " failed");
    return failed > 0 || unknown.Length > 0 || total == 0 ? 1 : 0;
  }
}
