// SPDX-License-Identifier: Apache-2.0
// Graphs that bytes describe. What each node gives by itself is known; the session must give the same.
#include <algorithm>

#include "growing.hpp"
#include "oracle.hpp"

namespace fuzz {
namespace {

/// Whether nodes one by one have the bits of the whole: there they have other roundings, and older ones other meanings;
/// networks of other floats may compute on float32.
bool is_plain(const OnnxGraph &graph) {
  const auto is_other = [](const NamedTensor &t) {
    const qdtype dtype = qtensor_dtype(t.tensor);
    return dtype == QTN_FLOAT64 || dtype == QTN_FLOAT16 || dtype == QTN_BFLOAT16;
  };
  for (const auto *list : {&graph.inputs, &graph.constants})
    if (std::any_of(list->begin(), list->end(), is_other)) return false;
  static constexpr const char *kOthers[] = {"QuantizeLinear", "DequantizeLinear", "BatchNormalization"};
  return graph.opset >= 21 && std::none_of(graph.nodes.begin(), graph.nodes.end(), [](const Node &node) {
           return std::find(std::begin(kOthers), std::end(kOthers), node.op) != std::end(kOthers);
         });
}

void test(const std::uint8_t *data, std::size_t size) {
  Bytes bytes(data, size);
  Growing growing(bytes);
  const Model model = growing.model();
  if (!model) return;
  const OnnxGraph &graph = growing.graph();
  Dice dice(seed_of(data, size));
  const Answer answer = run(model.get(), "reference", growing.inputs());
  if (answer.status == QTN_OK && is_plain(graph))
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      std::string difference;
      if (!same_bits(answer.outputs[i].get(), graph.outputs[i].tensor, &difference))
        fail("a run and its nodes one by one: " + graph.outputs[i].name + ": " + difference);
    }
  check_model(model.get(), dice);
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{256} << 20, fuzz::test)
