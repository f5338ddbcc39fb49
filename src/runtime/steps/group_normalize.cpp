// SPDX-License-Identifier: Apache-2.0
// GroupNormalization and InstanceNormalization of images whose channels lie side by side.
#include <cmath>

#include "kernels/columns/columns.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {
namespace {

constexpr std::size_t kColumns = 32;      // of a task, if its groups have as few
constexpr std::size_t kChunk = 8 * 1024;  // elements that are written before tails take them from the cache

class GroupNormalizeStep final : public TailedStep {
 public:
  GroupNormalizeStep(const Edge &x, const Edge &y, const GroupNormalization &n, const ops::Clamp &clamp)
      : image_(*as_image(x.form.shape, x.form.strides)),
        groups_(n.groups),
        size_(static_cast<std::size_t>(image_.c) / n.groups),
        epsilon_(n.epsilon),
        clamp_(clamp) {
    for (std::size_t c = 0; c < channels(); ++c) {
      const auto at = [&](const Tensor &t) {
        return static_cast<double>(t.as<const float>()[t.dim(0) == image_.c ? c : c / size_]);
      };
      scales_.push_back(at(n.scale));
      shifts_.push_back(at(n.shift));
    }
    kernel = kernels::columns_kernel().name;
    reads = {x.slot};
    writes = {y.slot};
  }

  std::size_t lane_bytes() const override { return 3 * groups_at_once() * size_ * sizeof(double); }

  void run(const Context &c) const override {
    const std::size_t at_once = groups_at_once(), tasks = ceil_div(groups_, at_once),
                      images = static_cast<std::size_t>(image_.n);
    for_chunks(c, images * tasks, images * pixels() * channels() / 4, [&](std::size_t lane, std::size_t chunk) {
      const std::size_t first = chunk % tasks * at_once;
      normalize(c, chunk / tasks, first, std::min(at_once, groups_ - first),
                reinterpret_cast<double *>(c.lane_scratch(lane)));
    });
  }

 private:
  std::size_t channels() const { return groups_ * size_; }
  std::size_t pixels() const { return static_cast<std::size_t>(image_.pixels()); }
  std::size_t groups_at_once() const { return std::min(groups_, std::max<std::size_t>(1, kColumns / size_)); }

  /// Each column of a group gets the sum of all, by the number of its elements.
  void average(double *sums, std::size_t groups) const {
    for (std::size_t g = 0; g < groups; ++g, sums += size_) {
      double sum = 0;
      for (std::size_t c = 0; c < size_; ++c) sum += sums[c];
      std::fill_n(sums, size_, sum / static_cast<double>(size_ * pixels()));
    }
  }

  void normalize(const Context &c, std::size_t image, std::size_t group, std::size_t groups, double *centres) const {
    const kernels::ColumnsKernel &by_columns = kernels::columns_kernel();
    const std::size_t columns = groups * size_, column = group * size_, first_row = image * pixels();
    double *variances = centres + columns, *gains = variances + columns;
    const float *x =
        c.tensor(reads[0]).as<const float>() + static_cast<std::ptrdiff_t>(first_row) * image_.pixel + column;
    std::fill_n(centres, 2 * columns, 0.0);
    by_columns.sum({x, pixels(), image_.pixel, columns, centres, nullptr});
    average(centres, groups);
    by_columns.squares({x, pixels(), image_.pixel, columns, variances, centres});
    average(variances, groups);
    for (std::size_t i = 0; i < columns; ++i) gains[i] = scales_[column + i] / std::sqrt(variances[i] + epsilon_);

    auto *y = c.tensor(output()).as<float>() + first_row * channels() + column;
    const auto y_row = static_cast<std::ptrdiff_t>(channels());
    const std::size_t block = std::max<std::size_t>(1, kChunk / columns);
    for (std::size_t row = 0; row < pixels(); row += block) {
      const std::size_t rows = std::min(block, pixels() - row);
      float *to = y + row * channels();
      by_columns.standardize({rows, columns, centres, gains, shifts_.data() + column, clamp_.lo, clamp_.hi,
                              x + static_cast<std::ptrdiff_t>(row) * image_.pixel, image_.pixel, to, y_row});
      run_tails(c, {reinterpret_cast<std::uint8_t *>(to), y_row * static_cast<std::ptrdiff_t>(sizeof(float)),
                    first_row + row, rows, column * sizeof(float), columns * sizeof(float)});
    }
  }

  Image image_;
  std::size_t groups_, size_;  // and channels of each
  double epsilon_;
  std::vector<double> scales_, shifts_;  // of channels
  ops::Clamp clamp_;
};

}  // namespace

StepPtr make_group_normalize(const Edge &x, const Edge &y, const GroupNormalization &n, const ops::Clamp &clamp) {
  return std::make_unique<GroupNormalizeStep>(x, y, n, clamp);
}

}  // namespace qtn::runtime
