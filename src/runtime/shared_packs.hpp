// SPDX-License-Identifier: Apache-2.0
// Packed weights of several sessions with the same constants, as of the float graphs that candidates are compared with.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/gemm_real/gemm_real.hpp"
#include "runtime/steps/steps.hpp"

namespace qtn::runtime {

/// From here to the end of the scope, plans that this thread makes share what they pack from the same float weights. It
/// is kept as long as the tensors are from which it was packed, and which nobody changes in place.
class SharedPacks {
 public:
  SharedPacks();
  ~SharedPacks();
  SharedPacks(const SharedPacks &) = delete;
  SharedPacks &operator=(const SharedPacks &) = delete;

  /// What `pack` makes of `w` for `kernel`, or made of it earlier in this scope.
  static PackedPtr get(const RealWeights &w, const kernels::GemmRealKernel &kernel,
                       const std::function<PackedPtr()> &pack);

 private:
  struct Key {
    const void *weight, *bias, *kernel;
    std::size_t groups, out, k;
    std::int64_t taps;
    bool is_matrix;

    bool operator==(const Key &) const = default;
  };

  struct Entry {
    Key key;
    std::weak_ptr<void> weight, bias;
    PackedPtr packed;

    bool is_stale() const { return weight.expired() || (key.bias && bias.expired()); }
  };

  std::vector<Entry> entries_;
  SharedPacks *outer_;
};

}  // namespace qtn::runtime
