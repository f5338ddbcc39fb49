// SPDX-License-Identifier: Apache-2.0
#include "oracle.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace fuzz {

namespace {

constexpr std::int64_t kMostElements = 1 << 13;  // of an input: runs of both engines must stay short
constexpr std::size_t kMostInputs = 8;

std::vector<const qtensor *> pointers(const std::vector<Tensor> &tensors) {
  std::vector<const qtensor *> result;
  for (const Tensor &t : tensors) result.push_back(t.get());
  return result;
}

/// What may end on one side only: either engine refuses what it has no memory or no kernel for.
bool is_refusal(qstatus status) { return status == QTN_ENOMEM || status == QTN_EUNSUPPORTED; }

void require_same(const Answer &got, const Answer &want, const std::string &what) {
  if (is_refusal(got.status) || is_refusal(want.status)) return;
  require((got.status == QTN_OK) == (want.status == QTN_OK), what + ": " + qstatus_name(got.status) + " (" +
                                                                 got.message + ") and " + qstatus_name(want.status) +
                                                                 " (" + want.message + ")");
  for (std::size_t i = 0; i < std::min(got.outputs.size(), want.outputs.size()); ++i) {
    std::string difference;
    if (!same_bits(got.outputs[i].get(), want.outputs[i].get(), &difference))
      fail(what + ": output " + std::to_string(i) + ": " + difference);
  }
}

Attrs save_settings(Dice &dice) {
  Attrs attrs = make<Attrs>(qattrs_create);
  if (dice.next() % 3 == 0) must(qattrs_set_string(attrs.get(), "format", "qoperator"), "format");
  if (dice.next() % 4 == 0) must(qattrs_set_int(attrs.get(), "opset", 13 + dice.next() % 13), "opset");
  if (dice.next() % 8 == 0) must(qattrs_set_int(attrs.get(), "weight_pairs", 1), "weight_pairs");
  return attrs;
}

/// How many products or means of windows the model has in float, of which each engine adds the terms in an order of its
/// own, or normalizations, which are one product and one sum where images lie channels last. What follows from such a sum
/// may be anything: a comparison, or a grid, turns a last bit into something else.
std::size_t float_products(const qmodel *m) {
  const Blob report = make<Blob>(qmodel_inspect, m);
  if (!report) return 0;
  const std::string_view text(static_cast<const char *>(qblob_data(report.get())), qblob_size(report.get()));
  std::size_t count = 0;
  const auto add = [&](const std::string &part) {
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  };
  // With weights of integers, too, these bring what they multiply to halves of 8 bits.
  for (const char *op : {"LSTM", "GRU", "RNN"}) add("\"op\":\"" + std::string(op) + "\"");
  for (const char *op : {"Conv", "ConvTranspose", "MatMul", "Gemm", "AveragePool", "BatchNormalization", "Attention",
                         "MultiHeadAttention", "GroupQueryAttention"})
    add("\"op\":\"" + std::string(op) + "\",\"dtype\":\"float32\"");
  return count;
}

/// Whether all constants are finite. Beside others, what a convolution sees of its padding may be NaN on one kernel alone.
bool has_finite_constants(const qmodel *m) {
  for (std::size_t i = 0; i < qmodel_tensor_count(m); ++i) {
    const Tensor t = make<Tensor>(qmodel_tensor, m, qmodel_tensor_name(m, i));
    if (t && !is_finite(t.get())) return false;
  }
  return true;
}

void check_saved(const qmodel *m, const std::vector<Tensor> &inputs, const Answer &want, Dice &dice) {
  static const File file("model.onnx");
  const Attrs attrs = save_settings(dice);
  if (!good(qmodel_save(m, file.path(), attrs.get()))) return;
  const std::vector<std::uint8_t> bytes = file.read();
  const Model again = make<Model>(qmodel_load_bytes, bytes.data(), bytes.size());
  require(again != nullptr, std::string("what was saved cannot be read: ") + qerror_message());
  require_same(run(again.get(), "native", inputs), want, "saved and read again");
}

constexpr const char *kRecipes[] = {"onnx", "fbgemm", "onednn", "qnnpack", "nvidia", "tflite", "torchvision_fbgemm"};

/// A recipe, and now and then settings that ask for other steps.
Config config_of(Dice &dice) {
  Config config = make<Config>(qconfig_create, kRecipes[dice.next() % std::size(kRecipes)]);
  require(config != nullptr, "a recipe is not there");
  const Attrs attrs = make<Attrs>(qattrs_create);
  const auto set_text = [&](const char *key, const char *value) {
    must(qattrs_set_string(attrs.get(), key, value), key);
  };
  const auto set_int = [&](const char *key, std::int64_t value) { must(qattrs_set_int(attrs.get(), key, value), key); };
  switch (dice.next() % 12) {
    case 0:
      set_int("weight_bits", 2 + dice.next() % 7);
      break;
    case 1:
      set_int("activation_bits", 2 + dice.next() % 7);
      break;
    case 2:
      set_text("activation_dtype", "int16");
      break;
    case 3:
      set_text("activation_dtype", "int8");
      break;
    case 4:
      set_text("weight_scheme", "per_tensor_symmetric");
      break;
    case 5:
      set_int("quantize_outputs", 1);
      must(qattrs_set_float(attrs.get(), "margin", 0.3), "margin");
      break;
    case 6:
      set_text("observer", "histogram");
      break;
    case 7:
      set_int("equalize", 1);
      break;
    case 8:
      set_text("weight_scheme", "per_block_symmetric"), set_int("block_size", 1 + dice.next() % 5);
      break;
    case 9:
      set_int("pools_keep_grid", 1), set_int("replace_relu6", 1), set_int("fixed_outputs", 1);
      break;
    case 10:
      must(qconfig_set(config.get(), "op:Gather", nullptr), "tables in float");
      return config;
    default:
      if (const auto mode = dice.next() % 3; mode > 0) set_text("mode", mode == 1 ? "dynamic" : "weights_only");
      if (dice.next() % 2 == 0) {
        good(qconfig_set(config.get(), "op:MatMul", attrs.get()));
        return config;
      }
  }
  good(qconfig_set(config.get(), "*", attrs.get()));
  return config;
}

struct Samples {
  const qmodel *model;
  std::uint64_t seed;
};

qstatus sample(qtensor **inputs, size_t input_count, size_t index, void *ctx) {
  const auto &from = *static_cast<const Samples *>(ctx);
  Dice dice(from.seed + index);
  std::optional<std::vector<Tensor>> made = inputs_of(from.model, dice);
  if (!made || made->size() != input_count) return QTN_ENOMEM;
  for (std::size_t i = 0; i < input_count; ++i) inputs[i] = (*made)[i].release();
  return QTN_OK;
}

bool plain_is_possible(const qmodel *m, const qconfig *config, Samples &samples, std::size_t count) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  must(qattrs_set_int(attrs.get(), "plain", 1), "plain");
  qmodel *model = nullptr;
  const bool possible =
      good(qmodel_quantize(&model, nullptr, m, config, sample, count, attrs.get(), nullptr, &samples));
  qmodel_free(model);
  return possible;
}

