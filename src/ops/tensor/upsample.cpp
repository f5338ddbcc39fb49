// SPDX-License-Identifier: Apache-2.0
// Upsample (opsets 1 to 9) is Resize by its oldest rule.
#include "base/error.hpp"
#include "ops/op.hpp"

namespace qtn::ops {

void upgrade_Upsample(OldNode &node) {
  if (node.opset >= 10) return;
  node.op = "Resize";
  if (node.attrs.has("width_scale")) {
    node.attrs.set("scales", std::vector<double>{1, 1, node.attrs.get_float("height_scale", 1),
                                                 node.attrs.get_float("width_scale", 1)});
    for (const char *name : {"height_scale", "width_scale"}) node.attrs.erase(name);
  }
  if (node.attrs.has("scales")) {
    const std::vector<double> doubles = node.attrs.get_floats("scales");
    const std::vector<float> scales(doubles.begin(), doubles.end());
    node.constants[2] = Tensor::from<float>(QTN_FLOAT32, {static_cast<std::int64_t>(scales.size())}, scales);
    node.attrs.erase("scales");
  } else {
    if (node.input_count != 2) fail(QTN_EINVAL, "Upsample: ", node.input_count, " inputs given and no scales");
    node.inputs = {0, -1, 1};
  }
  if (node.attrs.get_string("mode", "nearest") == "bilinear") node.attrs.set("mode", std::string("linear"));
  node.attrs.set("coordinate_transformation_mode", std::string("asymmetric"));
  node.attrs.set("nearest_mode", std::string("floor"));
}

}  // namespace qtn::ops
