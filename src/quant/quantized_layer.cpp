// SPDX-License-Identifier: Apache-2.0
#include "quant/quantized_layer.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.hpp"
#include "base/find_named.hpp"
#include "base/fork_gate.hpp"
#include "core/integer_type.hpp"
#include "graph/integer.hpp"
#include "ops/eager.hpp"
#include "quant/quantize_dynamic.hpp"
#include "quant/weights.hpp"

namespace qtn::quant {
namespace {

struct KnownKind {
  std::string_view name;
  LayerKind kind;
  std::size_t rank;  ///< of the weight
};
constexpr KnownKind kKinds[] = {
    {"linear", LayerKind::linear, 2},       {"conv1d", LayerKind::convolution, 3},
    {"conv2d", LayerKind::convolution, 4},  {"conv3d", LayerKind::convolution, 5},
    {"embedding", LayerKind::embedding, 2}, {"embedding_bag", LayerKind::embedding_bag, 2},
};
constexpr std::string_view kBagModes[] = {"sum", "mean"};
constexpr AttrSpec kBagAttrs[] = {{"mode", AttrSpec::kString}};
constexpr std::size_t kKeptGrids = 8;

const KnownKind &known_kind(const std::string &name) {
  return find_named(kKinds, name, "layer", "kind", &KnownKind::name);
}

bool is_embedding(LayerKind kind) { return kind == LayerKind::embedding || kind == LayerKind::embedding_bag; }

const char *spread(const Quantizer &q) {
  return q.per_tensor() ? "per tensor" : q.per_channel() ? "per channel" : "per block";
}

void check_grid(const std::string &layer, const char *name, const QuantizerPtr &grid) {
  if (grid && !graph::is_8bit_activation(grid))
    fail(QTN_EDTYPE, layer, ": ", name, " is ", dtype_name(grid->dtype()), " ", spread(*grid),
         ", not uint8 or int8 per tensor");
}

/// `rows` [n, channels] + bias.
void add_bias(const Tensor &rows, const Tensor &bias) {
  const std::vector<float> b = float_values(bias, "bias");
  auto *y = rows.as<float>();
  for (std::int64_t i = 0; i < rows.dim(0); ++i)
    for (const float v : b) *y++ += v;
}

}  // namespace

QuantizedLayer::QuantizedLayer(const Parts &parts)
    : kind_(known_kind(parts.kind).kind), name_(parts.kind), x_(parts.x), out_(parts.out), attrs_(parts.attrs) {
  check_parts(parts, known_kind(parts.kind).rank);
  weight_ = quantized_weight(parts.weight, parts.config);
  running_ = in_integer_type(weight_, plain_dtype(weight_.dtype()));
  if (parts.bias) bias_ = parts.bias->clone();
  mean_ = attrs_.get_string("mode", "sum") == "mean";
  if (is_embedding(kind_)) return;
  dynamic_ = kind_ == LayerKind::linear && !x_;
  // A layer that has a grid for its result alone waits for an x on a grid of its own.
  if (x_ || !out_) first_ = {x_, make_session(x_)};
}

void QuantizedLayer::check_parts(const Parts &parts, std::size_t rank) const {
  if (kind_ == LayerKind::convolution)
    attrs_.check(ops::kConv.attrs, name_.c_str());
  else if (kind_ == LayerKind::embedding_bag)
    attrs_.check(kBagAttrs, name_.c_str());
  else
    attrs_.check({}, name_.c_str());
  find_named(kBagModes, attrs_.get_string("mode", "sum"), name_, "mode");
  if (parts.weight.rank() != rank)
    fail(QTN_ESHAPE, name_, ": weight is ", to_string(parts.weight.shape()), ", not of rank ", rank);
  if (is_embedding(kind_) && (parts.bias || x_ || out_))
    fail(QTN_EINVAL, name_, ": takes no ", parts.bias ? "bias" : x_ ? "x_quantizer" : "out_quantizer");
  if (parts.weight.count() == 0)
    fail(QTN_ESHAPE, name_, ": weight is ", to_string(parts.weight.shape()), ", without elements");
  if (const std::int64_t group = attrs_.get_int("group", 1); group < 1 || parts.weight.dim(0) % group != 0)
    fail(QTN_ESHAPE, name_, ": weight has ", parts.weight.dim(0), " output channels, no multiple of group ", group);
  check_grid(name_, "x_quantizer", x_);
  check_grid(name_, "out_quantizer", out_);
  if (!parts.bias) return;
  const Tensor &bias = *parts.bias;
  if (bias.dtype() != QTN_FLOAT32 || bias.quantized())
    fail(QTN_EDTYPE, name_, ": bias is ", bias.quantized() ? "quantized " : "", dtype_name(bias.dtype()),
         ", not float32");
  if (bias.rank() != 1 || bias.dim(0) != parts.weight.dim(0))
    fail(QTN_ESHAPE, name_, ": bias is ", to_string(bias.shape()), ", weight ", to_string(parts.weight.shape()));
  check_finite(bias, cat(name_, ": bias"));
}

Tensor QuantizedLayer::quantized_weight(const Tensor &weight, const Config *config) const {
  if (weight.quantized()) {
    const Quantizer &q = *weight.quantizer();
    const qdtype plain = plain_dtype(q.dtype());
    if ((plain != QTN_INT8 && plain != QTN_UINT8) || q.per_block() || (q.per_channel() && q.axis() != 0))
      fail(QTN_EDTYPE, name_, ": weight is ", dtype_name(q.dtype()), " ", spread(q),
           q.per_channel() ? cat(" along axis ", q.axis()) : std::string(),
           ", not of 8 bits or fewer per tensor or per channel along axis 0");
    return weight.clone();
  }
  if (weight.dtype() != QTN_FLOAT32)
    fail(QTN_EDTYPE, name_, ": weight is a plain ", dtype_name(weight.dtype()),
         " tensor, neither float32 nor quantized");
  if (!config) fail(QTN_EINVAL, name_, ": weight is float32, and there is no config that says how to quantize it");
  check_finite(weight, cat(name_, ": weight"));
  const std::optional<Settings> settings =
      is_embedding(kind_) ? config->settings_for_all() : config->settings_for(node());
  if (!settings) fail(QTN_EUNSUPPORTED, name_, ": config leaves ", node().op->name, " in float");
  const Tensor q = quantize_weight(node(), weight, nullptr, 1.0, *settings);
  const Quantizer &grid = *q.quantizer();
  if (grid.per_block()) fail(QTN_EUNSUPPORTED, name_, ": config wants weights in blocks, not per tensor or channel");
  return q.with_quantizer(std::make_shared<Quantizer>(grid.dtype(), grid.scheme(), grid.axis(), grid.scales(),
                                                      grid.zero_points(), own_grid_numerics(*settings)));
}

graph::Node QuantizedLayer::node() const {
  if (kind_ == LayerKind::convolution) return {"layer", &ops::kConv, attrs_, {}, {}, {}};
  graph::Node gemm{"layer", &ops::kGemm, {}, {}, {}, {}};
  gemm.attrs.set("transB", std::int64_t{1});
  return gemm;
}

graph::Graph QuantizedLayer::graph_for(const QuantizerPtr &grid) const {
  graph::Graph g;
  graph::Value x{"x", QTN_FLOAT32, running_.shape(), {}, grid, {}}, y{"y", QTN_FLOAT32, {}, {}, {}, {}};
  std::fill(x.shape->begin(), x.shape->end(), -1);
  (*x.shape)[1] = running_.dim(1) * (kind_ == LayerKind::convolution ? attrs_.get_int("group", 1) : 1);
  if (grid) y.quantizer = out_;
  graph::Node layer = node();
  layer.inputs = {g.add_value(std::move(x)), g.add_constant("weight", running_)};
  // Where sums of integers become floats, a bias in float is exact.
  if (bias_ && !(kind_ == LayerKind::linear && grid && !out_)) layer.inputs.push_back(g.add_constant("bias", *bias_));
  layer.outputs = {g.add_value(std::move(y))};
  g.inputs = {layer.inputs[0]};
  g.outputs = layer.outputs;
  g.nodes.push_back(std::move(layer));
  return g;
}

graph::Graph QuantizedLayer::dynamic_graph() const {
  constexpr std::int32_t kTransposed[] = {1, 0};
  const Quantizer &q = *running_.quantizer();
  const Shape per = q.per_channel() ? Shape{running_.dim(0)} : Shape{};
  std::vector<float> scales(q.scales().begin(), q.scales().end());
  graph::Graph g;
  const graph::ValueId x = g.add_value({"x", QTN_FLOAT32, Shape{-1, running_.dim(1)}, {}, {}, {}});
  const graph::ValueId y = g.add_value({"y", QTN_FLOAT32, {}, {}, {}, {}});
  const graph::ValueId weight =
      g.add_constant("weight", running_.with_quantizer(nullptr).permute(kTransposed).to_contiguous());
  graph::Node product{"layer", &ops::kDynamicQuantizeMatMul, {}, {x, weight}, {y}, {}};
  product.inputs.push_back(g.add_constant("scales", Tensor::from<float>(QTN_FLOAT32, per, scales)));
  const bool centered = std::all_of(q.zero_points().begin(), q.zero_points().end(), [](auto z) { return z == 0; });
  if (!centered || bias_) {
    Tensor zeros(running_.dtype(), per);
    for (std::size_t c = 0; c < q.count(); ++c)
      zeros.as<std::uint8_t>()[c] = static_cast<std::uint8_t>(q.zero_points()[c]);
    product.inputs.push_back(centered ? graph::kNoValue : g.add_constant("zeros", zeros));
  }
  if (bias_) product.inputs.push_back(g.add_constant("bias", *bias_));
  const Numerics numerics = q.numerics();
  const bool torch = numerics == Numerics::fbgemm || numerics == Numerics::qnnpack;
  ops::set_own_grid(product.attrs, {torch ? numerics : Numerics::onnx});
  g.nodes.push_back(std::move(product));
  g.inputs = {x};
  g.outputs = {y};
  return g;
}

QuantizedLayer::SessionPtr QuantizedLayer::make_session(const QuantizerPtr &grid) const {
  if (!grid && dynamic_ && running_.dim(1) > graph::kDynamicDepth) return nullptr;
  runtime::SessionOptions options;
  options.integers = true;
  return std::make_shared<runtime::Session>(!grid && dynamic_ ? dynamic_graph() : graph_for(grid), options);
}

QuantizedLayer::SessionPtr QuantizedLayer::session_for(const QuantizerPtr &grid) const {
  const auto serves = [&](const OnGrid &on) {
    return on.grid && grid ? same_grid(*on.grid, *grid) : !on.grid && !grid && on.session;
  };
  if (serves(first_)) return first_.session;
  const NoFork section;
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(others_.begin(), others_.end(), serves);
  if (found != others_.end()) {
    std::rotate(found, found + 1, others_.end());
  } else {
    SessionPtr made = make_session(grid);
    if (!made) return nullptr;
    if (others_.size() == kKeptGrids) others_.erase(others_.begin());
    others_.push_back({grid, std::move(made)});
  }
  return others_.back().session;
}

void QuantizedLayer::check_x(const Tensor &x) const {
  if (x.quantized() ? !graph::is_8bit_activation(x.quantizer()) : x.dtype() != QTN_FLOAT32)
    fail(QTN_EDTYPE, name_, ": x is ", x.quantized() ? "quantized to " : "a plain ", dtype_name(x.dtype()), " ",
         x.quantized() ? spread(*x.quantizer()) : "tensor", ", neither float32 nor uint8 or int8 per tensor");
  if (kind_ == LayerKind::linear) {
    if (x.rank() == 0) fail(QTN_ESHAPE, "linear: x is a scalar, without features");
    if (x.shape().back() != weight_.dim(1))
      fail(QTN_ESHAPE, "linear: weight has ", weight_.dim(1), " input features, x has ", x.shape().back());
  } else if (x.rank() != weight_.rank()) {
    fail(QTN_ESHAPE, name_, ": x is ", to_string(x.shape()), ", not of rank ", weight_.rank());
  } else if (const std::int64_t channels = weight_.dim(1) * attrs_.get_int("group", 1); x.dim(1) != channels) {
    fail(QTN_ESHAPE, name_, ": weight has ", channels, " input channels, x has ", x.dim(1));
  }
}

Tensor QuantizedLayer::run(const Tensor &x) const {
  if (is_embedding(kind_)) return rows(x);
  check_x(x);
  Tensor operand = x_ && !x.quantized() ? quantize(x, x_) : x;
  if (kind_ != LayerKind::linear) return run_product(operand);
  Shape shape = x.shape();
  shape[shape.size() - 1] = weight_.dim(0);
  operand = operand.to_contiguous().reshaped({element_count(x.shape(), 0, x.rank() - 1), weight_.dim(1)});
  return run_product(operand).reshaped(shape);
}

Tensor QuantizedLayer::run_product(const Tensor &x) const {
  const SessionPtr session = session_for(x.quantizer());
  if (!session) return ops::linear(x, running_, bias_ ? &*bias_ : nullptr, out_);
  const Tensor *inputs[] = {&x};
  std::array<Tensor, 1> y;
  session->run(inputs, y);
  if (y[0].quantized()) return y[0];
  if (kind_ == LayerKind::linear && x.quantized() && bias_) add_bias(y[0], *bias_);
  return out_ ? quantize(y[0], out_) : y[0];
}

Tensor QuantizedLayer::rows(const Tensor &x) const {
  if (x.quantized() || (x.dtype() != QTN_INT64 && x.dtype() != QTN_INT32))
    fail(QTN_EDTYPE, name_, ": x is ", x.quantized() ? "quantized " : "", dtype_name(x.dtype()),
         ", not int64 or int32");
  const bool bags = kind_ == LayerKind::embedding_bag;
  if (bags && x.rank() != 2) fail(QTN_ESHAPE, name_, ": x is ", to_string(x.shape()), ", not [bags, n]");
  const std::vector<std::int64_t> numbers = int_values(x, "x");
  for (const std::int64_t i : numbers)
    if (i < 0 || i >= weight_.dim(0))
      fail(QTN_EINVAL, name_, ": index ", i, " is outside of the ", weight_.dim(0), " rows");
  const std::int64_t width = weight_.dim(1);
  const Quantizer &q = *running_.quantizer();
  const auto count = static_cast<std::int64_t>(numbers.size());
  Tensor found(running_.dtype(), {count, width},
               q.per_channel() && count > 0 ? q.regrouped(q.scheme(), 0, 0, numbers) : running_.quantizer());
  for (std::size_t i = 0; i < numbers.size() && width > 0; ++i)
    std::memcpy(found.as<std::byte>() + static_cast<std::int64_t>(i) * width,
                running_.as<const std::byte>() + numbers[i] * width, static_cast<std::size_t>(width));
  const Tensor real = count * width > 0 ? dequantize(found) : Tensor(QTN_FLOAT32, {count, width});
  if (!bags) {
    Shape shape = x.shape();
    shape.push_back(width);
    return real.reshaped(shape);
  }
  Tensor sums(QTN_FLOAT32, {x.dim(0), width});
  std::fill_n(sums.as<float>(), sums.count(), 0.0f);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t c = 0; c < width; ++c)
      sums.as<float>()[i / x.dim(1) * width + c] += real.as<const float>()[i * width + c];
  if (mean_ && x.dim(1) > 0)
    for (std::int64_t i = 0; i < sums.count(); ++i) sums.as<float>()[i] /= static_cast<float>(x.dim(1));
  return sums;
}

}  // namespace qtn::quant
