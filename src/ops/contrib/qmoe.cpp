// SPDX-License-Identifier: Apache-2.0
// MoE whose weights have 2, 4 or 8 bits. They stay as they are in memory: rows of the experts that are chosen become
// floats, a few at a time, in cache.
#include "kernels/grid/grid.hpp"
#include "kernels/kernel.hpp"
#include "ops/common/experts.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"accuracy_level", AttrSpec::kInt},
                               {"activation_alpha", AttrSpec::kFloat},
                               {"activation_beta", AttrSpec::kFloat},
                               {"activation_type", AttrSpec::kString},
                               {"block_size", AttrSpec::kInt},
                               {"expert_weight_bits", AttrSpec::kInt},
                               {"fc1_expert_weight_bits", AttrSpec::kInt},
                               {"fc2_expert_weight_bits", AttrSpec::kInt},
                               {"fc3_expert_weight_bits", AttrSpec::kInt},
                               {"k", AttrSpec::kInt},
                               {"normalize_routing_weights", AttrSpec::kInt},
                               {"quant_type", AttrSpec::kString},
                               {"swiglu_fusion", AttrSpec::kInt},
                               {"swiglu_limit", AttrSpec::kFloat},
                               {"use_sparse_mixer", AttrSpec::kInt},
                               {"weights_prepacked", AttrSpec::kInt}};
constexpr const char *kName = "QMoE";

// Inputs x, router_probs, then weights, scales and bias of each layer, zero points of each, router_weights.
constexpr ExpertInputs kInputs{.weights = 2, .bias = 4, .step = 3};
constexpr std::size_t kScales = 3, kZeros = 11, kRouterWeights = 14;

std::array<std::int64_t, 3> bits_of(const Attrs &attrs) {
  std::array<std::int64_t, 3> all{};
  constexpr const char *kOfLayers[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int64_t bits = all[i] = attrs.get_int(kOfLayers[i], attrs.get_int("expert_weight_bits", 4));
    if (bits != 2 && bits != 4 && bits != 8)
      fail(QTN_EUNSUPPORTED, kName, ": weights have ", bits, " bits, supported are 2, 4 and 8");
  }
  return all;
}

ExpertForm form_of(const Call &call) {
  std::array<std::int64_t, 3> per_byte = bits_of(call.attrs);
  for (std::int64_t &number : per_byte) number = 8 / number;
  return {kName, call, kInputs, per_byte};
}

/// The codes of a layer, and their grids: one for each row of a matrix, or for each block of a row.
struct Codes {
  Codes(const Call &call, const ExpertForm &form, std::size_t layer)
      : codes(*kInputs.weights_of(call, layer)),
        scales(call.in(kScales + layer * kInputs.step)),
        zeros(call.in(kZeros + layer)),
        bits(bits_of(call.attrs)[layer]),
        experts(form.experts),
        rows(form.outputs(layer)),
        block(call.attrs.get_int("block_size", 0)) {
    const std::int64_t columns = form.inputs(layer);
    by_block = block > 0;
    if (!by_block) block = columns;
    if (by_block && (block < 16 || columns % block != 0))
      fail(QTN_EINVAL, kName, ": block_size is ", block, " for rows of ", columns, " weights");
    blocks = columns / block;
  }

  std::int64_t bytes_of(std::int64_t count) const { return count * bits / 8 + (count * bits % 8 != 0); }

  void check(std::size_t layer) const {
    const std::string of_scales = of_layer(layer, "scales"), of_zeros = of_layer(layer, "zero_points");
    if (!scales) fail(QTN_EINVAL, kName, ": ", of_scales, " are absent");
    require_dtype(kName, of_layer(layer, "experts_weights").c_str(), codes, {QTN_UINT8});
    require_float(kName, of_scales.c_str(), scales);
    require_shape(kName, of_scales.c_str(), *scales, by_block ? Shape{experts, rows, blocks} : Shape{experts, rows});
    if (!zeros) return;
    require_dtype(kName, of_zeros.c_str(), *zeros, {QTN_UINT8});
    require_shape(kName, of_zeros.c_str(), *zeros,
                  by_block ? Shape{experts, rows, bytes_of(blocks)} : Shape{experts, bytes_of(rows)});
  }

