// SPDX-License-Identifier: Apache-2.0
// The ways a model file stores constants, and what may be wrong with them.
#include "onnx/tensor_proto.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;
namespace tensor_field = onnx::field::tensor;

const std::vector<float> kValues{1.5f, -2.0f};

/// y = x + w.
ModelText add_model(const std::vector<std::string> &initializers) {
  return {.nodes = {{"Add", {"x", "w"}, {"y"}, "add"}}, .initializers = initializers};
}

void expect_values(const graph::Graph &g, const std::vector<float> &values = kValues) {
  const Tensor &w = named(g, "w").constant;
  assert_true(w.has_data());
  assert_true(float_values(w, "w") == values);
  assert_int_equal(g.inputs.size(), 1);
  assert_int_equal(g.nodes.size(), 1);
}

void initializers_in_every_encoding(void **) {
  expect_values(parse(add_model({float_tensor("w", {2}, kValues)}).bytes()));
  expect_values(parse(add_model({tensor_text("w", QTN_FLOAT32, {2}, [](pbf_writer &t) {
                        for (const float v : kValues) t.add_float(tensor_field::float_data, v);
                      })}).bytes()));
  expect_values(parse(add_model({tensor_text("w", QTN_FLOAT32, {2}, [](pbf_writer &t) {
                        t.add_packed_float(tensor_field::float_data, kValues.begin(), kValues.end());
                      })}).bytes()));
  const std::string packed_dims = write([](pbf_writer &t) {
    const std::vector<std::int64_t> dims{2};
    t.add_packed_int64(tensor_field::dims, dims.begin(), dims.end());
    t.add_int32(tensor_field::data_type, QTN_FLOAT32);
    t.add_string(tensor_field::name, "w");
    t.add_bytes(tensor_field::raw_data, reinterpret_cast<const char *>(kValues.data()), 8);
  });
  expect_values(parse(add_model({packed_dims}).bytes()));
}

/// One element after the other, and all in a row: protobuf has both, whatever a writer takes.
template <class Value, class Add, class AddPacked>
void expect_both_forms(std::int32_t type, const std::vector<Value> &values, Add add, AddPacked add_packed) {
  const auto read = [&](const std::function<void(pbf_writer &)> &more) {
    const std::string w = tensor_text("w", type, {static_cast<std::int64_t>(values.size())}, more);
    const ModelText model{.nodes = {{"Cast", {"w"}, {"y"}, "", "", {int_attribute("to", QTN_FLOAT32)}}},
                          .initializers = {w}};
    const Tensor constant = named(parse(model.bytes()), "w").constant;
    assert_true(constant.has_data());
    const Tensor plain = constant.to_contiguous();
    assert_int_equal(plain.nbytes(), values.size() * sizeof(Value));
    assert_memory_equal(plain.data(), values.data(), plain.nbytes());
  };
  read([&](pbf_writer &t) {
    for (const Value value : values) add(t, value);
  });
  read([&](pbf_writer &t) { add_packed(t, values); });
}

void elements_one_by_one_and_in_a_row(void **) {
  namespace f = tensor_field;
  expect_both_forms<double>(
      QTN_FLOAT64, {1.5, -2, 0x1p-900}, [](pbf_writer &t, double v) { t.add_double(f::double_data, v); },
      [](pbf_writer &t, const auto &all) { t.add_packed_double(f::double_data, all.begin(), all.end()); });
  expect_both_forms<std::int64_t>(
      QTN_INT64, {1, -2, 1LL << 60}, [](pbf_writer &t, std::int64_t v) { t.add_int64(f::int64_data, v); },
      [](pbf_writer &t, const auto &all) { t.add_packed_int64(f::int64_data, all.begin(), all.end()); });
  expect_both_forms<std::uint64_t>(
      QTN_UINT64, {1, 2, ~std::uint64_t{0}}, [](pbf_writer &t, std::uint64_t v) { t.add_uint64(f::uint64_data, v); },
      [](pbf_writer &t, const auto &all) { t.add_packed_uint64(f::uint64_data, all.begin(), all.end()); });
  expect_both_forms<std::int32_t>(
      QTN_INT32, {1, -2, 1 << 30}, [](pbf_writer &t, std::int32_t v) { t.add_int32(f::int32_data, v); },
      [](pbf_writer &t, const auto &all) { t.add_packed_int32(f::int32_data, all.begin(), all.end()); });
}

