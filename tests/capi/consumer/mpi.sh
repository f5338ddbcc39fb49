#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# examples/mpi outside of the tree: installs into a fresh prefix, compiles train.c with MPI's compiler and pkg-config, and
# trains in two processes.
# Usage: mpi.sh CMAKE BUILD_DIR SOURCE_DIR MPICC MPIEXEC
set -eu
cmake=$1 build=$2 source=$3 mpicc=$4 mpiexec=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/prefix" > "$work/install.log"
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name qtensor.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
"$mpicc" -std=c99 -Wall -Wextra -pedantic -Werror "$source/examples/mpi/train.c" -o "$work/train" \
  $(pkg-config --cflags --libs qtensor) -lm
LD_LIBRARY_PATH=$(pkg-config --variable=libdir qtensor)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
# Open MPI wants to be asked twice before it runs as root, and once where there are fewer cores than processes.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
digits=$source/examples/digits
"$mpiexec" -n 2 "$work/train" "$digits/untrained.onnx" "$digits/train_images.npy" "$digits/train_labels.npy"
