// SPDX-License-Identifier: Apache-2.0

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.qtensor.Batches;
import org.qtensor.Config;
import org.qtensor.DType;
import org.qtensor.Layer;
import org.qtensor.Lib;
import org.qtensor.Mode;
import org.qtensor.Model;
import org.qtensor.Observer;
import org.qtensor.Op;
import org.qtensor.Operator;
import org.qtensor.QTensorException;
import org.qtensor.Quantizer;
import org.qtensor.Report;
import org.qtensor.Samples;
import org.qtensor.Session;
import org.qtensor.Status;
import org.qtensor.Tensor;
import org.qtensor.Trainer;

/** The functions of C in Java. */
final class Calls {
  /** Gives a handle, several, or a value. */
  interface Call {
    Object of(Frame f) throws Exception;
  }

  /** One that gives nothing. */
  interface Action {
    void of(Frame f) throws Exception;
  }

  static final Map<String, Call> BY_NAME = new HashMap<>();

  private Calls() {}

  private static void put(String name, Call call) {
    BY_NAME.put(name, call);
  }

  private static void act(String name, Action action) {
    BY_NAME.put(name, f -> {
      action.of(f);
      return null;
    });
  }

  private static Call refused(String why) {
    return f -> {
      throw new Frame.CannotSay(why);
    };
  }

  static {
    library();
    quantizers();
    tensors();
    files();
    observers();
    operators();
    models();
    layers();
    trainers();
  }

  private static void library() {
    put("qlib_version", f -> {
      int[] v = Arrays.stream(Lib.version().split("\\.")).mapToInt(Integer::parseInt).toArray();
      return v[0] << 16 | v[1] << 8 | v[2];
    });
    act("qlib_set_isa", f -> Lib.setIsa(f.text("isa")));
    act("qlib_set_threads", f -> Lib.setThreads(f.small("count")));
    act("qlib_set_limits", f -> Lib.setLimits(attrsOrNull(f, "limits")));
    put("qlib_limit", f -> Lib.limit(f.text("name")));
    put("qstatus_name", f -> Lib.statusName(f.constant("status", Status.class, Status::of)));
    put("qdtype_name", f -> Lib.dtypeName(f.dtype()));
    for (String name : List.of("qattrs_create", "qattrs_set_int", "qattrs_set_float", "qattrs_set_string",
             "qattrs_set_ints", "qattrs_set_floats", "qattrs_count", "qattrs_key", "qattrs_kind", "qattrs_get_int",
             "qattrs_get_float", "qattrs_get_string", "qattrs_get_ints", "qattrs_get_floats", "qattrs_get_tensor")) {
      put(name, refused("attributes without what takes them"));
    }
    for (String name : List.of("input_count", "input_dtype", "input_rank", "input_shape", "input", "attrs", "output_count",
             "output", "set_output_type", "fail")) {
      put("qcall_" + name, refused("a call outside of a callback"));
    }
  }

  private static void quantizers() {
    put("qquantizer_create", f -> new Quantizer(f.dtype(), f.scheme(), f.small("axis"), f.reals("scales"),
                                 f.longsOrNone("zero_points"), f.attrs()));
    put("qquantizer_choose", f -> Quantizer.choose(f.dtype(), f.scheme(), f.small("axis"), f.reals("mins"), f.reals("maxs"),
                                 f.attrs()));
    put("qquantizer_choose_dynamic", f -> Quantizer.chooseDynamic(f.dtype(), f.tensor("x"), f.attrs()));
    put("qquantizer_dtype", f -> Lib.dtypeName(f.own(Quantizer.class, "q").dtype()));
    put("qquantizer_scheme", f -> f.own(Quantizer.class, "q").scheme().value());
    put("qquantizer_axis", f -> f.own(Quantizer.class, "q").axis());
    put("qquantizer_count", f -> f.own(Quantizer.class, "q").count());
    put("qquantizer_scales", f -> f.own(Quantizer.class, "q").scales());
    put("qquantizer_zero_points", f -> f.own(Quantizer.class, "q").zeroPoints());
    put("qquantizer_float_zero_points", f -> f.own(Quantizer.class, "q").floatZeroPoints());
    put("qquantizer_block_size", f -> f.own(Quantizer.class, "q").blockSize());
    put("qquantizer_quant_min", f -> f.own(Quantizer.class, "q").quantMin());
    put("qquantizer_quant_max", f -> f.own(Quantizer.class, "q").quantMax());
    put("qquantizer_numerics", f -> f.own(Quantizer.class, "q").numerics());
  }