void other_floats_become_float32(void **) {
  expect_values(parse(add_model({raw_tensor<double>("w", QTN_FLOAT64, {2}, {1.5, -2})}).bytes()));
  expect_values(parse(add_model({raw_tensor<std::uint16_t>("w", QTN_FLOAT16, {2}, {0x3E00, 0xC000})}).bytes()));
  expect_values(parse(add_model({raw_tensor<std::uint16_t>("w", QTN_BFLOAT16, {2}, {0x3FC0, 0xC000})}).bytes()));
  const auto halves = [](const std::vector<std::int32_t> &bits) {
    return tensor_text("w", QTN_FLOAT16, {2},
                       [&](pbf_writer &t) { t.add_packed_int32(tensor_field::int32_data, bits.begin(), bits.end()); });
  };
  expect_values(parse(add_model({halves({0x3E00, 0xC000})}).bytes()));
  // The smallest subnormal and the largest number of float16; infinity.
  expect_values(parse(add_model({halves({0x0001, 0x7BFF})}).bytes()), {0x1p-24f, 65504.0f});
  expect_values(parse(add_model({halves({0x8000, 0xFC00})}).bytes()), {-0.0f, -INFINITY});
}

/// What all constants come to has the type that the file says.
void outputs_keep_their_type(void **) {
  for (const std::int32_t type : {QTN_FLOAT16, QTN_BFLOAT16}) {
    const ModelText model{.nodes = {{"Relu", {"w"}, {"y"}, "relu"}},
                          .initializers = {raw_tensor<std::uint16_t>("w", type, {2}, {0x3E00, 0xC000})},
                          .output_type = type};
    assert_int_equal(named(parse(model.bytes()), "w").constant.dtype(), type);
  }
}

void integers_keep_their_type(void **) {
  const auto identity_of = [](const std::string &w) {
    return ModelText{.nodes = {{"Identity", {"w"}, {"y"}, "keep"}}, .initializers = {w}};
  };
  const auto typed = [](std::int32_t type, const std::vector<std::int32_t> &values) {
    return tensor_text("w", type, {static_cast<std::int64_t>(values.size())}, [&](pbf_writer &t) {
      t.add_packed_int32(tensor_field::int32_data, values.begin(), values.end());
    });
  };
  for (const qdtype dtype : {QTN_INT8, QTN_UINT8, QTN_INT16, QTN_UINT16, QTN_INT32, QTN_BOOL}) {
    const bool is_signed = dtype == QTN_INT8 || dtype == QTN_INT16 || dtype == QTN_INT32;
    const std::vector<std::int32_t> values{is_signed ? -1 : 1, 1, 0};
    const Tensor w = named(parse(identity_of(typed(dtype, values)).bytes()), "w").constant;
    assert_int_equal(w.dtype(), dtype);
    const std::vector<std::int64_t> got = int_values(w, "w");
    assert_true(std::equal(got.begin(), got.end(), values.begin(), values.end()));
  }
  const std::string bools = raw_tensor<std::uint8_t>("w", QTN_BOOL, {3}, {0, 1, 200});
  assert_true(int_values(named(parse(identity_of(bools).bytes()), "w").constant, "w") ==
              (std::vector<std::int64_t>{0, 1, 1}));
}

void initializer_that_is_an_input(void **) {
  ModelText model = add_model({float_tensor("w", {2}, kValues)});
  model.inputs = {"x", "w"};
  expect_values(parse(model.bytes()));
}

