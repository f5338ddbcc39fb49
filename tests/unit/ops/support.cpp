// SPDX-License-Identifier: Apache-2.0
#include "ops/support.hpp"

#include <algorithm>
#include <cmath>

namespace qtn::test {

qdtype dtype_of(const std::string &name) {
  for (int code = 1; code <= QTN_INT2; ++code)
    if (dtype_name(static_cast<qdtype>(code)) == name) return static_cast<qdtype>(code);
  return QTN_DTYPE_FORCE32;
}

Tensor tensor_of(const nlohmann::json &j) {
  const auto dims = j.at("shape").get<std::vector<std::int64_t>>();
  const qdtype dtype = dtype_of(j.at("dtype"));
  const Tensor t(plain_dtype(dtype), Shape(dims));
  dispatch(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::size_t i = 0;
    for (const auto &value : j.at("data"))
      if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>)
        t.as<T>()[i++] = value.template get<T>();
      else
        t.as<T>()[i++] = static_cast<T>(number(value));
  });
  return from_plain(t, dtype);
}

Attr attr_of(const nlohmann::json &j, AttrSpec::Kind kind) {
  switch (kind) {
    case AttrSpec::kInt:
      return j.get<std::int64_t>();
    case AttrSpec::kFloat:
      return number(j);
    case AttrSpec::kString:
      return j.get<std::string>();
    case AttrSpec::kInts:
      return j.get<std::vector<std::int64_t>>();
    case AttrSpec::kFloats:
      return j.get<std::vector<double>>();
    case AttrSpec::kStrings: {
      std::string names;
      for (const auto &name : j) names += (names.empty() ? "" : ",") + name.get<std::string>();
      return names;
    }
    default:
      return tensor_of(j);
  }
}

Attrs attrs_of(const nlohmann::json &j, const ops::OpDef &op) {
  Attrs attrs;
  for (const auto &[key, value] : j.items()) {
    const auto spec =
        std::find_if(op.attrs.begin(), op.attrs.end(), [&k = key](const AttrSpec &s) { return s.name == k; });
    if (spec == op.attrs.end()) fail_test(op.name, " does not know attribute ", key);
    attrs.set(key, attr_of(value, spec->kind));
  }
  return attrs;
}

std::vector<Tensor> run(const char *op, const Attrs &a, const Inputs &inputs, std::size_t outputs) {
  return ops::run_op(*ops::find_op(op), ops::Call{a, inputs, outputs});
}

bool close(double got, double want, double tolerance) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  return got == want || std::abs(got - want) <= tolerance * (1 + std::abs(want));
}

void expect_equal(const Tensor &got, const Tensor &want, double tolerance, const std::string &what) {
  if (got.dtype() != want.dtype()) fail_test(what, ": ", dtype_name(got.dtype()), ", not ", dtype_name(want.dtype()));
  if (!(got.shape() == want.shape())) fail_test(what, ": ", to_string(got.shape()), ", not ", to_string(want.shape()));
  const Tensor a = to_plain(got), b = to_plain(want);
  dispatch(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < a.count(); ++i)
      if (!close(static_cast<double>(a.as<const T>()[i]), static_cast<double>(b.as<const T>()[i]), tolerance))
        fail_test(what, ": element ", i, " is ", +a.as<const T>()[i], ", not ", +b.as<const T>()[i]);
  });
}

QuantizerPtr per_tensor(qdtype dtype, double scale, std::int64_t zero_point) {
  return std::make_shared<Quantizer>(dtype, QTN_PER_TENSOR_AFFINE, 0, std::vector{scale}, std::vector{zero_point},
                                     Numerics::onnx);
}

QuantizerPtr per_channel(qdtype dtype, std::int32_t axis, std::vector<double> scales, std::vector<std::int64_t> zeros) {
  return std::make_shared<Quantizer>(dtype, QTN_PER_CHANNEL_AFFINE, axis, std::move(scales), std::move(zeros),
                                     Numerics::onnx);
}

Tensor random_floats(std::mt19937 &engine, const Shape &shape) {
  const Tensor t(QTN_FLOAT32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = static_cast<float>(engine()) / 2147483648.0f - 1;
  return t;
}

Tensor random_bytes(std::mt19937 &engine, const Shape &shape, const QuantizerPtr &quantizer) {
  const Tensor t(quantizer->dtype(), shape, quantizer);
  for (std::int64_t i = 0; i < t.count(); ++i) t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(engine());
  return t;
}

}  // namespace qtn::test
