// SPDX-License-Identifier: Apache-2.0
// Every operator against ONNX's reference evaluator, contiguous and with strides.
#include "onnx/bodies.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

struct Case {
  std::string name;
  Attrs attrs;
  std::vector<Tensor> inputs, outputs;
  std::vector<bool> absent;
  double tolerance;
};

Case read_case(const nlohmann::json &j, const ops::OpDef &op) {
  Case c{cat(op.name, "/", j.at("name").get<std::string>()),
         attrs_of(j.at("attrs"), op),
         {},
         {},
         {},
         j.at("tolerance").get<double>()};
  for (const auto &input : j.at("inputs")) {
    c.absent.push_back(input.is_null());
    c.inputs.push_back(input.is_null() ? Tensor() : tensor_of(input));
  }
  for (const auto &output : j.at("outputs")) c.outputs.push_back(tensor_of(output));
  return c;
}

Inputs pointers(const Case &c) {
  Inputs inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) inputs.push_back(c.absent[i] ? nullptr : &c.inputs[i]);
  return inputs;
}

/// The same values with the first axis innermost, and gaps between elements.
Tensor strided(const Tensor &t) {
  Shape strides = t.shape();
  std::int64_t step = 2;
  for (std::size_t i = 0; i < t.rank(); ++i) {
    strides[i] = step;
    step *= std::max<std::int64_t>(1, t.dim(i));
  }
  const Tensor memory(t.dtype(), {step});
  const Tensor out = memory.view(t.shape(), strides);
  copy_elements(out, t);
  return out;
}

void check(const ops::OpDef &op, const Case &c) {
  const Inputs inputs = pointers(c);
  const ops::Call call{c.attrs, inputs, c.outputs.size()};
  const std::vector<Tensor> got = ops::run_op(op, call);
  for (std::size_t i = 0; i < c.outputs.size(); ++i) expect_equal(got[i], c.outputs[i], c.tolerance, c.name);

  Case other = c;
  for (std::size_t i = 0; i < c.inputs.size(); ++i)
    if (!c.absent[i]) other.inputs[i] = strided(c.inputs[i]);
  const Inputs others = pointers(other);
  const ops::Call strided_call{c.attrs, others, c.outputs.size()};
  if (!ops::moves(op, c.attrs)) {
    const std::vector<Tensor> again = ops::run_op(op, strided_call);
    for (std::size_t i = 0; i < got.size(); ++i) expect_equal(again[i], got[i], 0, c.name + " with strides");
    return;
  }
  std::vector<Tensor> outputs;
  for (const Tensor &t : got) outputs.push_back(strided(Tensor(t.dtype(), t.shape())));
  ops::run_into(op, strided_call, outputs);
  for (std::size_t i = 0; i < got.size(); ++i) expect_equal(outputs[i], got[i], 0, c.name + " with strides");
}

void every_golden_case(void **) {
  std::size_t files = 0, failures = 0, cases = 0;
  for (const auto &entry : std::filesystem::directory_iterator(QTN_GOLDEN_DIR "/ops")) {
    const nlohmann::json file = read_json(entry.path());
    const ops::OpDef *op = ops::find_op(file.at("op").get<std::string>());
    if (!op) fail_test("no operator ", file.at("op").get<std::string>());
    ++files;
    for (const auto &j : file.at("cases")) {
      ++cases;
      const Case c = read_case(j, *op);
      try {
        check(*op, c);
      } catch (const Error &e) {
        ++failures;
        print_error("%s: %s\n", c.name.c_str(), e.what());
      }
    }
  }
  if (failures) fail_test(failures, " of ", cases, " cases failed");
  // If, Loop and Scan run graphs: runtime/control_test.
  const auto alone = std::ranges::count_if(ops::all_ops(), [](const auto *op) { return !onnx::has_bodies(*op); });
  assert_int_equal(files, alone);
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::every_golden_case)};
  return cmocka_run_group_tests_name("ops/golden", tests, nullptr, nullptr);
}
