// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/counted.hpp"
#include "base/parallel.hpp"
#include "base/size.hpp"
#include "blas/gemm.hpp"
#include "ops/common/conv_gradient.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/integer_product.hpp"
#include "ops/common/prepared.hpp"
#include "ops/common/window.hpp"
#include "ops/common/work.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"auto_pad", AttrSpec::kString},     {"dilations", AttrSpec::kInts},
                               {"group", AttrSpec::kInt},           {"kernel_shape", AttrSpec::kInts},
                               {"output_padding", AttrSpec::kInts}, {"output_shape", AttrSpec::kInts},
                               {"pads", AttrSpec::kInts},           {"strides", AttrSpec::kInts}};

/// The convolution whose gradient this is: its window slides over y (`in`), its outputs are the positions of x (`out`).
struct Transposed {
  std::int64_t images, channels, filters, groups;
  Window window;  ///< lifted

  std::int64_t x_size() const { return window.outputs_count(); }
  std::int64_t y_size() const { return window.in[0] * window.in[1] * window.in[2]; }
};

Transposed transposed_of(const Call &call) {
  const Shape &x = call.in(0)->shape(), &w = call.in(1)->shape();
  const std::int64_t groups = call.attrs.get_int("group", 1);
  return {x[0], x[1] / groups, w[1], groups, transposed_window(call.attrs, x, w).lifted()};
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &weight = *call.in(1);
  require_real("ConvTranspose", "x", &x);
  require_same_dtype("ConvTranspose", x, weight);
  const Window w = transposed_window(call.attrs, x.shape(), weight.shape());
  const std::int64_t groups = call.attrs.get_int("group", 1);
  if (groups < 1) fail(QTN_EINVAL, "ConvTranspose: group is ", groups);
  const auto shapes = [&] { return cat("(x ", to_string(x.shape()), ", weight ", to_string(weight.shape()), ")"); };
  if (x.dim(1) != weight.dim(0))
    fail(QTN_ESHAPE, "ConvTranspose: weight wants ", weight.dim(0), " input channels, x has ", x.dim(1), " ", shapes());
  if (x.dim(1) % groups != 0)
    fail(QTN_ESHAPE, "ConvTranspose: ", x.dim(1), " channels do not split into ", groups, " groups ", shapes());
  const std::int64_t filters = mul_dims("ConvTranspose", weight.dim(1), groups);
  if (const Tensor *bias = call.in(2)) {
    require_same_dtype("ConvTranspose", x, *bias);
    if (!(bias->shape() == Shape{filters}))
      fail(QTN_ESHAPE, "ConvTranspose: bias is ", to_string(bias->shape()), " for ", filters, " filters ", shapes());
  }
  Shape shape{x.dim(0), filters};
  for (std::size_t i = 0; i < w.rank; ++i) shape.push_back(w.in[i]);
  return {{x.dtype(), shape}};
}

/// Adds what one tap of one filter gives for all positions of x to the plane of y.
template <class T>
void scatter_tap(const Window &w, const Window::Dims &tap, const T *from, T *y) {
  const Span s0 = w.outputs(0, tap[0]), s1 = w.outputs(1, tap[1]), s2 = w.outputs(2, tap[2]);
  const auto place = [&](std::size_t axis, std::int64_t o) {
    return o * w.stride[axis] - w.pad_begin[axis] + tap[axis] * w.dilation[axis];
  };
  for (std::int64_t o0 = s0.begin; o0 < s0.end; ++o0)
    for (std::int64_t o1 = s1.begin; o1 < s1.end; ++o1) {
      const T *row = from + (o0 * w.out[1] + o1) * w.out[2];
      T *line = y + (place(0, o0) * w.in[1] + place(1, o1)) * w.in[2];
      for (std::int64_t o2 = s2.begin; o2 < s2.end; ++o2) line[place(2, o2)] += row[o2];
    }
}

