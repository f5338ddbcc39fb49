// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/find_named.hpp"
#include "graph/inspect.hpp"
#include "graph/passes/passes.hpp"
#include "guard.hpp"
#include "onnx/onnx.hpp"
#include "quant/calibrate.hpp"
#include "quant/calibration.hpp"
#include "quant/quantize.hpp"
#include "quant/quantize_dynamic.hpp"
#include "quant/summary.hpp"
#include "quant/weights_only.hpp"
#include "train/quantize_qat.hpp"

using namespace qtn;
using namespace qtn::capi;

namespace {

constexpr AttrSpec kSaveOptions[] = {{"format", AttrSpec::kString},
                                     {"opset", AttrSpec::kInt},
                                     {"weight_pairs", AttrSpec::kInt},
                                     {"external_data", AttrSpec::kInt}};

onnx::SaveOptions save_options(const char *entry, const Attrs &attrs) {
  attrs.check(kSaveOptions, entry);
  constexpr std::string_view kFormats[] = {"qdq", "qoperator"};
  const std::string_view format = find_named(kFormats, attrs.get_string("format", "qdq"), entry, "format");
  onnx::SaveOptions options;
  if (format == "qoperator") options.format = onnx::Format::qoperator;
  if (attrs.has("opset")) {
    const std::int64_t opset = attrs.get_int("opset", 0);
    if (opset < onnx::kMinSaveOpset || opset > onnx::kMaxOpset)
      fail(QTN_EINVAL, entry, ": opset is ", opset, ", not from ", onnx::kMinSaveOpset, " to ", onnx::kMaxOpset);
    options.opset = static_cast<int>(opset);
  }
  options.weight_pairs = attrs.get_int("weight_pairs", 0) != 0;
  if (options.weight_pairs && options.format == onnx::Format::qoperator)
    fail(QTN_EINVAL, entry, ": weight_pairs is of format qdq, not of qoperator");
  if (attrs.has("external_data")) options.external_data = attrs.get_int("external_data", 0) != 0;
  return options;
}

constexpr AttrSpec kDynamicOptions[] = {{"conv", AttrSpec::kInt}, {"granularity", AttrSpec::kString}};
constexpr AttrSpec kWeightOptions[] = {{"dtype", AttrSpec::kString}, {"block_size", AttrSpec::kInt}};

quant::WeightsOnly weight_options(const char *entry, const Attrs &attrs) {
  attrs.check(kWeightOptions, entry);
  constexpr std::string_view kTypes[] = {"int8", "int4"};
  const std::string_view dtype = find_named(kTypes, attrs.get_string("dtype", "int8"), entry, "dtype");
  const std::int64_t block_size = attrs.get_int("block_size", 0);
  if (block_size < 0) fail(QTN_EINVAL, entry, ": block_size ", block_size, " is negative");
  return {dtype == "int4" ? QTN_INT4 : QTN_INT8, block_size};
}

/// nullptr for an index out of range.
const graph::Value *value_at(const graph::Graph &g, const std::vector<graph::ValueId> &ids, std::size_t index) {
  return index < ids.size() ? &g.value(ids[index]) : nullptr;
}
const graph::Value *input_at(const qmodel *m, std::size_t index) {
  return alive(m) ? value_at(m->graph(), m->graph().inputs, index) : nullptr;
}

/// The state of a prepared model: const where the handle is.
template <class Model>
auto &prepared_of(const char *entry, Model *m) {
  need(entry, m, "prepared");
  auto *state = std::get_if<quant::PreparedModel>(&m->value);
  if (!state) fail(QTN_ESTATE, entry, ": the model is not prepared");
  return *state;
}

void need_strings(const char *entry, const char *const *list, std::size_t count, const char *name) {
  need_array(entry, list, count, name);
  for (std::size_t i = 0; i < count; ++i)
    if (!list[i]) fail(QTN_EINVAL, entry, ": ", name, "[", i, "] is NULL");
}

/// Both outputs, or none where memory is short.
void hand_out(quant::Quantized quantized, qmodel **out, qblob **report) {
  auto text = report ? std::make_unique<qblob>(qblob{quantized.report.json()}) : nullptr;
  *out = new qmodel(std::move(quantized.graph));
  if (report) *report = text.release();
}

/// Handles that a callback sets, and gives away.
class Given {
 public:
  explicit Given(std::size_t count) : handles_(count) {}
  Given(const Given &) = delete;
  ~Given() {
    for (qtensor *handle : handles_) delete alive(handle);
  }

