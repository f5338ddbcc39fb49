// SPDX-License-Identifier: Apache-2.0
// Graphs that bytes describe: operators with operands that mostly fit, values read several times, grids between them.
// Each node is run by itself as the graph grows, so that what does not fit is left out, and what it gives is known.
#pragma once

#include "onnx_writer.hpp"

namespace fuzz {

constexpr std::int64_t kMostElements = 1 << 13;

class Growing {
 public:
  /// A graph of at least one node, or none: size() says.
  explicit Growing(Bytes &bytes) : bytes_(bytes) {
    for (int i = bytes.in(1, 3); i > 0; --i) add_input();
    first_made_ = graph_.inputs.size();
    for (int i = bytes.in(1, 12); i > 0; --i) bytes.one_in(5) ? add_grid() : add_node();
  }

  void add_input() {
    std::vector<std::int64_t> shape;
    const bool picture = !bytes_.one_in(3);
    for (int rank = picture ? bytes_.in(3, 4) : bytes_.in(0, 4); rank > 0; --rank)
      shape.push_back(bytes_.one_in(24) ? 0 : bytes_.in(1, 9));
    if (bytes_.one_in(8) && !shape.empty()) shape.back() = bytes_.in(10, 70);
    add(filled(bytes_.one_in(8) ? QTN_UINT8 : QTN_FLOAT32, shape, bytes_.byte()), "x" + std::to_string(pool_.size()));
    graph_.inputs.push_back({names_.back(), pool_.back().get()});
  }

  void add_node() {
    Called call = invent(bytes_, pool_, !bytes_.one_in(2));
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
    for (Tensor &result : results) {
      const std::string name = "v" + std::to_string(pool_.size());
      node.outputs.push_back(name);
      add(std::move(result), name);
    }
    graph_.nodes.push_back(std::move(node));
  }

  /// Quantizes and dequantizes the newest value, or one before.
  void add_grid() {
    const std::size_t at = bytes_.one_in(3) ? bytes_.byte() % pool_.size() : pool_.size() - 1;
    if (qtensor_dtype(pool_[at].get()) != QTN_FLOAT32) return;
    const float scale = static_cast<float>(bytes_.in(1, 64)) / 1024;
    const bool is_signed = bytes_.one_in(3);
    const std::uint8_t zero = bytes_.one_in(4) ? bytes_.byte() : is_signed ? std::uint8_t{0} : std::uint8_t{128};
    const std::string s =
        constant(make<Tensor>(qtensor_create, QTN_FLOAT32, nullptr, std::size_t{0}, nullptr, &scale, sizeof scale));
    const std::string z = constant(make<Tensor>(qtensor_create, is_signed ? QTN_INT8 : QTN_UINT8, nullptr,
                                                std::size_t{0}, nullptr, &zero, sizeof zero));
    const qtensor *inputs[] = {pool_[at].get(), constants_[constants_.size() - 2].get(), constants_.back().get()};
    std::string from = names_[at];
    for (const char *op : {"QuantizeLinear", "DequantizeLinear"}) {
      qtensor *output = nullptr;
      must(qop_run(&output, 1, op, inputs, 3, nullptr), op);
      const std::string name = "v" + std::to_string(pool_.size());
      add(Tensor(output), name);
      graph_.nodes.push_back({op, "", {from, s, z}, {name}, {}});
      inputs[0] = output;
      from = name;
    }
  }

  std::size_t size() const { return graph_.nodes.size(); }

  /// The newest values are outputs, and some others; an input that no node reads is one of the file all the same.
  OnnxGraph &finish() {
    static constexpr int kOpsets[] = {21, 21, 21, 21, 21, 22, 23, 25, 20, 18, 13, 12, 11, 10, 8, 7};
    graph_.opset = bytes_.one_of(kOpsets);
    graph_.open_batch = bytes_.one_in(4);
    for (std::size_t i = first_made_; i < pool_.size(); ++i)
      if (i + 1 == pool_.size() || bytes_.one_in(4)) {
        graph_.outputs.push_back({names_[i], pool_[i].get()});
      }
    return graph_;
  }

  /// finish(), as a model; null where there is no node, or the library refuses it.
  Model model() {
    if (size() == 0) return nullptr;
    const std::string file = onnx_file(finish());
    return make<Model>(qmodel_load_bytes, file.data(), file.size());
  }
  const OnnxGraph &graph() const { return graph_; }

  std::vector<Tensor> inputs() const {
    std::vector<Tensor> result;
    for (const NamedTensor &input : graph_.inputs) result.push_back(make<Tensor>(qtensor_share, input.tensor));
    return result;
  }

 private:
  void add(Tensor t, const std::string &name) {
    if (!t) throw std::bad_alloc();
    pool_.push_back(std::move(t));
    names_.push_back(name);
  }

  std::string constant(Tensor t) {
    const std::string name = "c" + std::to_string(constants_.size());
    constants_.push_back(std::move(t));
    graph_.constants.push_back({name, constants_.back().get()});
    return name;
  }

  Bytes &bytes_;
  OnnxGraph graph_;
  std::size_t first_made_ = 0;  ///< in the pool, behind what was an input from the start
  std::vector<Tensor> pool_, constants_;
  std::vector<std::string> names_;
};

}  // namespace fuzz