  private static Tensor self(Frame f) {
    return f.own(Tensor.class, "t");
  }

  private static void tensors() {
    put("qtensor_create", f -> Tensor.create(f.dtype(), f.quantizer("quantizer"), f.data(f.dtype()), f.longs("shape")));
    put("qtensor_wrap", Calls::wrap);
    put("qtensor_share", f -> self(f).share());
    put("qtensor_quantize", f -> f.own(Tensor.class, "x").quantize(f.quantizer("quantizer")));
    put("qtensor_dequantize", f -> f.own(Tensor.class, "x").dequantize());
    put("qtensor_select", f -> self(f).select(f.small("axis"), f.number("index", 0)));
    put("qtensor_slice",
        f -> self(f).slice(f.small("axis"), f.number("start", 0), f.number("stop", 0), f.number("step", 0)));
    put("qtensor_permute", f -> self(f).permute(f.longs("axes")));
    put("qtensor_reshape", f -> self(f).reshape(f.longs("shape")));
    put("qtensor_contiguous", f -> self(f).contiguous());
    put("qtensor_int_repr", f -> self(f).intRepr());
    put("qtensor_equal", f -> f.own(Tensor.class, "a").equal(f.tensor("b")) ? 1 : 0);
    act("qtensor_copy", f -> f.own(Tensor.class, "dst").copy(f.tensor("src")));
    put("qtensor_item", f -> self(f).item());
    put("qtensor_describe", f -> {
      String text = self(f).describe();
      return Map.of("text", text, "length", text.getBytes("UTF-8").length);
    });
    put("qtensor_data_mut", f -> self(f).buffer().isDirect());
    put("qtensor_dtype", f -> Lib.dtypeName(self(f).dtype()));
    put("qtensor_rank", f -> self(f).rank());
    put("qtensor_shape", f -> self(f).shape());
    put("qtensor_strides", f -> self(f).strides());
    put("qtensor_numel", f -> self(f).numel());
    put("qtensor_nbytes", f -> self(f).nbytes());
    put("qtensor_quantizer", f -> self(f).isQuantized());
    for (String name : List.of("qtensor_to_dlpack", "qtensor_to_dlpack_versioned", "qtensor_from_dlpack",
             "qtensor_from_dlpack_versioned")) {
      put(name, refused("DLPack, which Java has no libraries for"));
    }
  }

  private static Object wrap(Frame f) {
    if (f.get("shape").isJsonNull() || f.get("data").isJsonNull()) {
      throw new Frame.CannotSay("a list that is NULL");
    }
    byte[] data = f.data(f.dtype());
    int offset = f.small("misaligned");
    ByteBuffer memory = ByteBuffer.allocateDirect(data.length + 8).order(ByteOrder.nativeOrder());
    memory.position(offset).put(data).flip().position(offset);
    return f.get("quantizer").isJsonNull() ? Tensor.wrap(memory, f.dtype(), f.longs("shape"))
                                           : Tensor.wrap(memory, f.quantizer("quantizer"), f.longs("shape"));
  }

