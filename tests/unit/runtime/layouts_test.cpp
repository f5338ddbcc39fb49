// SPDX-License-Identifier: Apache-2.0
// Operators over random shapes against ONNX Runtime, by themselves and in sessions: short rows and long ones, repeated or
// far apart. Elements follow from their places, and outputs are compared by a sum that each place has a weight in; see
// make_layouts.py.
#include "ops/support.hpp"
#include "quant/graph_builder.hpp"
#include "runtime/session.hpp"

namespace qtn::test {
namespace {

std::int64_t element(std::int64_t place, std::int64_t seed) {
  return static_cast<std::uint32_t>(place * 2654435761 + seed * 40503) >> 24;
}

Tensor described(const nlohmann::json &j, std::int64_t seed) {
  if (!j.at(0).is_array()) return Tensor::from_ints(j.get<std::vector<std::int64_t>>());
  const Tensor t(dtype_of(j.at(1)), Shape(j.at(0).get<std::vector<std::int64_t>>()));
  dispatch(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < t.count(); ++i) {
      const std::int64_t v = element(i, seed);
      if constexpr (std::is_same_v<T, float>)
        t.as<T>()[i] = static_cast<float>(v - 128) / 16;
      else
        t.as<T>()[i] = std::is_same_v<T, bool> ? v >= 128 : static_cast<T>(v % 100);
    }
  });
  return t;
}

double weighted_sum(const Tensor &y) {
  double sum = 0;
  dispatch(y.dtype(), [&](auto zero) {
    for (std::int64_t i = 0; i < y.count(); ++i)
      sum += static_cast<double>(y.as<const decltype(zero)>()[i]) * static_cast<double>(i * 7919 % 101 + 1);
  });
  return sum;
}

/// A row of the file: an operator and what it is given, tensors and lists of integers.
class Case {
 public:
  Case(const nlohmann::json &row, std::int64_t number) : row_(row), op_(row.at("op")) {
    attrs_ = attrs_of(row.at("attrs"), *ops::find_op(op_));
    for (const nlohmann::json &input : row.at("inputs")) {
      const auto place = static_cast<std::int64_t>(tensors_.size());
      tensors_.push_back(input.is_null() ? Tensor() : described(input, number + place));
      is_list_.push_back(!input.is_null() && !input.at(0).is_array());
    }
  }

  void by_operator() const {
    Inputs inputs;
    for (const Tensor &t : tensors_) inputs.push_back(t.has_data() ? &t : nullptr);
    expect(run(op_.c_str(), attrs_, inputs)[0], "the operator");
  }

  /// As the only node of a network, whose constants the lists are.
  void in_session(runtime::Engine engine) const {
    GraphBuilder b;
    Inputs inputs;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      names.push_back(tensors_[i].has_data() ? cat("x", i) : "");
      if (is_list_[i]) b.constant(names[i], tensors_[i]);
      if (is_list_[i] || !tensors_[i].has_data()) continue;
      b.input(names[i], tensors_[i].shape(), tensors_[i].dtype());
      inputs.push_back(&tensors_[i]);
    }
    b.node(op_, "node", names, {"y"}, attrs_);
    expect(runtime::Session(b.build({"y"}), {engine, 2}).run(inputs)[0],
           engine == runtime::Engine::native ? "the native engine" : "the reference engine");
  }

 private:
  void expect(const Tensor &y, const char *who) const {
    if (!(y.shape() == Shape(row_.at("shape").get<std::vector<std::int64_t>>())))
      fail_test(who, ": ", row_.dump(), " gives ", to_string(y.shape()));
    const double got = weighted_sum(y), want = row_.at("sum");
    if (!(std::abs(got - want) <= 1e-6 * row_.at("of").get<double>()))
      fail_test(who, ": ", row_.dump(), " gives ", got);
  }

  const nlohmann::json &row_;
  std::string op_;
  Attrs attrs_;
  std::vector<Tensor> tensors_;  ///< without data: absent
  std::vector<bool> is_list_;
};

void sums_are_those_of_onnx_runtime(void **) {
  const nlohmann::json rows = golden("layouts.json");
  assert_int_equal(rows.size(), 640);
  std::int64_t number = 0;
  for (const nlohmann::json &row : rows) {
    const Case c(row, number++);
    c.by_operator();
    c.in_session(runtime::Engine::native);
    c.in_session(runtime::Engine::reference);
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::sums_are_those_of_onnx_runtime)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
