// SPDX-License-Identifier: Apache-2.0
#include "growing.hpp"

#include <algorithm>
#include <cmath>

namespace fuzz {

Growing::Growing(Bytes &bytes) : bytes_(bytes) {
  for (int i = bytes.in(1, 3); i > 0; --i) add_input();
  first_made_ = graph_.inputs.size();
  for (int i = bytes.in(1, 12); i > 0; --i) {
    constexpr std::uint8_t kFirstBlock = 240;  // so inputs that are stored keep their meaning
    const std::uint8_t kind = bytes.byte();
    if (kind >= kFirstBlock)
      add_block();
    else if (kind % 5 == 4)
      add_grid();
    else
      add_node();
  }
}

void Growing::add_input() {
  std::vector<std::int64_t> shape;
  const bool image = !bytes_.one_in(3);
  for (int rank = image ? bytes_.in(3, 4) : bytes_.in(0, 4); rank > 0; --rank)
    shape.push_back(bytes_.one_in(24) ? 0 : bytes_.in(1, 9));
  if (bytes_.one_in(8) && !shape.empty()) shape.back() = bytes_.in(10, 70);
  const qdtype dtype = bytes_.one_in(8) ? QTN_UINT8 : QTN_FLOAT32;
  graph_.inputs.push_back(add(filled(dtype, shape, bytes_.byte())));
  graph_.inputs.back().name = names_.back() = "x" + std::to_string(pool_.size() - 1);
}

void Growing::add_node() {
  Called call = invent(bytes_, pool_, !bytes_.one_in(2));
  // As files hold them, so that a node alone has what the network has.
  for (Attribute &attribute : call.attrs) {
    attribute.f = static_cast<float>(attribute.f);
    for (double &f : attribute.floats) f = static_cast<float>(f);
  }
  Node node{call.schema->op, call.schema->domain, {}, {}, call.attrs};
  std::vector<const qtensor *> inputs;
  for (const Operand &operand : call.operands) {
    inputs.push_back(operand.of_pool >= 0 ? pool_[static_cast<std::size_t>(operand.of_pool)].get()
                                          : operand.made.get());
    node.inputs.push_back(operand.of_pool >= 0 ? names_[static_cast<std::size_t>(operand.of_pool)] : "");
  }
  const Attrs attrs = attrs_of(call.attrs);
  std::vector<qtensor *> outputs(call.output_count);
  const qstatus status =
      qop_run(outputs.data(), outputs.size(), node.op.c_str(), inputs.data(), inputs.size(), attrs.get());
  std::vector<Tensor> results;
  bool small = true;
  for (qtensor *output : outputs) {
    results.emplace_back(output);
    small = small && output != nullptr && qtensor_numel(output) <= kMostElements;
  }
  // A node that is refused ends most graphs; few are worth keeping.
  if (!good(status) || !small) return;
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    if (call.operands[i].made) {
      const std::string name = "c" + std::to_string(constants_.size());
      const bool is_float = qtensor_dtype(call.operands[i].made.get()) == QTN_FLOAT32;
      constants_.push_back(std::move(call.operands[i].made));
      // What is made of constants alone never runs.
      const bool given = call.measured && is_float && (i == 0 || bytes_.one_in(2));
      (given ? graph_.inputs : graph_.constants).push_back({name, constants_.back().get()});
      node.inputs[i] = name;
    }
  for (Tensor &result : results) node.outputs.push_back(add(std::move(result)).name);
  graph_.nodes.push_back(std::move(node));
}

/// Quantizes and dequantizes the newest value, or one before.
void Growing::add_grid() {
  const std::size_t at = bytes_.one_in(3) ? bytes_.byte() % pool_.size() : pool_.size() - 1;
  const qtensor *t = pool_[at].get();
  if (qtensor_dtype(t) == QTN_FLOAT32 && qtensor_numel(t) <= kMostElements) on_grid(value(at));
}

NamedTensor Growing::on_grid(const NamedTensor &x) {
  const float scale = static_cast<float>(bytes_.in(1, 64)) / 1024;
  const bool is_signed = bytes_.one_in(3);
  const std::uint8_t zero = bytes_.one_in(4) ? bytes_.byte() : is_signed ? std::uint8_t{0} : std::uint8_t{128};
  const NamedTensor s = scalar(scale);
  const NamedTensor z = constant(make<Tensor>(qtensor_create, is_signed ? QTN_INT8 : QTN_UINT8, nullptr, std::size_t{0},
                                              nullptr, &zero, sizeof zero));
  return node("DequantizeLinear", {node("QuantizeLinear", {x, s, z}), s, z});
}

OnnxGraph &Growing::finish() {
  static constexpr int kOpsets[] = {21, 21, 21, 21, 21, 22, 23, 25, 20, 18, 13, 12, 11, 10, 8, 7};
  static constexpr int kOldest[] = {6, 6, 5, 4, 3, 2, 1, 26};
  const std::uint8_t opset = bytes_.byte();
  graph_.opset = opset >= 248 ? kOldest[opset - 248] : kOpsets[opset % std::size(kOpsets)];
  graph_.open_batch = bytes_.one_in(4);
  for (std::size_t i = first_made_; i < pool_.size(); ++i)
    if (i + 1 == pool_.size() || bytes_.one_in(4)) graph_.outputs.push_back(value(i));
  return graph_;
}

Model Growing::model() {
  if (size() == 0) return nullptr;
  const std::string file = onnx_file(finish());
  return make<Model>(qmodel_load_bytes, file.data(), file.size());
}

std::vector<Tensor> Growing::inputs() const {
  std::vector<Tensor> result;
  for (const NamedTensor &input : graph_.inputs) result.push_back(make<Tensor>(qtensor_share, input.tensor));
  return result;
}

bool Growing::consists_of(std::span<const char *const> ops, float largest) const {
  for (const Node &node : graph_.nodes)
    if (std::none_of(ops.begin(), ops.end(), [&](const char *op) { return node.op == op; })) return false;
  const auto is_small = [&](const Tensor &t) {
    if (qtensor_dtype(t.get()) != QTN_FLOAT32) return true;
    const Tensor rows = make<Tensor>(qtensor_contiguous, t.get());
    const auto *data = static_cast<const float *>(qtensor_data(rows.get()));
    return std::all_of(data, data + qtensor_numel(rows.get()), [&](float x) { return std::abs(x) <= largest; });
  };
  return std::all_of(pool_.begin(), pool_.end(), is_small) &&
         std::all_of(constants_.begin(), constants_.end(), is_small);
}

NamedTensor Growing::add(Tensor t) {
  if (!t) throw std::bad_alloc();
  names_.push_back("v" + std::to_string(pool_.size()));
  pool_.push_back(std::move(t));
  return value(pool_.size() - 1);
}

NamedTensor Growing::constant(Tensor t) {
  if (!t) throw std::bad_alloc();
  constants_.push_back(std::move(t));
  graph_.constants.push_back({"c" + std::to_string(constants_.size() - 1), constants_.back().get()});
  return graph_.constants.back();
}

std::vector<NamedTensor> Growing::nodes(const char *op, const std::vector<NamedTensor> &operands,
                                        const std::vector<Attribute> &attributes, std::size_t output_count) {
  Node node{op, "", {}, {}, attributes};
  std::vector<const qtensor *> inputs;
  for (const NamedTensor &operand : operands) {
    inputs.push_back(operand.tensor);
    node.inputs.push_back(operand.name);
  }
  const Attrs attrs = attrs_of(attributes);
  std::vector<qtensor *> outputs(output_count);
  const bool went_well = good(qop_run(outputs.data(), outputs.size(), op, inputs.data(), inputs.size(), attrs.get()));
  std::vector<Tensor> results;
  for (qtensor *output : outputs) results.emplace_back(output);
  if (!went_well || std::any_of(results.begin(), results.end(),
                                [](const Tensor &t) { return qtensor_numel(t.get()) > kMostElements; }))
    throw Refused();
  std::vector<NamedTensor> made;
  for (Tensor &result : results) {
    made.push_back(add(std::move(result)));
    node.outputs.push_back(made.back().name);
  }
  graph_.nodes.push_back(std::move(node));
  return made;
}

}  // namespace fuzz
