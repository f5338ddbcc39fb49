// SPDX-License-Identifier: Apache-2.0
// Quantized tensors come back exactly, and files that lie are refused. tests/unit/io/golden_test.cpp has files of
// others.
#include "io/safetensors.hpp"

#include <cmath>

#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

std::string file_of(const std::string &header, std::size_t data_bytes) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> 8 * i & 255);
  return length + header + std::string(data_bytes, '\1');
}

QuantizerPtr grid(qdtype dtype, qscheme scheme, std::int32_t axis, std::vector<double> scales,
                  std::vector<std::int64_t> zeros, Numerics numerics) {
  return std::make_shared<Quantizer>(dtype, scheme, axis, std::move(scales), std::move(zeros), numerics);
}

void quantizers_round_trip(void **) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.safetensors");
  Tensor bytes(QTN_UINT8, Shape{2, 3}, grid(QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, {1.0 / 3}, {255}, Numerics::onnx));
  Tensor channels(
      QTN_INT8, Shape{2, 3},
      grid(QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, 1, {1, 1e-30, std::nextafter(0.1, 1)}, {0, 0, 0}, Numerics::fbgemm));
  Tensor words(QTN_INT32, Shape{}, grid(QTN_INT32, QTN_PER_TENSOR_SYMMETRIC, 0, {3e38}, {INT32_MIN}, Numerics::onnx));
  std::memset(bytes.data(), 7, bytes.nbytes());
  std::memset(channels.data(), -7, channels.nbytes());
  std::memset(words.data(), 1, words.nbytes());
  const Tensor plain = floats({2}, {1, 2});
  const std::vector<io::NamedTensor> all = {{"b", &bytes}, {"c \"\n\xc3\xa9", &channels}, {"", &words}, {"p", &plain}};
  io::save_safetensors(path, all);
  assert_int_equal(folder.count(), 1);
  const io::TensorFile file = io::open_safetensors(path);
  assert_int_equal(file.tensors().size(), 4);
  for (const auto &[name, t] : all) expect_equal(file.read(file.named(name)), *t);
  // Scales are cut with the rows.
  const std::int32_t turn[] = {1, 0};
  const Tensor turned = channels.permute(turn);
  io::save_safetensors(path, {{{"t", &turned}}});
  const io::TensorFile again = io::open_safetensors(path);
  expect_equal(again.read_rows(again.only(), 1, 3), turned.slice(0, 1, 3, 1));
  expect_error(QTN_EINVAL, {path, "rows 2 to 4", "3x2"}, [&] { again.read_rows(again.only(), 2, 4); });
  expect_error(QTN_EINVAL, "rows 2 to 1", [&] { again.read_rows(again.only(), 2, 1); });
  expect_error(QTN_EINVAL, "rows -1", [&] { again.read_rows(again.only(), -1, 1); });
  expect_error(QTN_EINVAL, "scalar", [&] { file.read_rows(file.named(""), 0, 1); });
}

constexpr const char *kTwo = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"I16","shape":[2,1],"data_offsets":[8,12]}})";

