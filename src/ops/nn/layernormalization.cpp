// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/rows/rows.hpp"
#include "ops/common/epsilon.hpp"
#include "ops/common/gradient.hpp"
#include "ops/common/infer.hpp"
#include "ops/common/lane_tasks.hpp"
#include "ops/common/moments.hpp"
#include "ops/common/standardize.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"axis", AttrSpec::kInt}, {"epsilon", AttrSpec::kFloat}, {"stash_type", AttrSpec::kInt}};

std::size_t axis_of(const Call &call) {
  return normalize_axis(call.attrs.get_int("axis", -1), call.in(0)->rank(), "LayerNormalization");
}

/// The type of means and deviations, which are computed in float32 or more whatever it is. Some files say 0, which names no type.
void check_stash(const Call &call) {
  const std::int64_t stash = call.attrs.get_int("stash_type", QTN_FLOAT32);
  constexpr std::int64_t kKnown[] = {0, QTN_FLOAT32, QTN_FLOAT16, QTN_FLOAT64, QTN_BFLOAT16};
  if (std::find(std::begin(kKnown), std::end(kKnown), stash) == std::end(kKnown))
    fail(QTN_EINVAL, "LayerNormalization: stash_type is ", stash, ", which is no type of floats");
  if (stash > QTN_FLOAT32 && call.output_count > 1)
    fail(QTN_EUNSUPPORTED, "LayerNormalization: stash_type is ", stash,
         ", only 1 (float32) is supported for Mean and InvStdDev");
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real("LayerNormalization", "x", &x);
  constexpr const char *kNames[] = {"x", "scale", "B"};
  for (const std::size_t i : {1, 2}) {
    const Tensor *t = call.in(i);
    if (!t) continue;
    require_same_dtype("LayerNormalization", x, *t);
    if (t->rank() > x.rank() || !(broadcast(x.shape(), t->shape(), "LayerNormalization") == x.shape()))
      fail(QTN_ESHAPE, "LayerNormalization: ", kNames[i], " ", to_string(t->shape()), " does not broadcast to x ",
           to_string(x.shape()));
  }
  check_stash(call);
  Shape kept = x.shape();
  std::fill(kept.begin() + axis_of(call), kept.end(), 1);
  Types types{{x.dtype(), x.shape()}};
  for (std::size_t i = 1; i < call.output_count; ++i) types.push_back({QTN_FLOAT32, kept});
  return types;
}

/// Whether each row of x is multiplied by t, or t is added to each.
bool is_row(const Tensor &t, const Tensor &x, std::size_t axis) {
  const std::size_t rank = x.rank() - axis;
  if (t.rank() < rank || t.count() != element_count(x.shape(), axis, x.rank())) return false;
  return std::equal(x.shape().begin() + axis, x.shape().end(), t.shape().end() - rank);
}

/// What the kernel does: one scale for each element of a row, as networks have it.
bool is_plain(const Call &call) {
  const Tensor &x = *call.in(0);
  const std::size_t axis = axis_of(call);
  return x.dtype() == QTN_FLOAT32 && x.count() > 0 && is_row(*call.in(1), x, axis) &&
         (!call.in(2) || is_row(*call.in(2), x, axis));
}

kernels::RowsArgs rows_of(const Call &call, std::size_t first, std::size_t end) {
  const Tensor &x = *call.in(0);
  const auto length = static_cast<std::size_t>(element_count(x.shape(), axis_of(call), x.rank()));
  return {x.as<const float>() + first * length, end - first, length, call.attrs.get_float("epsilon", kDefaultEpsilon),
          call.in(1)->as<const float>()};
}

void normalize_rows(const Call &call, const Tensor &y) {
  const kernels::RowsArgs all = rows_of(call, 0, static_cast<std::size_t>(y.count()));
  const std::size_t rows = static_cast<std::size_t>(y.count()) / all.columns;
  const float *shift = call.in(2) ? call.in(2)->as<const float>() : nullptr;
  const auto normalize = kernels::rows_kernel().normalize;
  parallel_ranges(rows, rows, [&](std::size_t begin, std::size_t end, std::size_t) {
    normalize({rows_of(call, begin, end), shift, y.as<float>() + begin * all.columns});
  });
}

