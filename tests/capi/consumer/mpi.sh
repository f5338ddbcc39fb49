#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# examples/mpi outside of the tree: installs into a fresh prefix, compiles train.c and calibrate.c with MPI's compiler and
# pkg-config. Training in one, two and four processes gives the same files, and the network learns; calibration in so
# many gives the file that the command writes.
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
trained=("$digits/untrained.onnx" "$digits/train_images.npy" "$digits/train_labels.npy")
for processes in 1 2 4; do
  "$mpiexec" -n $processes "$work/train" "${trained[@]}" 40 "$work/float.$processes" "$work/int8.$processes"
  cmp "$work/float.1" "$work/float.$processes"
  cmp "$work/int8.1" "$work/int8.$processes"
done
if "$mpiexec" -n 3 "$work/train" "${trained[@]}" 1 "$work/float.3" "$work/int8.3" > "$work/refused" 2>&1; then
  echo "3 processes have trained" >&2
  exit 1
fi
grep -q "start 1, 2 or 4 processes" "$work/refused"
[[ ! -x $work/prefix/bin/qtensor ]] || {
  "$work/prefix/bin/qtensor" compare "$work/float.1" "$work/int8.1" --data "$digits/test_images.npy" --labels "$digits/test_labels.npy" |
    tee "$work/said"
  grep -qE "top-1 a [5-9][0-9]\.[0-9]+ %, b [5-9][0-9]\.[0-9]+ %" "$work/said"
}
if [[ -d $build/python/qtensor ]] && /usr/bin/python3 -c "import numpy" 2> /dev/null; then
  "$mpiexec" -n 4 "$work/train" "${trained[@]}" 2 "$work/two" "$work/int8.two"
  PYTHONPATH=$build/python /usr/bin/python3 "$source/tests/capi/consumer/mpi_train.py" "${trained[@]}" 2 "$work/two"
fi
# calibrated NAME NETWORK SAMPLES IMAGES LABELS SAYS: the same file from any number of processes, and from the command.
calibrated() {
  for processes in 1 2 4; do
    "$mpiexec" -n $processes "$work/calibrate" "$2" "$3" "$work/$1.$processes" "$4" "$5" | tee "$work/said"
    grep -q "$processes processes: $6" "$work/said"
    cmp "$work/$1.1" "$work/$1.$processes"
  done
  [[ ! -x $work/prefix/bin/qtensor ]] || {
    "$work/prefix/bin/qtensor" quantize "$2" -o "$work/command.onnx" --data "$3" --plain > "$work/quantize.log"
    cmp "$work/$1.1" "$work/command.onnx"
  }
}
calibrated digits "$digits/digits.onnx" "$digits/calibration.npy" "$digits/test_images.npy" "$digits/test_labels.npy" "top-1 97.78 % of 540"
if /usr/bin/python3 -c "import numpy" 2> /dev/null; then
  /usr/bin/python3 "$source/bindings/python/tests/mobilenet.py" "$work"
  calibrated mobilenet "$work/mobilenet_v2.onnx" "$work/calibration.npy" "$work/images.npy" "$work/labels.npy" "top-1 [1-9].* % of 24"
fi
ls "$work" | { ! grep -q qcal; }
