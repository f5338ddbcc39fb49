// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.hpp"
#include "ops/common/powers.hpp"
#include "ops/common/window.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"auto_pad", AttrSpec::kString}, {"ceil_mode", AttrSpec::kInt},
                               {"dilations", AttrSpec::kInts},  {"kernel_shape", AttrSpec::kInts},
                               {"p", AttrSpec::kInt},           {"pads", AttrSpec::kInts},
                               {"strides", AttrSpec::kInts}};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real("LpPool", "x", &x);
  (void)Norm("LpPool", call.attrs);
  const Window w = pool_window("LpPool", call.attrs, x.shape());
  Shape shape = x.shape();
  for (std::size_t i = 0; i < w.rank; ++i) shape[i + 2] = w.out[i];
  return {{x.dtype(), shape}};
}

template <class T>
void pool(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0);
  const Norm norm("LpPool", call.attrs);
  const Window w = pool_window("LpPool", call.attrs, x.shape()).lifted();
  const Window::TapTable taps = w.tap_table();
  const auto place = [&](std::size_t axis, std::int64_t o, std::int64_t k) {
    return o * w.stride[axis] - w.pad_begin[axis] + k * w.dilation[axis];
  };
  const std::int64_t in = element_count(x.shape(), 2, x.rank()), out = element_count(y.shape(), 2, y.rank());
  parallel_for(static_cast<std::size_t>(x.dim(0) * x.dim(1)), [&](std::size_t plane) {
    const T *from = x.as<const T>() + static_cast<std::int64_t>(plane) * in;
    T *to = y.as<T>() + static_cast<std::int64_t>(plane) * out;
    for (std::int64_t o0 = 0; o0 < w.out[0]; ++o0)
      for (std::int64_t o1 = 0; o1 < w.out[1]; ++o1)
        for (std::int64_t o2 = 0; o2 < w.out[2]; ++o2) {
          const Span t0 = taps[0][static_cast<std::size_t>(o0)], t1 = taps[1][static_cast<std::size_t>(o1)],
                     t2 = taps[2][static_cast<std::size_t>(o2)];
          double sum = 0;
          for (std::int64_t k0 = t0.begin; k0 < t0.end; ++k0)
            for (std::int64_t k1 = t1.begin; k1 < t1.end; ++k1) {
              const T *line = from + (place(0, o0, k0) * w.in[1] + place(1, o1, k1)) * w.in[2];
              for (std::int64_t k2 = t2.begin; k2 < t2.end; ++k2)
                sum += norm.power(static_cast<double>(line[place(2, o2, k2)]));
            }
          *to++ = static_cast<T>(norm.root(sum));
        }
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? pool<double>(call, outputs[0]) : pool<float>(call, outputs[0]);
}

}  // namespace

const OpDef kLpPool{.name = "LpPool",
                    .min_inputs = 1,
                    .max_inputs = 1,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .infer = infer,
                    .run = run,
                    .homogeneous = true,
                    .work = work_of_pool,
                    .upgrade = upgrade_norm};

}  // namespace qtn::ops