  qtensor **handles() { return handles_.data(); }
  /// `what` and `of` name them: "input" 0 "of sample 3".
  std::vector<Tensor> tensors(const char *entry, const char *what, const std::string &of) const {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      if (!handles_[i]) fail(QTN_EINVAL, entry, ": ", what, " ", i, " ", of, " is NULL");
      check_live(handles_[i], what);
      tensors.push_back(handles_[i]->value);
    }
    return tensors;
  }

 private:
  std::vector<qtensor *> handles_;
};

/// `what` names what a callback gave: "sample 3".
void check_given(const char *entry, qstatus status, const std::string &what) {
  if (is_failure(status)) fail(status, entry, ": ", what, " gave ", qstatus_name(status));
  if (status != QTN_OK) fail(QTN_EINVAL, entry, ": ", what, " gave ", static_cast<int>(status), ", which is no status");
}

std::vector<Tensor> read_sample(const char *entry, qmodel_sample_cb sample, std::size_t index, std::size_t input_count,
                                void *ctx) {
  Given inputs(input_count);
  check_given(entry, sample(inputs.handles(), input_count, index, ctx), cat("sample ", index));
  return inputs.tensors(entry, "input", cat("of sample ", index));
}

}  // namespace

qstatus qmodel_load(qmodel **out, const char *path) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, path, "path");
    *out = new qmodel(onnx::load(path));
  });
}

qstatus qmodel_load_bytes(qmodel **out, const void *data, size_t nbytes) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, data, "data");
    *out = new qmodel(onnx::parse({static_cast<const std::byte *>(data), nbytes}, ""));
  });
}

qstatus qmodel_save(const qmodel *m, const char *path, const qattrs *attrs) {
  return guard(__func__, [&](const char *entry) {
    need(entry, m, "m");
    need(entry, path, "path");
    const onnx::SaveOptions options = save_options(entry, attrs_or_none(attrs));
    onnx::save(finished(entry, m), path, options);
  });
}

qstatus qmodel_save_bytes(qblob **out, const qmodel *m, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, m, "m");
    const onnx::SaveOptions options = save_options(entry, attrs_or_none(attrs));
    *out = new qblob{onnx::serialize(finished(entry, m), options)};
  });
}

qstatus qmodel_fuse(qmodel **out, const qmodel *m, const char *const *nodes, size_t count) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, m, "m");
    need_strings(entry, nodes, count, "nodes");
    graph::Graph g = finished(entry, m);
    graph::fuse_chain(g, std::vector<std::string_view>(nodes, nodes + count));
    *out = new qmodel(std::move(g));
  });
}

qstatus qmodel_prepare(qmodel **out, const qmodel *m, const qconfig *config, qmode mode) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, m, "m");
    need(entry, config, "config");
    if (mode != QTN_PTQ && mode != QTN_QAT) fail(QTN_EINVAL, entry, ": mode ", static_cast<int>(mode), " is unknown");
    *out = new qmodel(quant::prepare(unprepared(entry, m), config->value, mode));
  });
}

qstatus qmodel_calibrate(qmodel *prepared, const qtensor *const *inputs, size_t input_count) {
  return guard(__func__, [&](const char *entry) {
    quant::PreparedModel &state = prepared_of(entry, prepared);
    const std::size_t wanted = state.graph.inputs.size();
    if (input_count != wanted)
      fail(QTN_EINVAL, entry, ": input_count is ", input_count, ", the model has ", wanted, " inputs");
    quant::calibrate(state, tensors(entry, inputs, input_count));
  });
}

