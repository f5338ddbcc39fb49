// SPDX-License-Identifier: Apache-2.0
// A file of a hundred bytes can say "a billion zeros": what is made of a file while it is read takes so much memory in
// any case, and more in proportion to its bytes.
#pragma once

#include <cstddef>

#include "base/size.hpp"

namespace qtn::onnx {

constexpr std::size_t kMadeBytes = std::size_t{64} << 20, kMadePerByte = 64;

inline std::size_t most_made_of(std::size_t bytes) { return (Size(bytes) * kMadePerByte + kMadeBytes).value(); }

}  // namespace qtn::onnx
