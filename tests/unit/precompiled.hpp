// SPDX-License-Identifier: Apache-2.0
// What most of these tests include, which CMake has parsed once for all of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "golden.hpp"
#include "graph/evaluate.hpp"
#include "graph/passes/passes.hpp"
#include "onnx/onnx.hpp"
#include "quant/prepare.hpp"
#include "quant/quantize.hpp"
#include "runtime/session.hpp"
#include "train/trainer.hpp"
