#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program of examples/dlopen, which prepares, calibrates and converts, makes the file that the command makes with --plain,
# and its session says what that of the C program says.
# usage: check.sh LANGUAGE SOURCE LIBRARY COMMAND WORK      LANGUAGE: c, python, node, go
set -euo pipefail
language=$1 examples=$2/examples/dlopen digits=$2/examples/digits command=$4 work=$5
export LD_LIBRARY_PATH=${3%/*}

missing() {
  echo "$language: $1"
  exit 77
}

rm -rf "$work"
mkdir -p "$work"
gcc -std=c99 -Wall -Wextra -Wpedantic -Werror "$examples/quantize.c" -ldl -o "$work/quantize"

case $language in
  c) program=("$work/quantize") ;;
  python) program=(python3 -X dev "$examples/quantize.py") ;;
  node)
    command -v npm > /dev/null || missing "npm is missing"
    (cd "$work" && npm install --no-save koffi > npm.log 2>&1) || missing "npm's registry is out of reach: $(tail -n 1 "$work/npm.log")"
    export NODE_PATH=$work/node_modules
    program=(node "$examples/quantize.js")
    ;;
  go)
    command -v go > /dev/null || missing "go is missing"
    cp "$examples"/go.* "$examples/quantize.go" "$work"
    export GOFLAGS=-modcacherw GOPATH=$work/go GOCACHE=$work/cache CGO_ENABLED=0
    (cd "$work" && go mod download > go.log 2>&1) || missing "Go's modules are out of reach: $(tail -n 1 "$work/go.log")"
    (cd "$work" && go build -o quantize-go quantize.go)
    program=("$work/quantize-go")
    ;;
esac

"$command" quantize "$digits/digits.onnx" -o "$work/want.onnx" --data "$digits/calibration.npy" \
  --config onnx --plain > /dev/null
"$work/quantize" "$digits/digits.onnx" "$work/c.onnx" "$digits/calibration.npy" > "$work/want.txt"
grep -q '^tensor(\[\[.*,  \.\.\., ' "$work/want.txt"
"${program[@]}" "$digits/digits.onnx" "$work/got.onnx" "$digits/calibration.npy" > "$work/got.txt"
cmp "$work/want.onnx" "$work/got.onnx"
diff "$work/want.txt" "$work/got.txt"

if "${program[@]}" nowhere.onnx "$work/got.onnx" "$digits/calibration.npy" 2> "$work/error.txt"; then
  echo "a model that is not there was quantized"
  exit 1
fi
grep -q 'nowhere.onnx' "$work/error.txt"
