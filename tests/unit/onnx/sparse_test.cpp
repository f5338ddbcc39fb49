// SPDX-License-Identifier: Apache-2.0
// Sparse tensors that are not what they say, or more than a file pays for. What good ones are is in composed_test.cpp.
#include "support.hpp"

namespace qtn::test {
namespace {

namespace f = onnx::field;

struct SparseText {
  std::vector<std::int64_t> dims;
  std::vector<float> values;
  std::vector<std::int64_t> indices, shape_of_indices;
  std::int32_t type_of_indices = QTN_INT64;

  std::string bytes(const std::string &name) const {
    return write([&](pbf_writer &t) {
      t.add_message(f::sparse_tensor::values, float_tensor(name, {static_cast<std::int64_t>(values.size())}, values));
      t.add_message(f::sparse_tensor::indices, raw_tensor("", type_of_indices, shape_of_indices, indices));
      t.add_packed_int64(f::sparse_tensor::dims, dims.begin(), dims.end());
    });
  }
};

/// y = x + w, in a file of these sparse tensors.
std::string model_of(const std::vector<std::string> &sparse) {
  const ModelText model{.nodes = {{"Add", {"x", "w"}, {"y"}}}, .sparse_initializers = sparse};
  return model.bytes();
}

/// The same with a w that a node makes.
ModelText model_of_attribute(const std::string &sparse) {
  const auto fill = [&](pbf_writer &a) {
    a.add_string(f::attribute::name, "sparse_value");
    a.add_message(f::attribute::sparse_tensor, sparse);
  };
  return {.nodes = {{"Constant", {}, {"w"}, "c", "", {write(fill)}}, {"Add", {"x", "w"}, {"y"}}}};
}

void refuse(qstatus status, const std::string &text, const SparseText &w) {
  expect_error(status, {"sparse initializer \"w\"", text}, [&] { parse(model_of({w.bytes("w")})); });
}

void of_both_forms(void **) {
  for (const SparseText &w :
       {SparseText{{2, 2}, {3, 4}, {1, 2}, {2}}, SparseText{{2, 2}, {3, 4}, {0, 1, 1, 0}, {2, 2}}})
    assert_true(equal(named(parse(model_of({w.bytes("w")})), "w").constant, floats({2, 2}, {0, 3, 4, 0})));
  for (const std::vector<std::int64_t> &none : {std::vector<std::int64_t>{0}, {0, 2}})
    assert_true(equal(named(parse(model_of({SparseText{{1, 2}, {}, {}, none}.bytes("w")})), "w").constant,
                      floats({1, 2}, {0, 0})));
}

void places_that_are_none(void **) {
  refuse(QTN_EFORMAT, "the index 4, which is not within its shape 2x2", {{2, 2}, {3}, {4}, {1}});
  refuse(QTN_EFORMAT, "the index -1, which is not within its shape 2x2", {{2, 2}, {3}, {-1}, {1}});
  refuse(QTN_EFORMAT, "the index 2, which is not within its shape 2x3", {{2, 3}, {3}, {2, 0}, {1, 2}});
  refuse(QTN_EFORMAT, "the index 0, which is not within its shape 0x2", {{0, 2}, {3}, {0, 0}, {1, 2}});
  refuse(QTN_EFORMAT, "the element 1 behind the element 2", {{2, 2}, {3, 4}, {2, 1}, {2}});
  refuse(QTN_EFORMAT, "the element 2 behind the element 2", {{2, 2}, {3, 4}, {2, 2}, {2}});
  refuse(QTN_EFORMAT, "has indices of int64 3 for 2 elements of shape 2x2", {{2, 2}, {3, 4}, {0, 1, 2}, {3}});
  refuse(QTN_EFORMAT, "has indices of int64 2x1 for 2 elements", {{2, 2}, {3, 4}, {0, 1}, {2, 1}});
  refuse(QTN_EFORMAT, "has indices of float64 2", {{2, 2}, {3, 4}, {0, 1}, {2}, QTN_FLOAT64});
}

void shapes_that_are_none(void **) {
  refuse(QTN_EFORMAT, "a negative dimension in its shape 2x?", {{2, -1}, {3}, {0}, {1}});
  refuse(QTN_EUNSUPPORTED, "has rank 9", {std::vector<std::int64_t>(9, 1), {3}, {0}, {1}});
  const std::string matrix = write([](pbf_writer &t) {
    t.add_message(f::sparse_tensor::values, float_tensor("w", {1, 1}, {3}));
    const std::vector<std::int64_t> two{2, 2};
    t.add_packed_int64(f::sparse_tensor::dims, two.begin(), two.end());
  });
  expect_error(QTN_EFORMAT, {"has values of shape 1x1, which is not a list"}, [&] { parse(model_of({matrix})); });
}

void in_attributes(void **) {
  const SparseText w{{2, 2}, {3, 4}, {1, 2}, {2}}, outside{{2, 2}, {3}, {4}, {1}};
  assert_true(equal(named(parse(model_of_attribute(w.bytes("")).bytes()), "w").constant, floats({2, 2}, {0, 3, 4, 0})));
  expect_error(QTN_EFORMAT, {"attribute \"sparse_value\" has the index 4, which is not within its shape 2x2"},
               [&] { parse(model_of_attribute(outside.bytes("")).bytes()); });
}

/// A few bytes stand for many zeros, once or in many tensors.
void more_than_a_file_pays_for(void **) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 20;
  refuse(QTN_ENOMEM, "of shape 1048576x1048576 takes 4398046511104 bytes", {{kLarge, kLarge}, {}, {}, {0}});
  const SparseText many{{1 << 18}, {}, {}, {0}};  // 1 MiB
  std::vector<std::string> tensors(80, many.bytes("w"));
  expect_error(QTN_ENOMEM, {"takes 1048576 bytes, more than"}, [&] { parse(model_of(tensors)); });
  expect_error(QTN_ENOMEM, {"attribute \"sparse_value\" of shape 262144 takes 1048576 bytes, more than"},
               [&] { parse(model_of_attribute(many.bytes("")).bytes()); });
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(of_both_forms),
      cmocka_unit_test(places_that_are_none),
      cmocka_unit_test(shapes_that_are_none),
      cmocka_unit_test(in_attributes),
      cmocka_unit_test(more_than_a_file_pays_for),
  };
  return cmocka_run_group_tests_name("onnx/sparse", tests, nullptr, nullptr);
}
