#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# examples/mpi outside of the tree: installs into a fresh prefix, compiles train.c and calibrate.c with MPI's compiler and
# pkg-config, trains in two processes, and calibrates in one to four, which gives the file that the command writes.
# Usage: mpi.sh CMAKE BUILD_DIR SOURCE_DIR MPICC MPIEXEC
set -eu
cmake=$1 build=$2 source=$3 mpicc=$4 mpiexec=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/prefix" > "$work/install.log"
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name qtensor.pc)")
export PKG_CONFIG_PATH
for program in train calibrate; do
  # shellcheck disable=SC2046
  "$mpicc" -std=c99 -Wall -Wextra -pedantic -Werror "$source/examples/mpi/$program.c" -o "$work/$program" \
    $(pkg-config --cflags --libs qtensor) -lm
done
LD_LIBRARY_PATH=$(pkg-config --variable=libdir qtensor)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
# Open MPI wants to be asked twice before it runs as root, and once where there are fewer cores than processes.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
digits=$source/examples/digits
"$mpiexec" -n 2 "$work/train" "$digits/untrained.onnx" "$digits/train_images.npy" "$digits/train_labels.npy"
for processes in 1 2 4; do
  "$mpiexec" -n $processes "$work/calibrate" "$digits/digits.onnx" "$digits/calibration.npy" "$work/$processes.onnx" \
    "$digits/test_images.npy" "$digits/test_labels.npy" | tee "$work/said"
  grep -q "top-1 97.78 % of 540" "$work/said"
  cmp "$work/1.onnx" "$work/$processes.onnx"
done
[[ ! -x $work/prefix/bin/qtensor ]] || {
  "$work/prefix/bin/qtensor" quantize "$digits/digits.onnx" -o "$work/command.onnx" --data "$digits/calibration.npy" --plain > "$work/quantize.log"
  cmp "$work/1.onnx" "$work/command.onnx"
}
ls "$work" | { ! grep -q qcal; }
