// SPDX-License-Identifier: Apache-2.0
#include "quant/quantization_report.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/digits.hpp"
#include "base/error.hpp"
#include "base/json_writer.hpp"

namespace qtn::quant {
namespace {

constexpr double kLowAgreement = 0.95;

/// Whether outputs are so far from those in float that a network seldom does what it did.
bool is_far(const QuantizationReport &report) {
  return report.accuracy &&
         (report.accuracy->worst_db() < kUseless || report.accuracy->agreement().value_or(1) < kLowAgreement);
}

double decibels(double part) { return -10 * std::log10(part); }

/// A list of objects.
template <typename Items, typename WriteMembers>
void write_list(JsonWriter &out, const char *name, const Items &items, const WriteMembers &write_members) {
  out.key(name);
  out.begin_list();
  for (const auto &item : items) {
    out.begin_object();
    write_members(out, item);
    out.end_object();
  }
  out.end_list();
}

template <typename WriteMembers>
void write_object(JsonWriter &out, const char *name, const WriteMembers &write_members) {
  out.key(name);
  out.begin_object();
  write_members();
  out.end_object();
}

void write_loss(JsonWriter &out, const ObserverLoss &candidate) {
  out.member("observer", candidate.observer);
  out.member("sqnr_db", decibels(candidate.loss));
}

void write_choice(JsonWriter &out, const ObserverChoice &choice) {
  out.member("tensor", choice.tensor);
  out.member("chosen", choice.candidates[choice.chosen].observer);
  write_list(out, "candidates", choice.candidates, write_loss);
}

/// The reals at the ends of a grid; where channels have grids of their own, of the widest.
void write_grid(JsonWriter &out, const Quantizer &grid) {
  const auto &scales = grid.scales();
  const auto widest = static_cast<std::size_t>(std::max_element(scales.begin(), scales.end()) - scales.begin());
  const double scale = scales[widest];
  const std::int64_t zero = grid.zero_points()[widest];
  const IntegerRange range = integer_range(grid.dtype());
  out.member("dtype", dtype_name(grid.dtype()));
  out.member("grids", scales.size());
  out.member("scale", scale);
  out.member("zero_point", zero);
  out.member("low", static_cast<double>(range.lo - zero) * scale);
  out.member("high", static_cast<double>(range.hi - zero) * scale);
}

void write_seen(JsonWriter &out, const Distribution &seen) {
  const double width = std::ldexp(1.0, seen.bins.exponent);
  out.member("min", static_cast<double>(seen.min()));
  out.member("max", static_cast<double>(seen.max()));
  out.member("zeros", seen.zeros);
  write_object(out, "histogram", [&] {
    out.member("start", static_cast<double>(seen.bins.first) * width);
    out.member("width", width);
    out.member("counts", seen.bins.counts);
  });
}

void write_tensor(JsonWriter &out, const TensorOutcome &tensor) {
  out.member("name", tensor.name);
  tensor.node.empty() ? out.member("members", tensor.members) : out.member("weight_of", tensor.node);
  out.member("observer", tensor.observer);
  write_grid(out, *tensor.grid);
  if (tensor.seen) write_seen(out, *tensor.seen);
}

void write_target(JsonWriter &out, const char *name, const std::optional<double> &wanted,
                  const std::optional<double> &reached) {
  if (!wanted) return;
  write_object(out, name, [&] {
    out.member("wanted", *wanted);
    out.member("reached", *reached);
    out.member("holds", *reached >= *wanted);
  });
}

void write_fallen(JsonWriter &out, const FallenLayer &layer) {
  out.member("node", layer.node);
  out.member("alone_sqnr_db", layer.alone_db);
}

void write_trial(JsonWriter &out, const Trial &trial) {
  out.member("name", trial.name);
  out.member("sqnr_db", trial.sqnr_db);
  if (trial.without_db) out.member("without_db", *trial.without_db);
  out.member("kept", trial.kept);
}

void write_mode(JsonWriter &out, const TimedMode &mode) {
  out.member("mode", mode.mode);
  out.member("ms", mode.ms);
  if (mode.reached.sqnr_db) out.member("sqnr_db", *mode.reached.sqnr_db);
  if (mode.reached.top1) out.member("top1", *mode.reached.top1);
  out.member("kept", mode.kept);
}

void write_output(JsonWriter &out, const Accuracy &accuracy, std::size_t i) {
  out.member("name", accuracy.names[i]);
  out.member("sqnr_db", accuracy.of_output(i).sqnr_db());
  out.member("cosine", accuracy.of_output(i).cosine());
  out.member("steady", static_cast<bool>(accuracy.steady[i]));
}

void write_accuracy(JsonWriter &out, const QuantizationReport &report) {
  const Accuracy &accuracy = *report.accuracy;
  out.member("samples", report.judges);
  out.member("held_back", report.held_back);
  out.member("sqnr_db", accuracy.sqnr_db());
  if (std::ranges::count(accuracy.steady, true) > 1) out.member("worst_db", accuracy.worst_db());
  if (const auto agreement = accuracy.agreement()) out.member("top1_agreement", *agreement);
  write_list(out, "outputs", accuracy.names, [&](JsonWriter &list, const std::string &name) {
    write_output(list, accuracy, static_cast<std::size_t>(&name - accuracy.names.data()));
  });
}

void write_layer(JsonWriter &out, const QuantizationReport &report, const Sensitivity &layer) {
  out.member("node", report.nodes[layer.node]);
  out.member("op", report.ops[layer.node]);
  out.member("alone_sqnr_db", layer.alone.sqnr_db());
  out.member("alone_cosine", layer.alone.cosine());
  out.member("accumulated_sqnr_db", layer.accumulated.sqnr_db());
  out.member("accumulated_cosine", layer.accumulated.cosine());
}

void write_fusion(JsonWriter &out, const Fusion &fusion) {
  out.member("node", fusion.node);
  out.member("op", fusion.op);
  out.member("into", fusion.into);
}

void write_float_node(JsonWriter &out, const FloatNode &node) {
  out.member("node", node.node);
  out.member("op", node.op);
  out.member("reason", node.reason);
}

void write_course(JsonWriter &out, const Course &course) {
  out.member("steps", course.steps);
  out.member("planned", course.planned);
  out.member("losses", course.losses);
}

}  // namespace

void QuantizationReport::describe(const graph::Graph &float_graph, const PreparedModel &prepared,
                                  const graph::Graph &quantized) {
  for (const NodePlan &plan : prepared.placement.nodes)
    equalized = equalized || (plan.settings && plan.settings->equalize);
  tensors = tensor_outcomes(prepared, quantized);
  fused = fusions(float_graph, prepared.graph);
  counts = graph::count_nodes(quantized);
  float_nodes = quant::float_nodes(prepared, quantized, fallen);
  for (const graph::Node &node : quantized.nodes) {
    nodes.push_back(node.name);
    ops.push_back(node.op->name);
  }
}

std::string QuantizationReport::json() const {
  JsonWriter out;
  out.begin_object();
  out.member("samples", samples);
  out.member("equalized", equalized);
  out.member("bias_corrected", bias_corrected);
  out.member("rounding_learned", rounding_learned);
  std::vector<std::string> all_warnings = warnings;
  if (is_far(*this)) all_warnings.push_back("the quantized model is far from the float one");
  out.member("warnings", all_warnings);
  if (accuracy) write_object(out, "accuracy", [&] { write_accuracy(out, *this); });
  write_object(out, "nodes", [&] {
    out.member("all", counts.all);
    out.member("int8", counts.integer);
  });
  out.member("next", next_step(*this));
  write_list(out, "trials", trials, write_trial);
  write_list(out, "observers", observers, write_choice);
  write_object(out, "targets", [&] {
    write_target(out, "target_sqnr", targets.sqnr_db, reached.sqnr_db);
    write_target(out, "target_top1", targets.top1, reached.top1);
  });
  write_list(out, "modes", modes, write_mode);
  const std::span<const FallenLayer> none, all = fallen;
  write_list(out, "in_float", wide ? none : all, write_fallen);
  write_list(out, "in_int16", wide ? all : none, write_fallen);
  write_list(out, "layers", layers,
             [this](JsonWriter &list, const Sensitivity &layer) { write_layer(list, *this, layer); });
  write_list(out, "tensors", tensors, write_tensor);
  write_list(out, "fused", fused, write_fusion);
  write_list(out, "float_nodes", float_nodes, write_float_node);
  if (course) write_object(out, "training", [&] { write_course(out, *course); });
  out.end_object();
  return out.take();
}

std::string next_step(const QuantizationReport &report) {
  if (!report.targets.any() && !report.wide && report.fallen.size() > report.counts.integer)
    return "most layers stay in float for this accuracy: try plain, with which none does, or quantization-aware "
           "training";
  if (!is_far(report) || report.targets.any()) return "";
  const double target = std::max(kUseful, std::ceil(report.accuracy->worst_db()) + 5);
  const std::string fall_back =
      cat("target_sqnr ", digits_of(target, std::chars_format::fixed, 0), ", which leaves some layers in float");
  return report.automatic ? cat("try ", fall_back, ", or quantization-aware training")
                          : cat("try auto, or ", fall_back);
}

}  // namespace qtn::quant