/// y [image][filter][position] = sum over channels and taps of weight * x, in T: a product gives some taps of some
/// filters at every position of x, and each is added where it belongs.
template <class T>
void convolve_transposed(const Transposed &c, const T *x, const T *weight, T *y) {
  const Window &w = c.window;
  const std::int64_t taps = w.taps_count(), positions = c.x_size(), plane = c.y_size();
  std::fill(y, y + c.images * c.groups * c.filters * plane, T(0));
  if (c.filters == 0 || c.channels == 0 || taps == 0) return;
  // The size of a block follows from shapes alone: results must not depend on the number of threads. It has whole
  // filters, or some taps of one: where both axes are long, their product would be far larger than x and y.
  constexpr std::int64_t kProducts = 1 << 20;
  const std::int64_t rows = std::max<std::int64_t>(kProducts / std::max<std::int64_t>(positions, 1), 1);
  const std::int64_t block = std::clamp<std::int64_t>(rows / taps, 1, c.filters), most_taps = std::min(rows, taps);
  CountedVector<T> products((Size(block) * most_taps * positions).value());
  for (std::int64_t image_group = 0; image_group < c.images * c.groups; ++image_group) {
    const T *from = x + image_group * c.channels * positions;
    const T *matrix = weight + image_group % c.groups * c.channels * c.filters * taps;
    for (std::int64_t begin = 0; begin < c.filters; begin += block)
      for (std::int64_t first = 0; first < taps; first += most_taps) {
        const std::int64_t filters = std::min(block, c.filters - begin), count = std::min(most_taps, taps - first);
        blas::gemm(filters * count, positions, c.channels, T(1), matrix + begin * taps + first,
                   {c.filters * taps, true}, from, {positions}, T(0), products.data(), positions);
        parallel_for(static_cast<std::size_t>(filters), [&](std::size_t index) {
          const auto filter = static_cast<std::int64_t>(index);
          T *to = y + (image_group * c.filters + begin + filter) * plane;
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t tap = first + i;
            scatter_tap(w, {tap / w.kernel[2] / w.kernel[1], tap / w.kernel[2] % w.kernel[1], tap % w.kernel[2]},
                        products.data() + (filter * count + i) * positions, to);
          }
        });
      }
  }
}

/// The convolution whose gradient the operator is: from y to x.
struct Opposite final : Prepared {
  explicit Opposite(const Call &call) : Opposite(transposed_of(call)) {}
  explicit Opposite(const Transposed &c)
      : conv({c.images, c.filters * c.groups, c.channels * c.groups, c.groups, c.window}) {}
  const ConvRuns conv;
};

template <class T>
void add_bias(const Call &call, const Tensor &y) {
  if (!call.in(2)) return;
  const T *bias = call.in(2)->as<const T>();
  const std::int64_t filters = y.dim(1), plane = element_count(y.shape(), 2, y.rank());
  parallel_for(static_cast<std::size_t>(y.dim(0) * filters), [&](std::size_t index) {
    T *to = y.as<T>() + static_cast<std::int64_t>(index) * plane;
    const T b = bias[static_cast<std::int64_t>(index) % filters];
    for (std::int64_t i = 0; i < plane; ++i) to[i] += b;
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &weight = *call.in(1), &y = outputs[0];
  if (x.dtype() == QTN_FLOAT64) {
    convolve_transposed(transposed_of(call), x.as<const double>(), weight.as<const double>(), y.as<double>());
    return add_bias<double>(call, y);
  }
  Scratch own;
  Ready<Opposite>(call)->conv.input_gradient(weight.as<const float>(), x.as<const float>(), y.as<float>(), false,
                                             call.scratch ? *call.scratch : own);
  add_bias<float>(call, y);
}

bool run_quantized(const Call &call, const Tensor &output, const Clamp *clamp) {
  const Tensor &x = *call.in(0), &weight = *call.in(1), *bias = call.in(2);
  const Transposed c = transposed_of(call);
  if (!is_integer_product(x, weight, 1, bias, output, c.groups)) return false;
  const CountedVector<double> xs = centered_doubles(x, 0), w = centered_doubles(weight, 1);
  CountedVector<double> sums(static_cast<std::size_t>(output.count()));
  convolve_transposed(c, xs.data(), w.data(), sums.data());
  store_products(output, sums, static_cast<std::size_t>(c.y_size()), *x.quantizer(), *weight.quantizer(), bias,
                 static_cast<std::size_t>(c.filters * c.groups), clamp);
  return true;
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Ready<Opposite> opposite(run.call);
  const ConvRuns &conv = opposite->conv;
  const Tensor &dy = run.dy[0];
  if (dx[0].has_data())
    conv.forward(dy.as<const float>(), run.call.in(1)->as<const float>(), dx[0].as<float>(), run.scratch);
  if (dx[1].has_data())
    conv.weight_gradient(dy.as<const float>(), run.call.in(0)->as<const float>(), dx[1].as<float>(), run.scratch);
  if (run.call.in(2)) channel_gradient(dx[2], dy);
}

constexpr ProductForm kProduct{.convolution = true,
                               .channel_axis = [](const Attrs &) -> std::size_t { return 1; },
                               .channel_groups = [](const Attrs &attrs) { return attrs.get_int("group", 1); }};

}  // namespace

const OpDef kConvTranspose{.name = "ConvTranspose",
                           .min_inputs = 2,
                           .max_inputs = 3,
                           .max_outputs = 1,
                           .attrs = kAttrs,
                           .infer = infer,
                           .run = run,
                           .prepare = prepare<Opposite>,
                           .run_quantized = run_quantized,
                           .backward = backward,
                           .keeps = {.inputs = kAllInputs},
                           .product = &kProduct,
                           .weights = {1, 1},
                           .offsets = {2, 1},
                           .work = work_of_convolution};

}  // namespace qtn::ops