void constant_nodes(void **) {
  namespace f = onnx::field::attribute;
  const auto constant = [](const std::function<void(pbf_writer &)> &fill) {
    return ModelText{.nodes = {{"Add", {"x", "w"}, {"y"}}, {"Constant", {}, {"w"}, "", "", {write(fill)}}}}.bytes();
  };
  expect_values(parse(constant([](pbf_writer &a) {
    a.add_string(f::name, "value");
    a.add_message(f::t, float_tensor("", {2}, kValues));
    a.add_enum(f::type, 4);
  })));
  expect_values(parse(constant([](pbf_writer &a) {
    a.add_string(f::name, "value_floats");
    for (const float v : kValues) a.add_float(f::floats, v);
    a.add_enum(f::type, 6);
  })));
  expect_values(parse(constant([](pbf_writer &a) {
                  a.add_string(f::name, "value_float");
                  a.add_float(f::f, 1.5f);  // and no `type`, as before IR version 2
                })),
                {1.5f});
  expect_error(QTN_EUNSUPPORTED, {"Constant_1", "value_string"}, [&] {
    parse(constant([](pbf_writer &a) {
      a.add_string(f::name, "value_strings");
      a.add_bytes(f::strings, "text");
      a.add_enum(f::type, 8);
    }));
  });
}

void external_data(void **) {
  const TemporaryFolder folder;
  std::string data(4, '#');
  data.append(reinterpret_cast<const char *>(kValues.data()), 8);
  folder.put("weights.bin", data);
  std::filesystem::create_directory(folder.file("sub"));
  folder.put("sub/w.bin", data);
  const auto load = [&](const std::string &location, const std::string &offset = "4", const std::string &length = "") {
    return onnx::load(
        folder.put("model.onnx", add_model({external_tensor("w", {2}, location, offset, length)}).bytes()));
  };
  expect_values(load("weights.bin"));
  expect_values(load("weights.bin", "4", "8"));
  expect_values(load("sub/w.bin"));
  expect_values(load("./sub/w.bin"));

  const TemporaryFolder outside;
  outside.put("secret.bin", data);
  std::filesystem::create_symlink(outside.file("secret.bin"), folder.file("link.bin"));
  std::filesystem::create_directory_symlink(outside.path(), folder.file("linked"));
  std::filesystem::create_symlink("weights.bin", folder.file("alias.bin"));
  expect_values(load("alias.bin"));
  expect_error(QTN_EFORMAT, {"link.bin", "out of the model's folder"}, [&] { load("link.bin"); });
  expect_error(QTN_EFORMAT, {"linked/secret.bin", "out of the model's folder"}, [&] { load("linked/secret.bin"); });
  expect_error(QTN_EFORMAT, {outside.file("secret.bin"), "inside the model's folder"},
               [&] { load(outside.file("secret.bin")); });
  expect_error(QTN_EFORMAT, {"../x.bin", "inside the model's folder"}, [&] { load("../x.bin"); });
  expect_error(QTN_EFORMAT, {"sub/../weights.bin", "inside the model's folder"}, [&] { load("sub/../weights.bin"); });
  expect_error(QTN_EFORMAT, {"\"w\"", "inside the model's folder"}, [&] { load(""); });
  expect_error(QTN_EIO, {"model.onnx", "\"w\"", "missing.bin", "No such file"}, [&] { load("missing.bin"); });
  expect_error(QTN_EIO, {"sub", "not a regular file"}, [&] { load("sub"); });
  expect_error(QTN_EIO, {"weights.bin", "8 bytes at offset 5", "has 12"}, [&] { load("weights.bin", "5"); });
  expect_error(QTN_EIO, {"offset 18446744073709551615"}, [&] { load("weights.bin", "18446744073709551615"); });
  expect_error(QTN_EFORMAT, {"offset \"-1\""}, [&] { load("weights.bin", "-1"); });
  expect_error(QTN_EFORMAT, {"needs 8 bytes", "said to be 7"}, [&] { load("weights.bin", "4", "7"); });
  expect_error(QTN_EUNSUPPORTED, {"weights.bin", "not loaded from a file"},
               [&] { parse(add_model({external_tensor("w", {2}, "weights.bin")}).bytes()); });
}