  private static void files() {
    act("qtensor_save", f -> self(f).save(f.path()));
    put("qtensor_load", f -> Tensor.load(f.path()));
    act("qtensor_save_npy", f -> self(f).saveNpy(f.path()));
    put("qtensor_load_npy", f -> Tensor.loadNpy(f.path()));
    act("qtensor_save_all", f -> Tensor.saveAll(f.path(), f.texts("names"), f.tensors("tensors")));
    put("qtensor_load_named", f -> Tensor.loadNamed(f.path(), f.text("name")));
    put("qtensor_load_rows", f -> Tensor.loadRows(f.path(), f.get("name").isJsonNull() ? "" : f.text("name"),
                                 f.number("start", 0), f.number("stop", 0)));
    put("qtensor_inspect", f -> Tensor.inspect(f.path()));
  }

  private static void observers() {
    put("qobserver_create", f -> new Observer(f.text("kind"), f.attrs()));
    act("qobserver_observe", f -> f.own(Observer.class, "o").observe(f.tensor("x")));
    act("qobserver_merge", f -> f.own(Observer.class, "o").merge(f.own(Observer.class, "other")));
    put("qobserver_quantizer", f -> f.own(Observer.class, "o").quantizer());
    put("qobserver_save", f -> f.own(Observer.class, "o").save());
    act("qobserver_save_file", f -> f.own(Observer.class, "o").saveFile(f.path()));
    put("qobserver_load_file", f -> Observer.loadFile(f.path()));
    put("qobserver_load", f -> {
      byte[] saved = f.own(byte[].class, "data");
      return Observer.load(Arrays.copyOf(saved, (int) f.number("nbytes", saved.length)));
    });
  }

  /** The operator that cases register: each element times the attribute "factor". */
  private static final class Scale implements Operator {
    @Override
    public List<Type> infer(List<Operand> inputs, Map<String, Object> attributes, int outputs) {
      return List.of(new Type(inputs.get(0).dtype(), inputs.get(0).shape()));
    }

    @Override
    public Tensor[] run(Tensor[] inputs, Map<String, Object> attributes) {
      if (!(attributes.get("factor") instanceof Double factor)) {
        throw new QTensorException(Status.EINVAL, "factor is missing");
      }
      float[] x = inputs[0].toFloatArray();
      for (int i = 0; i < x.length; ++i) {
        x[i] *= factor.floatValue();
      }
      return new Tensor[] {Tensor.of(x, inputs[0].shape())};
    }
  }

  private static void operators() {
    act("qop_register", f -> {
      if (f.isNull("infer") || f.isNull("run")) {
        throw new Frame.CannotSay("a callback that is NULL");
      }
      Operator.register(f.text("domain"), f.text("name"), f.number("since_version", 0), new Scale());
    });
    act("qop_unregister", f -> Operator.unregister(f.text("domain"), f.text("name"), f.number("since_version", 0)));
    put("qop_run", f -> Op.run(f.text("op"), f.tensors("inputs"), f.attrs(), f.number("output_count", 1)));
    put("qop_linear",
        f -> Op.linear(f.tensor("x"), f.tensor("weight"), f.tensor("bias"), f.quantizer("out_quantizer")));
    put("qop_conv2d",
        f -> Op.conv2d(f.tensor("x"), f.tensor("weight"), f.tensor("bias"), f.quantizer("out_quantizer"), f.attrs()));
    put("qop_relu", f -> Op.relu(f.tensor("x")));
    put("qop_fake_quantize", f -> Op.fakeQuantize(f.tensor("x"), f.quantizer("quantizer")));
    put("qop_fake_quantize_backward",
        f -> Op.fakeQuantizeBackward(f.tensor("dy"), f.tensor("x"), f.quantizer("quantizer")));
    put("qop_add", f -> Op.add(f.tensor("a"), f.tensor("b"), f.quantizer("out_quantizer")));
    put("qop_matmul", f -> Op.matmul(f.tensor("a"), f.tensor("b"), f.quantizer("out_quantizer")));
    put("qop_cat", f -> Op.cat(f.tensors("inputs"), f.small("axis"), f.quantizer("out_quantizer")));
    put("qop_max_pool2d", f -> Op.maxPool2d(f.tensor("x"), f.attrs()));
    put("qop_avg_pool2d", f -> Op.avgPool2d(f.tensor("x"), f.quantizer("out_quantizer"), f.attrs()));
  }