/// By what looks for the best: equalized, smoothed, corrected, layers left in float.
Model quantized(const qmodel *m, const qconfig *config, Dice &dice) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  for (const char *key :
       {"plain", "bias_correction", "gptq", "adaround", "absorb_bias", "auto", "sensitivity", "histograms"})
    if (dice.next() % 4 == 0) must(qattrs_set_int(attrs.get(), key, dice.next() % 2), key);
  if (dice.next() % 2 == 0) must(qattrs_set_float(attrs.get(), "smooth", (1 + dice.next() % 4) / 4.0), "smooth");
  if (dice.next() % 4 == 0) must(qattrs_set_float(attrs.get(), "target_sqnr", dice.next() % 60), "target_sqnr");
  const bool counts_largest = dice.next() % 8 == 0;
  if (counts_largest) must(qattrs_set_float(attrs.get(), "target_top1", 0.9), "target_top1");
  if (dice.next() % 8 == 0) must(qattrs_set_string(attrs.get(), "fallback", "int16"), "fallback");
  Samples samples{m, dice.next()};
  qmodel *model = nullptr;
  qblob *report = nullptr;
  const std::size_t count = 1 + dice.next() % 4;
  const qstatus status = qmodel_quantize(&model, &report, m, config, sample, count, attrs.get(), nullptr, &samples);
  const bool went_well = good(status);
  require(went_well == (model != nullptr) && went_well == (report != nullptr), "quantizing leaves a handle behind");
  // Options may be at odds with one another, and outputs may have no rows of floats.
  if (!went_well && status != QTN_EINVAL && status != QTN_ENOMEM && !counts_largest) {
    const std::string why = qerror_message();
    require(!plain_is_possible(m, config, samples, count), "quantizing fails, and not where nothing is tried: " + why);
  }
  const Blob owned(report);
  if (owned) make<Blob>(qreport_summary, static_cast<const char *>(qblob_data(report)));
  return Model(model);
}