void broken_headers(void **) {
  const TemporaryFolder folder;
  const struct {
    const char *what, *by, *says;
  } cases[] = {
      {"\"a\":{", "\"a\":[", "\"a\""},
      {"\"b\":{", "\"a\":{", "\"a\" is there twice"},
      {"\"shape\":[2]", "\"shape\":[2],\"shape\":[2]", "\"shape\" is there twice"},
      {"F32", "F33", "\"F33\" is not one of"},
      {"\"F32\"", "32", "dtype"},
      {"[2]", "[-2]", "negative"},
      {"[2]", "[2.0]", "shape"},
      {"[2]", "[\"2\"]", "\"shape\""},
      {"[2]", "[[2]]", "\"shape\": a list"},
      {"[2]", "null", "null"},
      {"[2]", "[true]", "boolean"},
      {"[2]", "[3]", "span 8 bytes, a 3 tensor has 3 times 4"},
      {"[2]", "[1,1,1,1,1,1,1,1,2]", "8"},
      {"[2]", "[4611686018427387904]", "4611686018427387904"},
      {"[2]", "[4611686018427387904,4]", "4611686018427387904"},
      {"[2]", "[18446744073709551615]", "63 bits"},
      {"[0,8]", "[0,8,8]", "data_offsets"},
      {"[0,8]", "[8,0]", "data_offsets"},
      {"[0,8]", "[-8,0]", "data_offsets"},
      {"[0,8]", "[0,1e99]", "data_offsets"},
      {"[0,8]", "[0,1e999]", "JSON"},
      {"[0,8]", "[0,9]", "span 9"},
      {"[8,12]", "[4,8]", "\"b\" begins at byte 4 of the data, not where others end, at 8"},
      {"[8,12]", "[10,14]", "2 are there"},
      {"[8,12]", "[9223372036854775803,9223372036854775807]", "0 are there"},
      {"\"dtype\":\"I16\",", "", "\"dtype\" is missing"},
      {"\"dtype\":\"I16\"", "\"dtype\":\"I16\",\"more\":1", "\"more\""},
      {"[2,1]", "[1,1]", "\"b\""},
      {"\"b\":{", "\"__metadata__\":\"x\",\"b\":{", "__metadata__"},
      {"}}", "}", "JSON"},
      {"}}", "}}}", "JSON"},
      {"\"b\"", "\"\xff\"", "JSON"},
  };
  for (const auto &c : cases) {
    std::string header = kTwo;
    const std::size_t at = header.find(c.what);
    if (at == std::string::npos) fail_test("no ", c.what);
    const std::string path = folder.put("x.safetensors", file_of(header.replace(at, std::strlen(c.what), c.by), 12));
    expect_error(QTN_EFORMAT, {path, c.says}, [&] { io::open_safetensors(path); });
  }
  io::open_safetensors(folder.put("x.safetensors", file_of(kTwo, 12)));
}

void cut_and_padded_files(void **) {
  const TemporaryFolder folder;
  const std::string whole = file_of(kTwo, 12);
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_error(QTN_EFORMAT, "x.safetensors",
                 [&] { io::open_safetensors(folder.put("x.safetensors", whole.substr(0, size))); });
  expect_error(QTN_EFORMAT, "end at byte 12 of 13", [&] { io::open_safetensors(folder.put("x", whole + "x")); });
  std::string hole = kTwo;
  hole.replace(hole.find("[8,12]"), 6, "[9,13]");
  expect_error(QTN_EFORMAT, "\"b\" begins at byte 9 of the data, not where others end, at 8",
               [&] { io::open_safetensors(folder.put("x", file_of(hole, 13))); });
  std::string huge = whole;
  huge.replace(0, 8, 8, '\xff');
  expect_error(QTN_EFORMAT, "18446744073709551615", [&] { io::open_safetensors(folder.put("x", huge)); });
  for (const char *text : {"", "[]", "1", "\"x\"", "null", "{\"a\":1}", "{\"a\":{\"b\":{}}}", "{\"a\":{\"b\":[{}]}}"})
    expect_error(QTN_EFORMAT, "header", [&] { io::open_safetensors(folder.put("x", file_of(text, 0))); });
  // Depth costs no stack.
  expect_error(QTN_EFORMAT, "header",
               [&] { io::open_safetensors(folder.put("x", file_of(std::string(1000000, '['), 0))); });
}

void broken_quantizers(void **) {
  const TemporaryFolder folder;
  const std::string good =
      R"({"a":{"dtype":"int8","scheme":"per_channel_affine","axis":0,"scales":[0.5,1.0],"zero_points":[0,1],"numerics":"onnx","block_size":0,"quant_min":-128,"quant_max":127}})";
  const auto write = [&](std::string ours) {
    std::string escaped;
    for (const char c : ours) escaped += c == '"' ? "\\\"" : std::string(1, c);
    return folder.put("x.safetensors", file_of("{\"__metadata__\":{\"qtensor\":\"" + escaped +
                                                   R"("},"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}})",
                                               2));
  };
  assert_true(io::open_safetensors(write(good)).only().quantizer->per_channel());
  const struct {
    const char *what, *by, *says;
  } cases[] = {
      {"int8", "uint8", "\"uint8\" cannot be stored as int8"},
      {"int8", "int9", "int9"},
      {"\"dtype\":\"int8\",", "", "dtype"},
      {"per_channel_affine", "per_cow", "per_cow"},
      {"per_channel_affine", "per_tensor_affine", "1 scale"},
      {"\"axis\":0", "\"axis\":1", "axis"},
      {"\"axis\":0", "\"axis\":8", "axis 8"},
      {"\"axis\":0", "\"axis\":-1", "axis -1"},
      {"\"axis\":0", "\"axis\":0.5", "axis"},
      {"\"axis\":0,", "", "\"axis\" is missing"},
      {"[0.5,1.0]", "[0.5]", "1 scales"},
      {"[0.5,1.0]", "[0.5,-1.0]", "-1"},
      {"[0.5,1.0]", "[0.5,1e300]", "1e+300"},
      {"[0.5,1.0]", "0.5", "scales"},
      {"[0.5,1.0],\"zero_points\":[0,1]", "[0.5,1.0,2.0],\"zero_points\":[0,1,2]", "3 scales"},
      {"[0,1]", "[0,128]", "128"},
      {"onnx", "exact", "exact"},
      {"\"block_size\":0", "\"block_size\":2", "block size 2"},
      {"-128", "-129", "[-129, 127]"},
      {"\"quant_max\":127", "\"quant_max\":0", "zero_point 1"},
      {"\"axis\"", "\"more\":1,\"axis\"", "more"},
      {"{\"a\"", "[\"a\"", "metadata"},
  };
  for (const auto &c : cases) {
    std::string ours = good;
    const std::size_t at = ours.find(c.what);
    if (at == std::string::npos) fail_test("no ", c.what);
    const std::string path = write(ours.replace(at, std::strlen(c.what), c.by));
    expect_error(QTN_EFORMAT, {path, c.says}, [&] { io::open_safetensors(path); });
  }
}