qstatus qmodel_convert(qmodel **out, const qmodel *prepared, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    *out = new qmodel(quant::convert(prepared_of(entry, prepared), attrs_or_null(attrs)));
  });
}

qstatus qmodel_save_calibration(const qmodel *prepared, const char *path) {
  return guard(__func__, [&](const char *entry) {
    const quant::PreparedModel &state = prepared_of(entry, prepared);
    need(entry, path, "path");
    quant::save_calibration(quant::calibration_of(state), path);
  });
}

qstatus qmodel_load_calibration(qmodel *prepared, const char *path) {
  return guard(__func__, [&](const char *entry) {
    quant::PreparedModel &state = prepared_of(entry, prepared);
    need(entry, path, "path");
    quant::add(state, quant::load_calibration(path));
  });
}

qstatus qmodel_merge_calibrations(const char *path, const char *const *parts, size_t count) {
  return guard(__func__, [&](const char *entry) {
    need(entry, path, "path");
    need_strings(entry, parts, count, "parts");
    if (count == 0) fail(QTN_EINVAL, entry, ": count is 0");
    quant::Calibration sum = quant::load_calibration(parts[0]);
    for (std::size_t i = 1; i < count; ++i) quant::add(sum, quant::load_calibration(parts[i]));
    quant::save_calibration(sum, path);
  });
}

qstatus qmodel_quantize(qmodel **out, qblob **report, const qmodel *m, const qconfig *config, qmodel_sample_cb sample,
                        size_t sample_count, const qattrs *attrs, qmodel_progress_cb progress, void *ctx) {
  clear(out);
  if (report) clear(report);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, m, "m");
    need(entry, config, "config");
    if (!sample) fail(QTN_EINVAL, entry, ": sample is NULL");
    check_count(entry, sample_count, "samples");
    const graph::Graph &g = unprepared(entry, m);
    const std::size_t input_count = g.inputs.size();
    const auto read = [&](std::size_t index) { return read_sample(entry, sample, index, input_count, ctx); };
    const auto tell = [&](const char *stage, std::size_t done, std::size_t total) {
      if (progress && progress(stage, done, total, ctx) != QTN_CONTINUE)
        fail(QTN_ECANCELED, entry, ": canceled while ", stage, ", ", done, " of ", total, " done");
    };
    quant::Quantized quantized = quant::quantize(g, config->value, {sample_count, read}, attrs_or_null(attrs), tell);
    hand_out(std::move(quantized), out, report);
  });
}

qstatus qmodel_quantize_qat(qmodel **out, qblob **report, const qmodel *m, const qconfig *config, qmodel_batch_cb batch,
                            size_t batch_count, size_t target_count, const qattrs *attrs, qmodel_training_cb progress,
                            void *ctx) {
  clear(out);
  if (report) clear(report);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, m, "m");
    need(entry, config, "config");
    if (!batch) fail(QTN_EINVAL, entry, ": batch is NULL");
    check_count(entry, batch_count, "batches");
    check_count(entry, target_count, "targets");
    const graph::Graph &g = unprepared(entry, m);
    const auto read = [&](std::size_t epoch, std::size_t index) {
      Given inputs(g.inputs.size()), targets(target_count);
      const qstatus status =
          batch(inputs.handles(), g.inputs.size(), targets.handles(), target_count, epoch, index, ctx);
      const std::string of = cat("of batch ", index);
      check_given(entry, status, cat("batch ", index));
      return train::Batch{inputs.tensors(entry, "input", of), targets.tensors(entry, "target", of)};
    };
    const auto tell = [&](const char *stage, std::size_t done, std::size_t total, double loss, qanswer may_be) {
      const qanswer answer = progress ? progress(stage, done, total, loss, ctx) : QTN_CONTINUE;
      if (answer != QTN_CONTINUE && answer != may_be)
        fail(QTN_ECANCELED, entry, ": canceled while ", stage, ", ", done, " of ", total, " done");
      return answer == QTN_CONTINUE;
    };
    quant::Quantized quantized = train::quantize_qat(
        g, config->value, {batch_count, read}, attrs_or_none(attrs),
        [&](const char *stage, std::size_t done, std::size_t total) {
          tell(stage, done, total, std::nan(""), QTN_CONTINUE);
        },
        [&](std::size_t done, std::size_t total, double loss) {
          return tell("training", done, total, loss, QTN_STOP);
        });
    hand_out(std::move(quantized), out, report);
  });
}

