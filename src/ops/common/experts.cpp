// SPDX-License-Identifier: Apache-2.0
#include "ops/common/experts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/counted.hpp"
#include "base/memory.hpp"
#include "base/size.hpp"
#include "base/stable_order.hpp"
#include "kernels/gemm_real/gemm_real.hpp"
#include "kernels/kernel.hpp"
#include "kernels/rows/rows.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/lane_tasks.hpp"

namespace qtn::ops {
namespace {

constexpr std::array<std::string_view, 5> kActivations{"relu", "gelu", "silu", "identity", "swiglu"};

struct Route {
  std::int64_t row;
  float weight;
};
using Routes = std::vector<CountedVector<Route>>;  ///< of each expert

/// Adds the row to the routes of its experts that have a weight.
void route(const ExpertForm &form, const Routing &routing, std::int64_t row, Routes &routes) {
  const float *numbers = routing.chosen_by + row * form.experts;
  // NaN comes last, so that the order is one.
  const std::vector<std::size_t> order = stable_order(routes.size(), [&](std::size_t a, std::size_t b) {
    const float x = numbers[a], y = numbers[b];
    return x == y ? a > b : x > y || (std::isnan(y) && !std::isnan(x));
  });
  const float *weights = routing.weights ? routing.weights + row * form.experts : nullptr;
  std::vector<float> shares(static_cast<std::size_t>(form.k));
  for (std::size_t i = 0; i < shares.size(); ++i)
    shares[i] = weights ? weights[order[i]] : std::exp(numbers[order[i]] - numbers[order[0]]);
  const float sum = std::accumulate(shares.begin(), shares.end(), 0.0f);
  const float by = routing.normalizes || !weights ? sum : 1;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (const float share = shares[i] / by; share > 0) routes[order[i]].push_back({row, share});
}

/// Products of rows by rows of weights, whose bits do not depend on how many of either there are.
class Products {
 public:
  explicit Products(std::span<const ExpertLayer> layers) {
    std::size_t packed = 0;
    for (const ExpertLayer &layer : layers) {
      const std::size_t bytes = static_cast<std::size_t>(layer.inputs) * sizeof(float);
      packed = std::max(packed, round_up(gemm_.packed_bytes(kMostExpertRows, bytes), kAlignment));
      unpacked_ = std::max(unpacked_, layer.memory * kMostExpertRows);
    }
    of_lane_ = unpacked_ + static_cast<std::int64_t>(packed / sizeof(float));
    lanes_ = AlignedBuffer((Size(current_threads()) * of_lane_ * sizeof(float)).value());
  }

  /// y [count][outputs] = those of the expert of x [count][inputs], whose rows lie `stride` apart, and its bias.
  void multiply(const ExpertLayer &layer, std::int64_t expert, std::int64_t count, const float *x, std::int64_t stride,
                float *y) const {
    const std::int64_t n = layer.outputs, blocks = (n + kMostExpertRows - 1) / kMostExpertRows;
    const float *bias = layer.bias ? layer.bias->as<const float>() + expert * n : nullptr;
    for_tasks(blocks, lanes_.as<float>(), of_lane_, [&](std::int64_t block, float *memory) {
      const std::int64_t begin = block * kMostExpertRows, width = std::min(kMostExpertRows, n - begin);
      const float *w = layer.rows(expert, begin, width, memory);
      multiply({x, stride, static_cast<std::size_t>(count), w, layer.inputs, static_cast<std::size_t>(width),
                static_cast<std::size_t>(layer.inputs), y + begin, n},
               memory + unpacked_);
      for (std::int64_t r = 0; bias && r < count; ++r)
        for (std::int64_t i = begin; i < begin + width; ++i) y[r * n + i] += bias[i];
    });
  }

 private:
  void multiply(const kernels::FewRowsArgs &p, float *packed) const {
    constexpr std::size_t kFewRows = 8;  // read the weights where they lie
    if (p.m <= kFewRows) return rows_.key_products(p);
    gemm_.pack(packed, {p.w, p.w_row, 1, nullptr, p.n, p.k});
    kernels::GemmArgs args{};
    args.m = p.m;
    args.n = p.n;
    args.k = p.k * sizeof(float);
    args.a = reinterpret_cast<const std::uint8_t *>(p.x);
    args.lda = p.x_row * static_cast<std::ptrdiff_t>(sizeof(float));
    args.packed = packed;
    args.y = p.y;
    args.ldy = p.y_row;
    args.lo = -std::numeric_limits<float>::infinity();
    args.hi = std::numeric_limits<float>::infinity();
    gemm_.run(args);
  }