  private static Model model(Frame f) {
    return f.own(Model.class, "m");
  }

  private static Model prepared(Frame f) {
    return f.own(Model.class, "prepared");
  }

  private static Config config(Frame f) {
    return f.own(Config.class, "config");
  }

  private static Model withReport(Frame f, Model model) {
    if (!f.get("report").isJsonNull()) {
      f.handles.put(f.text("report"), model.report().json());
    }
    return model;
  }

  private static Layer layer(Frame f) {
    return f.own(Layer.class, "layer");
  }

  private static void layers() {
    put("qlayer_create", f -> new Layer(f.text("kind"), f.own(Tensor.class, "weight"), f.tensor("bias"),
                             f.handle(Config.class, "config"), f.quantizer("x_quantizer"), f.quantizer("out_quantizer"),
                             f.attrs()));
    put("qlayer_run", f -> layer(f).run(f.own(Tensor.class, "x")));
    put("qlayer_weight", f -> layer(f).weight());
    put("qlayer_bias", f -> layer(f).bias());
  }

  private static void models() {
    put("qconfig_create", f -> new Config(f.text("name")));
    act("qconfig_set", f -> f.own(Config.class, "c").set(f.text("selector"), attrsOrNull(f, "settings")));
    act("qconfig_save", f -> f.own(Config.class, "c").save(f.path()));
    put("qconfig_load", f -> Config.load(f.path()));
    put("qmodel_load", f -> Model.load(f.path()));
    put("qmodel_load_bytes", f -> {
      if (f.get("data").isJsonNull()) {
        f.list("data");
      }
      return Model.load(f.bytes());
    });
    act("qmodel_save", f -> model(f).save(f.path(), f.attrs()));
    put("qmodel_save_bytes", f -> model(f).saveBytes(f.attrs()));
    put("qmodel_fuse", f -> model(f).fuse(f.texts("nodes")));
    put("qmodel_prepare", f -> {
      Mode mode = f.get("mode").isJsonNull() ? Mode.PTQ : f.constant("mode", Mode.class, Mode::of);
      return model(f).prepare(config(f), mode);
    });
    act("qmodel_calibrate", f -> prepared(f).calibrate(f.tensors("inputs")));
    put("qmodel_convert", f -> prepared(f).convert(f.attrs()));
    act("qmodel_save_calibration", f -> prepared(f).saveCalibration(f.path()));
    act("qmodel_load_calibration", f -> prepared(f).loadCalibration(f.path()));
    act("qmodel_merge_calibrations", f -> Model.mergeCalibrations(f.path(),
                                         f.texts("parts").stream().map(part -> f.place(part).toString()).toList()));
    put("qmodel_quantize", f -> {
      if (f.isNull("sample")) {
        throw new Frame.CannotSay("a callback that is NULL");
      }
      Tensor[] samples = f.tensors("samples");
      return withReport(f, model(f).quantize(
          Samples.of(samples.length, i -> new Tensor[] {samples[(int) i]}), config(f), f.attrs(), null));
    });
    put("qmodel_quantize_qat", f -> {
      if (f.isNull("batch")) {
        throw new Frame.CannotSay("a callback that is NULL");
      }
      Tensor[] inputs = f.tensors("inputs");
      Tensor[] targets = f.tensors("targets");
      List<Batches.Batch> batches = new ArrayList<>();
      for (int i = 0; i < inputs.length; ++i) {
        batches.add(new Batches.Batch(new Tensor[] {inputs[i]}, new Tensor[] {targets[i]}));
      }
      return withReport(f, model(f).quantizeQat(Batches.of(batches), config(f), f.attrs(), null));
    });
    put("qreport_summary", f -> new Report(f.text("report")) + "\n");
    put("qmodel_quantize_dynamic", f -> model(f).quantizeDynamic(config(f), f.attrs()));
    put("qmodel_quantize_weights", f -> model(f).quantizeWeights(f.attrs()));
    put("qmodel_input_count", f -> model(f).inputCount());
    put("qmodel_output_count", f -> model(f).outputCount());
    put("qmodel_tensor_count", f -> model(f).tensorCount());
    put("qmodel_tensor_name", f -> model(f).tensorName(f.index()));
    put("qmodel_tensor", f -> model(f).tensor(f.text("name")));
    act("qmodel_set_tensor", f -> model(f).setTensor(f.text("name"), f.tensor("t")));
    put("qmodel_input_name", f -> model(f).inputName(f.index()));
    put("qmodel_input_dtype", f -> Lib.dtypeName(model(f).inputDtype(f.index())));
    put("qmodel_input_rank", f -> model(f).inputShape(f.index()).length);
    put("qmodel_input_shape", f -> model(f).inputShape(f.index()));
    put("qmodel_output_name", f -> model(f).outputName(f.index()));
    put("qmodel_inspect", f -> model(f).inspect());
    put("qsession_create", f -> new Session(model(f), f.attrs()));
    put("qsession_run", f -> {
      Session s = f.own(Session.class, "s");
      if (f.number("output_count", s.outputCount()) != s.outputCount()) {
        throw new Frame.CannotSay("another number of outputs than there are");
      }
      return s.run(f.tensors("inputs"));
    });
    act("qsession_bind", f -> f.own(Session.class, "s").bind((int) f.number("output", 0), (int) f.number("input", 0)));
    act("qsession_reset", f -> f.own(Session.class, "s").reset());
    put("qsession_profile", f -> f.own(Session.class, "s").profile(f.tensors("inputs")));
  }

