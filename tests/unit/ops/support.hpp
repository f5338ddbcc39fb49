// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: golden tensors, calls in one expression.
#pragma once

#include <random>

#include "golden.hpp"
#include "ops/op.hpp"

namespace qtn::test {

qdtype dtype_of(const std::string &name);

Tensor tensor_of(const nlohmann::json &j);

Attr attr_of(const nlohmann::json &j, AttrSpec::Kind kind);

Attrs attrs_of(const nlohmann::json &j, const ops::OpDef &op);

using Inputs = std::vector<const Tensor *>;

std::vector<Tensor> run(const char *op, const Attrs &a, const Inputs &inputs, std::size_t outputs = 1);

/// |got - want| <= tolerance * (1 + |want|), equal infinities and NaN match.
bool close(double got, double want, double tolerance);

void expect_equal(const Tensor &got, const Tensor &want, double tolerance, const std::string &what);

QuantizerPtr per_tensor(qdtype dtype, double scale, std::int64_t zero_point);

QuantizerPtr per_channel(qdtype dtype, std::int32_t axis, std::vector<double> scales, std::vector<std::int64_t> zeros);

Tensor random_floats(std::mt19937 &engine, const Shape &shape);

/// Every byte equally likely.
Tensor random_bytes(std::mt19937 &engine, const Shape &shape, const QuantizerPtr &quantizer);

}  // namespace qtn::test
