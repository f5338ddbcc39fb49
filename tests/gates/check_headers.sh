#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each public header alone compiles as C99, C11 and C++17, the C++ one as C++17 and C++20. Exit code 77 (skipped) where the compiler is missing.
# Usage: check_headers.sh CC CXX INCLUDE_DIR...
set -eu
cc=$1 cxx=$2
shift 2
for compiler in "$cc" "$cxx"; do
  if ! command -v "$compiler" > /dev/null; then
    echo "skipped: $compiler is not installed"
    exit 77
  fi
done
flags=(-Wall -Wextra -pedantic -Werror -fsyntax-only)
for folder in "$@"; do flags+=(-I "$folder"); done
count=0
for header in $(cd "$1" && ls qtensor/*.h) qtensor/version.h; do
  for std in c99 c11; do
    echo "#include <$header>" | "$cc" -x c -std=$std "${flags[@]}" -
  done
  echo "#include <$header>" | "$cxx" -x c++ -std=c++17 "${flags[@]}" -
  count=$((count + 1))
done
for std in c++17 c++20; do
  echo "#include <qtensor/qtensor.hpp>" | "$cxx" -x c++ -std=$std -Wshadow "${flags[@]}" -
done
count=$((count + 1))
echo "$count headers compile alone with $cc and $cxx"