  private static Trainer trainer(Frame f) {
    return f.own(Trainer.class, "t");
  }

  private static Map<String, Object> attrsOrNull(Frame f, String name) {
    return f.get(name).isJsonNull() ? null : f.attrs(name);
  }

  private static void trainers() {
    put("qtrainer_create", f -> new Trainer(model(f), f.attrs()));
    put("qtrainer_step", f -> trainer(f).step(f.tensors("inputs"), f.tensors("targets")));
    put("qtrainer_backward", f -> trainer(f).backward(f.tensors("inputs"), f.tensors("targets")));
    act("qtrainer_update", f -> trainer(f).update());
    put("qtrainer_evaluate", f -> {
      if (f.number("output_count", 1) != 1) {
        throw new Frame.CannotSay("another number of outputs than there are");
      }
      return trainer(f).evaluate(f.tensors("inputs"));
    });
    act("qtrainer_set", f -> trainer(f).set(attrsOrNull(f, "attrs")));
    act("qtrainer_set_group", f -> trainer(f).setGroup(f.text("selector"), attrsOrNull(f, "settings")));
    put("qtrainer_parameter_count", f -> trainer(f).parameterCount());
    put("qtrainer_parameter_name", f -> trainer(f).parameterName(f.index()));
    put("qtrainer_parameter", f -> trainer(f).parameter(f.index()));
    put("qtrainer_gradient", f -> trainer(f).gradient(f.index()));
    put("qtrainer_buffer_count", f -> trainer(f).bufferCount());
    put("qtrainer_buffer_name", f -> trainer(f).bufferName(f.index()));
    put("qtrainer_buffer", f -> trainer(f).buffer(f.index()));
    put("qtrainer_model", f -> trainer(f).model());
    act("qtrainer_save", f -> trainer(f).save(f.path()));
    act("qtrainer_load", f -> trainer(f).load(f.path()));
    put("qtrainer_save_bytes", f -> trainer(f).saveBytes());
    act("qtrainer_load_bytes", f -> trainer(f).loadBytes(f.bytes()));
  }
}