  const kernels::GemmRealKernel &gemm_ = kernels::choose(kernels::gemm_real_kernels(), isa());
  const kernels::RowsKernel &rows_ = kernels::rows_kernel();
  std::int64_t unpacked_ = 0, of_lane_;  ///< floats
  AlignedBuffer lanes_;
};

/// Rows of one expert at a time, as many as memory is for.
class ExpertRun {
 public:
  ExpertRun(const ExpertForm &form, const std::array<ExpertLayer, 3> &layers, const Tensor &x, const Tensor &y,
            std::int64_t most)
      : form_(form),
        layers_(layers),
        products_(std::span(layers).first(form.has_third ? 3 : 2)),
        x_(x.as<const float>()),
        y_(y.as<float>()) {
    const auto memory = [&](std::int64_t width) { return (Size(most) * width).value(); };
    rows_.resize(memory(form.hidden));
    first_.resize(memory(form.wide));
    if (form.has_third) third_.resize(memory(form.inner));
  }

  void run(std::int64_t expert, std::span<const Route> routes) {
    const auto count = static_cast<std::int64_t>(routes.size());
    for (std::int64_t r = 0; r < count; ++r)
      std::copy_n(x_ + routes[static_cast<std::size_t>(r)].row * form_.hidden, form_.hidden,
                  rows_.data() + r * form_.hidden);
    products_.multiply(layers_[0], expert, count, rows_.data(), form_.hidden, first_.data());
    if (form_.has_third) products_.multiply(layers_[2], expert, count, rows_.data(), form_.hidden, third_.data());
    for (std::int64_t r = 0; r < count; ++r) activate(first_.data() + r * form_.wide, r);
    products_.multiply(layers_[1], expert, count, first_.data(), form_.wide, rows_.data());
    for (std::int64_t r = 0; r < count; ++r) {
      const Route &route = routes[static_cast<std::size_t>(r)];
      for (std::int64_t i = 0; i < form_.hidden; ++i)
        y_[route.row * form_.hidden + i] += route.weight * rows_[static_cast<std::size_t>(r * form_.hidden + i)];
    }
  }

 private:
  /// The inner features of row r, at the beginning of what its first layer made.
  void activate(float *row, std::int64_t r) const {
    const float *third = form_.has_third ? third_.data() + r * form_.inner : nullptr;
    const std::int64_t step = form_.fusion == 1 ? 2 : 1;
    for (std::int64_t i = 0; i < form_.inner; ++i) {
      const float a = row[i * step];
      if (form_.activation == ExpertForm::Activation::swiglu)
        row[i] = swiglu(a, third ? third[i] : form_.fusion == 1 ? row[2 * i + 1] : row[form_.inner + i]);
      else
        row[i] = third ? activated(a) * third[i] : activated(a);
    }
  }

  float swiglu(float gate, float linear) const {
    const float g = std::min(gate, form_.limit), l = std::clamp(linear, -form_.limit, form_.limit);
    return g / (1 + std::exp(-form_.alpha * g)) * (l + form_.beta);
  }

  float activated(float v) const {
    constexpr float kRootOfTwoOverPi = 0.7978845608f;
    switch (form_.activation) {
      case ExpertForm::Activation::relu:
        return std::max(v, 0.0f);
      case ExpertForm::Activation::gelu:
        return 0.5f * v * (1 + std::tanh(kRootOfTwoOverPi * (v + 0.044715f * v * v * v)));
      case ExpertForm::Activation::silu:
        return v / (1 + std::exp(-v));
      default:
        return v;
    }
  }

