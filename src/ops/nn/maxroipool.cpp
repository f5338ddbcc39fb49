// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/parallel.hpp"
#include "ops/common/indices.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"pooled_shape", AttrSpec::kInts}, {"spatial_scale", AttrSpec::kFloat}};
constexpr const char *kName = "MaxRoiPool";

Types infer(const Call &call) {
  const Tensor &x = *call.in(0), &rois = *call.in(1);
  require_real(kName, "x", &x);
  require_same_dtype(kName, x, rois);
  const std::vector<std::int64_t> pooled = call.attrs.get_ints("pooled_shape");
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1)
    fail(QTN_EINVAL, kName, ": pooled_shape must be two numbers above 0, it has ", pooled.size());
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 5)
    fail(QTN_ESHAPE, kName, ": x is ", to_string(x.shape()), ", rois ", to_string(rois.shape()));
  return {{x.dtype(), {rois.dim(0), x.dim(1), pooled[0], pooled[1]}}};
}

/// The pixels of bin i along one axis.
struct Bins {
  double start, size;
  std::int64_t pixels;

  std::int64_t begin(std::int64_t i) const { return place(std::floor(static_cast<double>(i) * size)); }
  std::int64_t end(std::int64_t i) const { return place(std::ceil(static_cast<double>(i + 1) * size)); }

 private:
  std::int64_t place(double v) const {
    return static_cast<std::int64_t>(std::clamp(v + start, 0.0, static_cast<double>(pixels)));
  }
};

template <class T>
void pool(const Call &call, const Tensor &y) {
  const Tensor &x = *call.in(0);
  const double scale = call.attrs.get_float("spatial_scale", 1);
  const std::int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  for (std::int64_t n = 0; n < y.dim(0); ++n) {
    const T *roi = call.in(1)->as<const T>() + 5 * n;
    for (int i = 0; i < 5; ++i)
      if (!(std::abs(static_cast<double>(roi[i])) < 1e9))
        fail(QTN_EINVAL, kName, ": region ", n, " has a ", static_cast<double>(roi[i]));
    const std::int64_t image = index_within(kName, static_cast<std::int64_t>(roi[0]), x.shape(), 0);
    const auto bins = [&](int axis, std::int64_t count, std::int64_t pixels) {
      const double first = std::round(static_cast<double>(roi[axis]) * scale),
                   last = std::round(static_cast<double>(roi[axis + 2]) * scale);
      return Bins{first, std::max(last - first + 1, 1.0) / static_cast<double>(count), pixels};
    };
    const Bins rows = bins(2, y.dim(2), height), columns = bins(1, y.dim(3), width);
    parallel_for(static_cast<std::size_t>(channels), [&](std::size_t c) {
      const T *plane = x.as<const T>() + (image * channels + static_cast<std::int64_t>(c)) * height * width;
      T *to = y.as<T>() + (n * channels + static_cast<std::int64_t>(c)) * y.dim(2) * y.dim(3);
      for (std::int64_t i = 0; i < y.dim(2); ++i)
        for (std::int64_t j = 0; j < y.dim(3); ++j) {
          const std::int64_t top = rows.begin(i), bottom = rows.end(i), left = columns.begin(j), right = columns.end(j);
          T most = bottom <= top || right <= left ? T(0) : plane[top * width + left];
          for (std::int64_t r = top; r < bottom; ++r)
            for (std::int64_t k = left; k < right; ++k) most = std::max(most, plane[r * width + k]);
          *to++ = most;
        }
    });
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? pool<double>(call, outputs[0]) : pool<float>(call, outputs[0]);
}

/// A place may be as large as the image.
double work(const Call &call) {
  const Shape &x = call.in(0)->shape();
  return static_cast<double>(element_count(x, 2, x.size()));
}

}  // namespace

const OpDef kMaxRoiPool{.name = kName,
                        .min_inputs = 2,
                        .max_inputs = 2,
                        .max_outputs = 1,
                        .attrs = kAttrs,
                        .infer = infer,
                        .run = run,
                        .work = work};

}  // namespace qtn::ops
