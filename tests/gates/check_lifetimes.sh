#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Clang warns where a program keeps an Ints or Doubles of qtensor.hpp longer than what it refers to, and says nothing where it does
# not. Exit code 77 (skipped) where Clang is missing or does not know the attribute. Usage: check_lifetimes.sh INCLUDE_DIR...
set -eu
command -v clang++ > /dev/null || { echo "skipped: clang++ is not installed"; exit 77; }
flags=(-std=c++17 -Wall -Wextra -pedantic -Werror -fsyntax-only)
for folder in "$@"; do flags+=(-I "$folder"); done

# compiled BODY: what Clang says of a program with this body.
compiled() {
  printf '#include <qtensor/qtensor.hpp>\nstd::vector<int64_t> list();\nsize_t f(const qtn::Tensor &t) {\n  %s\n}\n' "$1" |
    clang++ -x c++ "${flags[@]}" - 2>&1
}

if ! printf '#if !__has_cpp_attribute(clang::lifetimebound)\n#error\n#endif\n' | clang++ -x c++ -fsyntax-only - 2> /dev/null; then
  echo "skipped: this clang++ does not know lifetimebound"
  exit 77
fi

dangling=(
  'const qtn::Ints shape = t.permute({1, 0}).shape(); return shape.size;'
  'const qtn::Ints strides = t.contiguous().strides(); return strides.size;'
  'const qtn::Doubles scales = t.quantizer().scales(); return scales.size;'
  'const qtn::Ints zeros = t.quantizer().zero_points(); return zeros.size;'
  'const qtn::Doubles zeros = t.quantizer().float_zero_points(); return zeros.size;'
  'const qtn::Ints shape = qtn::Model::load("net.onnx").input_shape(0); return shape.size;'
  'const void *bytes = qtn::Observer::create("minmax").save().data(); return bytes != nullptr;'
  'const qtn::Ints shape = {2, 3}; return t.reshape(shape).rank();'
  'const qtn::Ints shape = list(); return t.reshape(shape).rank();'
  'const qtn::Doubles scales = {0.5, 1}; return scales.size;'
)
for body in "${dangling[@]}"; do
  if ! compiled "$body" | grep -qF -- -Wdangling; then
    echo "Clang does not warn of: $body"
    exit 1
  fi
done

# Clang 14 takes `return scales.size` of a const local for the address of what it refers to, which it is not.
sound=(
  'const qtn::Ints shape = t.shape(); return shape.size + t.reshape({-1}).rank() + t.reshape(list()).rank();'
  'const qtn::Quantizer q = t.quantizer(); const qtn::Doubles scales = q.scales(); return scales[0] > 0;'
  'const std::vector<int64_t> dims = list(); const qtn::Ints shape = dims; return t.reshape(shape).rank();'
)
for body in "${sound[@]}"; do
  if ! compiled "$body"; then
    echo "Clang warns of: $body"
    exit 1
  fi
done
echo "${#dangling[@]} uses that dangle are told from ${#sound[@]} that do not"