template <class T>
void normalize(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0), &y = outputs[0];
  const std::size_t axis = axis_of(call);
  const std::int64_t length = element_count(x.shape(), axis, x.rank());
  const double epsilon = call.attrs.get_float("epsilon", kDefaultEpsilon);
  const auto stash = [&](std::size_t output, std::size_t row, double value) {
    if (output < outputs.size() && outputs[output].has_data())
      outputs[output].as<float>()[row] = static_cast<float>(value);
  };
  parallel_for(static_cast<std::size_t>(element_count(x.shape(), 0, axis)), [&](std::size_t row) {
    const std::int64_t at = static_cast<std::int64_t>(row) * length;
    const T *from = x.as<const T>() + at;
    T *to = y.as<T>() + at;
    const Moments m = moments(from, length);
    const double inverse = 1 / std::sqrt(m.variance + epsilon);
    for (std::int64_t i = 0; i < length; ++i) to[i] = static_cast<T>((static_cast<double>(from[i]) - m.mean) * inverse);
    stash(1, row, m.mean);
    stash(2, row, inverse);
  });
  map_broadcast<T, T>(y, *call.in(1), y.shape(), y.as<T>(), [](T v, T scale) { return v * scale; });
  if (call.in(2)) map_broadcast<T, T>(y, *call.in(2), y.shape(), y.as<T>(), [](T v, T shift) { return v + shift; });
}

void run(const Call &call, std::span<Tensor> outputs) {
  if (call.output_count == 1 && is_plain(call)) return normalize_rows(call, outputs[0]);
  call.in(0)->dtype() == QTN_FLOAT64 ? normalize<double>(call, outputs) : normalize<float>(call, outputs);
}

/// Rows in parts, each with sums of its own.
void backward_rows(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &dy = run.dy[0];
  const auto count = static_cast<std::size_t>(dy.count()), columns = rows_of(run.call, 0, 0).columns;
  const std::size_t rows = count / columns, parts = std::min<std::size_t>(rows, kTasks);
  auto *sums = reinterpret_cast<double *>(run.scratch.take(2 * parts * columns * sizeof(double)));
  std::fill_n(sums, 2 * parts * columns, 0.0);
  parallel_for(parts, [&, backward = kernels::rows_kernel().backward](std::size_t part) {
    const std::size_t first = rows * part / parts, end = rows * (part + 1) / parts;
    double *of_part = sums + 2 * part * columns;
    backward({rows_of(run.call, first, end), dy.as<const float>() + first * columns,
              dx[0].has_data() ? dx[0].as<float>() + first * columns : nullptr, of_part, of_part + columns});
  });
  for (const std::size_t which : {0, 1}) {
    if (which + 1 >= dx.size() || !dx[which + 1].has_data()) continue;
    for (std::size_t i = 0; i < columns; ++i) {
      double total = 0;
      for (std::size_t part = 0; part < parts; ++part) total += sums[(2 * part + which) * columns + i];
      dx[which + 1].as<float>()[i] = static_cast<float>(total);
    }
  }
}

void backward(const Backward &run, std::span<const Tensor> dx) {
  const Tensor &x = *run.call.in(0), &dy = run.dy[0];
  const auto product = [](float slope, float factor) { return slope * factor; };
  for (std::size_t i = 1; i < run.dy.size(); ++i)
    if (run.dy[i].has_data()) fail(QTN_EUNSUPPORTED, "LayerNormalization: no gradient of output ", i);
  if (is_plain(run.call)) return backward_rows(run, dx);
  if (run.call.in(2)) broadcast_gradient(dx[2], dy, [](float slope) { return slope; });
  broadcast_gradient(dx[0], dy, product, *run.call.in(1));
  if (!dx[0].has_data() && !dx[1].has_data()) return;

  const std::int64_t length = element_count(x.shape(), axis_of(run.call), x.rank());
  const std::int64_t rows = length == 0 ? 0 : x.count() / length;
  const Tensor memory = scratch_tensor(run.scratch, {x.count() + rows});
  if (rows > 0)
    standardize(x, length, run.call.attrs.get_float("epsilon", kDefaultEpsilon), Centre::mean, memory.as<float>());
  broadcast_gradient(dx[1], dy, product, memory.view(x.shape(), contiguous_strides(x.shape())));
  if (dx[0].has_data()) standardize_back(memory.as<const float>(), rows, length, Centre::mean, dx[0].as<float>());
}

/// Mean and deviation are float32, whatever x is.
qdtype output_dtype(const Attrs &, std::size_t output, qdtype moved) { return output == 0 ? moved : QTN_FLOAT32; }

}  // namespace

const OpDef kLayerNormalization{.name = "LayerNormalization",
                                .min_inputs = 2,
                                .max_inputs = 3,
                                .max_outputs = 3,
                                .attrs = kAttrs,
                                .infer = infer,
                                .run = run,
                                .backward = backward,
                                .keeps = {.inputs = {0, 2}},
                                .offsets = {1, 2},
                                .output_dtype = output_dtype};

}  // namespace qtn::ops