/// Numbers of less than eight bits take a byte each.
void codes_that_no_type_has(void **) {
  const TemporaryFolder folder;
  const auto read = [&](const char *stored, const char *dtype, const std::string &bytes) {
    const std::string header =
        cat("{\"__metadata__\":{\"qtensor\":\"{\\\"a\\\":{\\\"dtype\\\":\\\"", dtype, "\\\"}}\"},\"a\":{\"dtype\":\"",
            stored, "\",\"shape\":[2],\"data_offsets\":[0,2]}}");
    std::string file = file_of(header, 0) + bytes;
    const io::TensorFile opened = io::open_safetensors(folder.put("x", file));
    return opened.read(opened.only());
  };
  assert_true(int_values(read("I8", "int4", {7, -8}), "x") == (Ints{7, -8}));
  assert_true(int_values(read("U8", "uint2", {3, 0}), "x") == (Ints{3, 0}));
  assert_int_equal(read("U8", "float4_e2m1", {15, 0}).packed().load(0), 15);
  const auto refuse = [&](const char *stored, const char *dtype, const std::string &bytes, const char *says) {
    expect_error(QTN_EFORMAT, cat(folder.file("x"), ": ", says), [&] { read(stored, dtype, bytes); });
  };
  refuse("I8", "int4", {0, 8}, "8 is no int4");
  refuse("I8", "int4", {-9, 0}, "-9 is no int4");
  refuse("U8", "uint2", {4, 0}, "4 is no uint2");
  refuse("U8", "float4_e2m1", {15, 16}, "16 is no pattern of float4_e2m1");
}

void names(void **) {
  const TemporaryFolder folder;
  const Tensor t = floats({1}, {1});
  const std::string path = folder.file("x.safetensors");
  expect_error(QTN_EINVAL, "\"a\" comes twice", [&] {
    io::save_safetensors(path, std::vector<io::NamedTensor>{{"a", &t}, {"a", &t}});
  });
  expect_error(QTN_EINVAL, "__metadata__", [&] { io::save_safetensors(path, {{{"__metadata__", &t}}}); });
  expect_error(QTN_EINVAL, "UTF-8", [&] { io::save_safetensors(path, {{{"a\xff", &t}}}); });
  assert_int_equal(folder.count(), 0);
  io::save_safetensors(path, std::vector<io::NamedTensor>{{"a", &t}, {"b", &t}});
  const io::TensorFile file = io::open_safetensors(path);
  expect_error(QTN_EINVAL, {path, "2 tensors", "\"a\", \"b\""}, [&] { file.only(); });
  expect_error(QTN_EINVAL, {path, "no tensor \"c\"", "\"a\", \"b\""}, [&] { file.named("c"); });
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::quantizers_round_trip),  cmocka_unit_test(qtn::broken_headers),
      cmocka_unit_test(qtn::cut_and_padded_files),   cmocka_unit_test(qtn::broken_quantizers),
      cmocka_unit_test(qtn::codes_that_no_type_has), cmocka_unit_test(qtn::names),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