qstatus qreport_summary(qblob **out, const char *report) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, report, "report");
    *out = new qblob{quant::summary_of(report)};
  });
}

qstatus qmodel_quantize_dynamic(qmodel **out, const qmodel *m, const qconfig *config, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, m, "m");
    need(entry, config, "config");
    const Attrs &options = attrs_or_none(attrs);
    options.check(kDynamicOptions, entry);
    const graph::Graph &g = unprepared(entry, m);
    quant::DynamicOptions dynamic{options.get_int("conv", 0) != 0, {}};
    if (options.has("granularity")) dynamic.granularity = ops::parse_granularity(options.get_string("granularity", ""));
    *out = new qmodel(quant::quantize_dynamic(g, config->value, dynamic));
  });
}

qstatus qmodel_quantize_weights(qmodel **out, const qmodel *m, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, m, "m");
    const quant::WeightsOnly grid = weight_options(entry, attrs_or_none(attrs));
    *out = new qmodel(quant::quantize_weights(unprepared(entry, m), grid));
  });
}

size_t qmodel_input_count(const qmodel *m) { return alive(m) ? m->graph().inputs.size() : 0; }

const char *qmodel_input_name(const qmodel *m, size_t index) {
  const graph::Value *value = input_at(m, index);
  return value ? value->name.c_str() : nullptr;
}

qdtype qmodel_input_dtype(const qmodel *m, size_t index) {
  const graph::Value *value = input_at(m, index);
  return value && value->dtype ? *value->dtype : qdtype{};
}

size_t qmodel_input_rank(const qmodel *m, size_t index) {
  const graph::Value *value = input_at(m, index);
  return value && value->shape ? value->shape->size() : 0;
}

const int64_t *qmodel_input_shape(const qmodel *m, size_t index) {
  const graph::Value *value = input_at(m, index);
  return value && value->shape ? value->shape->data() : nullptr;
}

size_t qmodel_output_count(const qmodel *m) { return alive(m) ? m->graph().outputs.size() : 0; }

const char *qmodel_output_name(const qmodel *m, size_t index) {
  const graph::Value *value = alive(m) ? value_at(m->graph(), m->graph().outputs, index) : nullptr;
  return value ? value->name.c_str() : nullptr;
}

size_t qmodel_tensor_count(const qmodel *m) { return alive(m) ? m->constants.size() : 0; }

const char *qmodel_tensor_name(const qmodel *m, size_t index) {
  const graph::Value *value = alive(m) ? value_at(m->graph(), m->constants, index) : nullptr;
  return value ? value->name.c_str() : nullptr;
}

qstatus qmodel_tensor(qtensor **out, const qmodel *m, const char *name) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, m, "m");
    need(entry, name, "name");
    *out = new qtensor(graph::constant_tensor(m->graph(), graph::find_constant(m->graph(), entry, name)));
  });
}

qstatus qmodel_set_tensor(qmodel *m, const char *name, const qtensor *t) {
  return guard(__func__, [&](const char *entry) {
    need(entry, m, "m");
    need(entry, name, "name");
    need(entry, t, "t");
    auto *g = std::get_if<graph::Graph>(&m->value);
    if (!g) fail(QTN_ESTATE, entry, ": the model is prepared, its observers know other weights");
    graph::set_constant_tensor(*g, entry, name, t->value);
  });
}

qstatus qmodel_inspect(qblob **out, const qmodel *m) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, m, "m");
    *out = new qblob{graph::inspect_json(m->graph())};
  });
}

void qmodel_free(qmodel *m) { delete alive(m); }