  /// Rows of an expert as floats, in front of their zero points.
  const float *unpack(std::int64_t expert, std::int64_t first, std::int64_t count, float *memory) const {
    const std::int64_t row = expert * rows + first, number = count * blocks;
    auto *of_blocks = reinterpret_cast<std::int32_t *>(memory + number * block);
    for (std::int64_t i = 0; i < number; ++i)
      of_blocks[i] = by_block ? zero_at(row + i / blocks, blocks, i % blocks) : zero_at(expert, rows, first + i);
    const kernels::Cell cell = bits == 2 ? kernels::Cell::u2 : bits == 4 ? kernels::Cell::u4 : kernels::Cell::u8;
    kernel.dequantize({static_cast<std::size_t>(number), static_cast<std::size_t>(block),
                       codes.as<const std::uint8_t>() + row * blocks * block * bits / 8, memory, cell, false,
                       kernels::GridPer::row, scales->as<const float>() + row * blocks, of_blocks, false});
    return memory;
  }

  const Tensor &codes, *scales, *zeros;
  std::int64_t bits, experts, rows, block, blocks;
  bool by_block;
  const kernels::GridKernel &kernel = kernels::choose(kernels::grid_kernels(), isa());

 private:
  /// Zero point i of a list of so many, whose last byte may be part empty; without any, the middle of the codes.
  std::int32_t zero_at(std::int64_t list, std::int64_t count, std::int64_t i) const {
    if (!zeros) return 1 << (bits - 1);
    const std::uint8_t byte = zeros->as<const std::uint8_t>()[list * bytes_of(count) + i * bits / 8];
    return byte >> (i * bits % 8) & ((1 << bits) - 1);
  }
};

Types infer(const Call &call) {
  if (const std::string type = call.attrs.get_string("quant_type", "int"); type != "int")
    fail(QTN_EUNSUPPORTED, kName, ": quant_type is \"", type, "\", supported is \"int\"");
  const ExpertForm form = form_of(call);
  for (const std::size_t layer : {0, 1, 2})
    if (kInputs.weights_of(call, layer)) Codes(call, form, layer).check(layer);
  if (const Tensor *weights = call.in(kRouterWeights)) {
    require_float(kName, "router_weights", weights);
    require_shape(kName, "router_weights", *weights, call.in(1)->shape());
  }
  return {{QTN_FLOAT32, call.in(0)->shape()}};
}

void run(const Call &call, std::span<Tensor> outputs) {
  const ExpertForm form = form_of(call);
  std::array<ExpertLayer, 3> layers{};
  for (const std::size_t i : {0, 1, 2})
    if (kInputs.weights_of(call, i)) {
      const Codes codes(call, form, i);
      layers[i] = {form.outputs(i), form.inputs(i), kInputs.bias_of(call, i), (codes.block + 1) * codes.blocks,
                   [codes](auto... at) { return codes.unpack(at...); }};
    }
  const Tensor *weights = call.in(kRouterWeights);
  // ONNX Runtime makes the sum 1 where there are no weights, whatever the attribute says.
  const Routing routing{call.in(1)->as<const float>(), weights ? weights->as<const float>() : nullptr,
                        call.attrs.get_int("normalize_routing_weights", 0) != 0};
  run_experts(form, routing, *call.in(0), layers, outputs[0]);
}

double work(const Call &call) { return work_of_experts(call, *call.in(2), *call.in(5)); }

}  // namespace

const OpDef kQMoE{.name = kName,
                  .domain = kMicrosoft,
                  .min_inputs = 3,
                  .max_inputs = 15,
                  .max_outputs = 1,
                  .attrs = kAttrs,
                  .infer = infer,
                  .run = run,
                  .work = work};

}  // namespace qtn::ops