Model weights_only(const qmodel *m, Dice &dice) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  if (dice.next() % 2 == 0) must(qattrs_set_string(attrs.get(), "dtype", "int4"), "dtype");
  if (dice.next() % 2 == 0) must(qattrs_set_int(attrs.get(), "block_size", 1 + dice.next() % 33), "block_size");
  return make<Model>(qmodel_quantize_weights, m, attrs.get());
}

Model dynamic(const qmodel *m, const qconfig *config, Dice &dice) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  if (dice.next() % 2 == 0) must(qattrs_set_int(attrs.get(), "conv", 1), "conv");
  if (dice.next() % 3 == 0)
    must(qattrs_set_string(attrs.get(), "granularity", dice.next() % 2 == 0 ? "tensor" : "row"), "granularity");
  return make<Model>(qmodel_quantize_dynamic, m, config, attrs.get());
}

Model converted(const qmodel *m, const std::vector<Tensor> &inputs, Dice &dice) {
  static const File file("model.qcal");
  const Config config = config_of(dice);
  const Model prepared = make<Model>(qmodel_prepare, m, config.get(), QTN_PTQ);
  if (!prepared) return nullptr;
  const auto items = pointers(inputs);
  if (!good(qmodel_calibrate(prepared.get(), items.data(), items.size()))) return nullptr;
  const std::optional<std::vector<Tensor>> others = inputs_of(m, dice);
  if (others) {
    const auto more = pointers(*others);
    good(qmodel_calibrate(prepared.get(), more.data(), more.size()));
  }
  if (dice.next() % 4 != 0) return make<Model>(qmodel_convert, prepared.get(), nullptr);
  // Calibration that went through a file says the same.
  const Model other = make<Model>(qmodel_prepare, m, config.get(), QTN_PTQ);
  must(qmodel_save_calibration(prepared.get(), file.path()), "saving a calibration");
  must(qmodel_load_calibration(other.get(), file.path()), "loading a calibration");
  return make<Model>(qmodel_convert, other.get(), nullptr);
}

}  // namespace

std::uint64_t seed_of(const std::uint8_t *data, std::size_t size) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 1099511628211ULL;
  return hash;
}

std::optional<std::vector<Tensor>> inputs_of(const qmodel *m, Dice &dice) {
  if (qmodel_input_count(m) > kMostInputs) return {};
  std::vector<Tensor> inputs;
  const std::int64_t open = 1 + dice.next() % 3;
  for (std::size_t i = 0; i < qmodel_input_count(m); ++i) {
    const std::int64_t *declared = qmodel_input_shape(m, i);
    std::vector<std::int64_t> shape(declared, declared + qmodel_input_rank(m, i));
    std::int64_t count = 1;
    for (std::int64_t &d : shape) {
      if (d < 0) d = open;
      if (d > kMostElements || count * d > kMostElements) return {};
      count *= d;
    }
    inputs.push_back(filled(qmodel_input_dtype(m, i), shape, dice.next()));
    if (!inputs.back()) return {};
  }
  return inputs;
}

