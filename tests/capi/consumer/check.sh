#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program outside of the tree: installs into a fresh prefix, moves that, compiles examples/c/quantize.c and
# examples/cpp/quantize.cpp with nothing but pkg-config, quantizes the digits model and runs it. Then the same through
# find_package(qtensor), and with the static library through both.
# Usage: check.sh CMAKE BUILD_DIR SOURCE_DIR CC CXX [FLAGS...]
set -eu
cmake=$1 build=$2 source=$3 cc=$4 cxx=$5
shift 5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/staged" > "$work/install.log"
mv "$work/staged" "$work/prefix"  # nothing may remember where it was installed first

pc=$(find "$work/prefix" -name qtensor.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
lib=$(pkg-config --variable=libdir qtensor)
digits=$source/examples/digits
# shellcheck disable=SC2046
"$cc" -std=c99 -Wall -Wextra -pedantic -Werror "$@" "$source/examples/c/quantize.c" -o "$work/quantize" \
  $(pkg-config --cflags --libs qtensor)
LD_LIBRARY_PATH=$lib "$work/quantize" "$digits/digits.onnx" "$work/int8.onnx" "$digits/calibration.npy"
# The model is in 8 bits, which costs this much and no more, and decides as well as in float.
if [[ -x $work/prefix/bin/qtensor ]]; then
  LD_LIBRARY_PATH=$lib "$work/prefix/bin/qtensor" compare "$digits/digits.onnx" "$work/int8.onnx" --json \
    --data "$digits/test_images.npy" --labels "$digits/test_labels.npy" > "$work/compared.json"
  python3 - "$work/compared.json" << 'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))
if not (30 < found["outputs"][0]["sqnr_db"] < 50 and found["top1_b"] >= found["top1_a"] - 0.005 >= 0.96):
    sys.exit(f"examples/c quantizes badly: {found}")
PYTHON
fi
# shellcheck disable=SC2046
"$cxx" -std=c++17 -Wall -Wextra -pedantic -Werror "$@" "$source/examples/cpp/quantize.cpp" -o "$work/quantize-cpp" \
  $(pkg-config --cflags --libs qtensor)
LD_LIBRARY_PATH=$lib "$work/quantize-cpp" "$digits/digits.onnx" "$work/int8-cpp.onnx" "$digits/calibration.npy"
cmp "$work/int8.onnx" "$work/int8-cpp.onnx"

mkdir "$work/project"
cat > "$work/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(consumer C)
find_package(qtensor 0.1 REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE qtensor::qtensor)
if(TARGET qtensor::qtensor_static)
  add_executable(consumer_static consumer.c)
  target_link_libraries(consumer_static PRIVATE qtensor::qtensor_static)
endif()
CMAKE
cp "$source/examples/c/quantize.c" "$work/project/consumer.c"
"$cmake" -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$cc" \
  -DCMAKE_C_FLAGS="$*" > "$work/configure.log"
"$cmake" --build "$work/project/build" > "$work/build.log"
"$work/project/build/consumer" "$digits/digits.onnx" "$work/int8-again.onnx" "$digits/calibration.npy"
cmp "$work/int8.onnx" "$work/int8-again.onnx"

[[ -e $lib/libqtensor.a ]] || exit 0  # not with sanitizers
"$work/project/build/consumer_static" "$digits/digits.onnx" "$work/int8-static.onnx" "$digits/calibration.npy"
cmp "$work/int8.onnx" "$work/int8-static.onnx"

rm "$lib"/libqtensor.so*  # which the linker would prefer
# shellcheck disable=SC2046
"$cc" -std=c99 -Wall -Wextra -pedantic -Werror "$source/examples/c/quantize.c" -o "$work/quantize-static" \
  $(pkg-config --static --cflags --libs qtensor)
"$work/quantize-static" "$digits/digits.onnx" "$work/int8-alone.onnx" "$digits/calibration.npy"
cmp "$work/int8.onnx" "$work/int8-alone.onnx"
# A shared library of somebody else with ours inside has no symbol of ours.
# shellcheck disable=SC2046
"$cc" -shared -fPIC "$source/examples/c/quantize.c" -o "$work/plugin.so" $(pkg-config --static --cflags --libs qtensor)
if nm -D --defined-only "$work/plugin.so" | grep -v ' main$'; then
  echo "these symbols leave a shared library that contains libqtensor.a"
  exit 1
fi
