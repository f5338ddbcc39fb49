// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/parallel.hpp"
#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"alpha", AttrSpec::kFloat}, {"beta", AttrSpec::kFloat}, {"bias", AttrSpec::kFloat}, {"size", AttrSpec::kInt}};

Types infer(const Call &call) {
  const Types types = infer_real_unary("LRN", call);
  if (call.in(0)->rank() < 2) fail(QTN_ESHAPE, "LRN: x ", to_string(call.in(0)->shape()), " has no channels");
  if (const std::int64_t size = call.attrs.get_int("size", 0); size < 1) fail(QTN_EINVAL, "LRN: size is ", size);
  return types;
}

/// v to the power of beta; networks have 0.75 or 0.5.
double power(double v, double beta) {
  if (beta != 0.5 && beta != 0.75) return std::pow(v, beta);
  const double root = std::sqrt(v);
  return beta == 0.5 ? root : root * std::sqrt(root);
}

/// Each element is divided by a power of the sum of the squares of the channels beside it.
template <class T>
void normalize(const Call &call, const Tensor &y) {
  constexpr std::int64_t kBlock = 256;
  const Tensor &x = *call.in(0);
  const std::int64_t channels = x.dim(1), plane = element_count(x.shape(), 2, x.rank());
  const std::int64_t size = call.attrs.get_int("size", 1);
  // Beyond the channels nothing is added.
  const std::int64_t before = std::min((size - 1) / 2, channels), after = std::min(size / 2, channels);
  const double alpha = call.attrs.get_float("alpha", 1e-4), beta = call.attrs.get_float("beta", 0.75),
               bias = call.attrs.get_float("bias", 1);
  parallel_for(static_cast<std::size_t>(x.dim(0) * channels), [&](std::size_t index) {
    const auto row = static_cast<std::int64_t>(index);
    const std::int64_t c = row % channels;
    const std::int64_t first = std::max<std::int64_t>(0, c - before), last = std::min(channels - 1, c + after);
    const T *image = x.as<const T>() + (row - c) * plane;
    for (std::int64_t begin = 0; begin < plane; begin += kBlock) {
      const std::int64_t count = std::min(kBlock, plane - begin);
      double squares[kBlock] = {};
      for (std::int64_t k = first; k <= last; ++k)
        for (std::int64_t i = 0; i < count; ++i) {
          const auto v = static_cast<double>(image[k * plane + begin + i]);
          squares[i] += v * v;
        }
      for (std::int64_t i = 0; i < count; ++i) {
        const double divisor = power(bias + alpha / static_cast<double>(size) * squares[i], beta);
        y.as<T>()[row * plane + begin + i] =
            static_cast<T>(static_cast<double>(image[c * plane + begin + i]) / divisor);
      }
    }
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? normalize<double>(call, outputs[0]) : normalize<float>(call, outputs[0]);
}

double work(const Call &call) {
  return static_cast<double>(std::min(call.in(0)->count(), call.attrs.get_int("size", 1)));
}

}  // namespace

const OpDef kLRN{.name = "LRN",
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .max_outputs = 1,
                 .attrs = kAttrs,
                 .infer = infer,
                 .run = run,
                 .work = work};

}  // namespace qtn::ops