Answer run(const qmodel *m, const char *engine, const std::vector<Tensor> &inputs) {
  Answer answer;
  const auto failed = [&](qstatus status) {
    answer.status = status;
    if (!good(status)) answer.message = qerror_message();
    return status != QTN_OK;
  };
  const Attrs attrs = make<Attrs>(qattrs_create);
  must(qattrs_set_string(attrs.get(), "engine", engine), "engine");
  must(qattrs_set_int(attrs.get(), "threads", 1), "threads");
  qsession *handle = nullptr;
  if (failed(qsession_create(&handle, m, attrs.get()))) return answer;
  const Session session(handle);
  const auto items = pointers(inputs);
  for (int times = 0; times < 2; ++times) {  // the second run finds the plan
    std::vector<qtensor *> outputs(qmodel_output_count(m));
    if (failed(qsession_run(outputs.data(), outputs.size(), session.get(), items.data(), items.size()))) {
      for (const qtensor *output : outputs) require(output == nullptr, "an output of a run that failed");
      require(times == 0 || answer.status == QTN_ENOMEM, "the second run fails: " + answer.message);
      return answer;
    }
    std::vector<Tensor> owned;
    for (qtensor *output : outputs) owned.emplace_back(output);
    for (std::size_t i = 0; i < answer.outputs.size(); ++i) {
      std::string difference;
      if (!same_bits(owned[i].get(), answer.outputs[i].get(), &difference))
        fail(std::string(engine) + ", the second run: output " + std::to_string(i) + ": " + difference);
    }
    answer.outputs = std::move(owned);
  }
  return answer;
}

Answer check_runs(const qmodel *m, const std::vector<Tensor> &inputs, Dice &dice) {
  static const std::string best = qlib_isa();
  Answer native = run(m, "native", inputs), reference = run(m, "reference", inputs);
  const bool adds_floats = float_products(m) > 0;
  if (adds_floats) reference.outputs.clear();
  require_same(native, reference, "native and reference");
  must(qlib_set_isa("scalar"), "scalar");
  Answer plain = run(m, "native", inputs);
  if (adds_floats && !has_finite_constants(m)) plain.outputs.clear();
  must(qlib_set_isa(best.c_str()), "the best instruction set");
  require_same(native, plain, best + " and scalar");
  if (native.status == QTN_OK) check_saved(m, inputs, native, dice);
  return native;
}

void check_model(const qmodel *m, Dice &dice) {
  // A loop that a file does not end, and one that grows what it has, take what the limits allow: with sanitizers minutes.
  static const bool bounded = [] {
    const Attrs limits = make<Attrs>(qattrs_create);
    must(qattrs_set_int(limits.get(), "loop_iterations", 1000), "loop_iterations");
    must(qattrs_set_int(limits.get(), "run_bytes", 1 << 26), "run_bytes");
    must(qlib_set_limits(limits.get()), "limits");
    return true;
  }();
  require(bounded, "limits");
  make<Blob>(qmodel_inspect, m);
  const std::optional<std::vector<Tensor>> inputs = inputs_of(m, dice);
  if (!inputs) return;
  if (check_runs(m, *inputs, dice).status != QTN_OK) return;
  Model other;
  const Config config = config_of(dice);
  switch (dice.next() % 8) {
    case 0:
      other = dynamic(m, config.get(), dice);
      break;
    case 1:
      other = weights_only(m, dice);
      break;
    case 2:
      other = quantized(m, config.get(), dice);
      break;
    default:
      other = converted(m, *inputs, dice);
  }
  if (other) check_runs(other.get(), *inputs, dice);
}

}  // namespace fuzz