  const ExpertForm &form_;
  const std::array<ExpertLayer, 3> &layers_;
  const Products products_;
  const float *x_;
  float *y_;
  CountedVector<float> rows_, first_, third_;
};

}  // namespace

std::string of_layer(std::size_t layer, const char *what) { return cat("fc", layer + 1, "_", what); }

ExpertForm::ExpertForm(const char *name, const Call &call, const ExpertInputs &inputs,
                       const std::array<std::int64_t, 3> &per_element) {
  const Attrs &attrs = call.attrs;
  const std::string given = attrs.get_string("activation_type", "relu");
  const auto at = std::ranges::find(kActivations, given);
  if (at == kActivations.end())
    fail(QTN_EINVAL, name, ": activation_type is \"", given, "\", not relu, gelu, silu, identity or swiglu");
  activation = static_cast<Activation>(at - kActivations.begin());
  if (attrs.get_int("use_sparse_mixer", 0) != 0) fail(QTN_EUNSUPPORTED, name, ": use_sparse_mixer is not supported");
  fusion = activation == Activation::swiglu ? attrs.get_int("swiglu_fusion", 0) : 0;
  if (fusion < 0 || fusion > 2) fail(QTN_EINVAL, name, ": swiglu_fusion is ", fusion, ", not 0, 1 or 2");
  alpha = static_cast<float>(attrs.get_float("activation_alpha", 1));
  beta = static_cast<float>(attrs.get_float("activation_beta", 0));
  limit = static_cast<float>(attrs.get_float("swiglu_limit", std::numeric_limits<float>::infinity()));
  if (!(limit >= 0)) fail(QTN_EINVAL, name, ": swiglu_limit is ", limit);

  const Tensor &x = *call.in(0), &router = *call.in(1), *second = inputs.weights_of(call, 1);
  if (!second) fail(QTN_EINVAL, name, ": fc2_experts_weights is absent");
  require_float(name, "input", &x);
  require_float(name, "router_probs", &router);
  if ((x.rank() != 2 && x.rank() != 3) || x.shape().back() < 1)
    fail(QTN_ESHAPE, name, ": input must have 2 or 3 axes and a feature, it is ", to_string(x.shape()));
  hidden = x.shape().back();
  rows = x.count() / hidden;
  if (router.rank() == 2) experts = router.dim(1);
  require_shape(name, "router_probs", router, {rows, experts});
  k = attrs.get_int("k", 1);
  if (k < 1 || k > experts) fail(QTN_EINVAL, name, ": k is ", k, " of ", experts, " experts");
  inner = mul_dims(name, second->count(), per_element[1]) / mul_dims(name, experts, hidden);
  wide = fusion == 0 ? inner : mul_dims(name, inner, 2);
  has_third = inputs.weights_of(call, 2) != nullptr;
  if (inner < 1) fail(QTN_ESHAPE, name, ": fc2_experts_weights is ", to_string(second->shape()));
  if (has_third ? fusion != 0 : fusion == 0 && activation == Activation::swiglu)
    fail(QTN_EINVAL, name, ": swiglu_fusion is ", fusion, has_third ? ", with" : ", without", " fc3_experts_weights");
  for (const std::size_t layer : {0, 1, 2}) {
    const Tensor *weights = inputs.weights_of(call, layer), *bias = inputs.bias_of(call, layer);
    if (!weights && bias) fail(QTN_EINVAL, name, ": fc3_experts_bias is given without weights");
    if (!weights) continue;
    const std::int64_t m = outputs(layer), n = this->inputs(layer), packed = per_element[layer];
    if (n % packed != 0) fail(QTN_ESHAPE, name, ": rows of ", n, " weights fill no bytes");
    // ONNX Runtime also takes the sizes the other way round, with the elements where they are.
    if (m % packed != 0 || weights->shape() != Shape{experts, n, m / packed})
      require_shape(name, of_layer(layer, "experts_weights").c_str(), *weights, {experts, m, n / packed});
    if (!bias) continue;
    const std::string of_bias = of_layer(layer, "experts_bias");
    require_float(name, of_bias.c_str(), bias);
    require_shape(name, of_bias.c_str(), *bias, {experts, m});
  }
}

double work_of_experts(const Call &call, const Tensor &first, const Tensor &second) {
  const auto hidden = static_cast<double>(std::max<std::int64_t>(1, call.in(0)->shape().back()));
  const auto experts = static_cast<double>(std::max<std::int64_t>(1, first.dim(0)));
  return static_cast<double>(call.attrs.get_int("k", 1)) *
         (static_cast<double>(first.count()) + static_cast<double>(second.count())) / experts / hidden;
}

void run_experts(const ExpertForm &form, const Routing &routing, const Tensor &x,
                 const std::array<ExpertLayer, 3> &layers, const Tensor &y) {
  constexpr std::int64_t kMostAtOnce = 512;
  Routes routes(static_cast<std::size_t>(form.experts));
  for (std::int64_t row = 0; row < form.rows; ++row) route(form, routing, row, routes);
  std::fill_n(y.as<float>(), y.count(), 0.0f);
  ExpertRun run(form, layers, x, y, std::min(form.rows, kMostAtOnce));
  for (std::int64_t expert = 0; expert < form.experts; ++expert) {
    const std::span<const Route> all = routes[static_cast<std::size_t>(expert)];
    for (std::size_t from = 0; from < all.size(); from += kMostAtOnce)
      run.run(expert, all.subspan(from, std::min<std::size_t>(kMostAtOnce, all.size() - from)));
  }
}

}  // namespace qtn::ops