void the_file_that_holds_a_tensor(void **) {
  namespace f = onnx::field;
  const auto tensor = [](int location) {
    return tensor_text("w", QTN_FLOAT32, {2}, [&](pbf_writer &t) {
      for (const auto &[key, value] : {std::pair{"offset", "4"}, std::pair{"location", "net.onnx.data"}}) {
        pbf_writer entry(t, f::tensor::external_data);
        entry.add_string(f::entry::key, key);
        entry.add_string(f::entry::value, value);
      }
      t.add_enum(f::tensor::data_location, location);
    });
  };
  const auto holder = [](const std::string &bytes) { return onnx::external_location({bytes.data(), bytes.size()}); };
  assert_string_equal(holder(tensor(1)).c_str(), "net.onnx.data");
  assert_string_equal(holder(tensor(0)).c_str(), "");
}

void data_that_does_not_fit(void **) {
  const auto error = [](const std::vector<std::string> &texts, const std::string &tensor,
                        qstatus status = QTN_EFORMAT) {
    expect_error(status, texts, [&] { parse(add_model({tensor}).bytes()); });
  };
  error({"\"w\"", "2x3", "float32", "24 bytes", "holds 8"}, float_tensor("w", {2, 3}, kValues));
  error({"needs 2 elements", "holds 1"},
        tensor_text("w", QTN_FLOAT32, {2}, [](pbf_writer &t) { t.add_float(tensor_field::float_data, 1); }));
  error({"needs 2 elements", "holds 0"}, tensor_text("w", QTN_INT64, {2}, [](pbf_writer &) {}));
  // Must not allocate before looking at what is there.
  error({"1099511627776", "holds 8"}, float_tensor("w", {1LL << 40}, kValues));
  error({"impossible shape"}, float_tensor("w", {1LL << 40, 1LL << 40}, kValues));
  error({"impossible shape"}, float_tensor("w", {0, 1LL << 40, 1LL << 40}, {}));
  for (const std::int64_t dim : {-1, -2}) error({"negative dimension"}, float_tensor("w", {dim}, kValues));
  error({"rank 9"}, float_tensor("w", {1, 1, 1, 1, 1, 1, 1, 1, 2}, kValues), QTN_EUNSUPPORTED);
  error({"\"w\"", "string"}, tensor_text("w", 8, {0}, [](pbf_writer &) {}), QTN_EUNSUPPORTED);
  error({"complex64"}, raw_tensor<double>("w", 14, {1}, {1}), QTN_EUNSUPPORTED);
  error({"number -3"}, tensor_text("w", -3, {0}, [](pbf_writer &) {}), QTN_EUNSUPPORTED);
  error({"UTF-8"}, float_tensor("w\xff", {2}, kValues));
  error({"control character"}, float_tensor("w\n", {2}, kValues));
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::initializers_in_every_encoding),
      cmocka_unit_test(qtn::elements_one_by_one_and_in_a_row),
      cmocka_unit_test(qtn::other_floats_become_float32),
      cmocka_unit_test(qtn::outputs_keep_their_type),
      cmocka_unit_test(qtn::integers_keep_their_type),
      cmocka_unit_test(qtn::initializer_that_is_an_input),
      cmocka_unit_test(qtn::constant_nodes),
      cmocka_unit_test(qtn::external_data),
      cmocka_unit_test(qtn::the_file_that_holds_a_tensor),
      cmocka_unit_test(qtn::data_that_does_not_fit),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
