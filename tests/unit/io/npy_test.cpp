// SPDX-License-Identifier: Apache-2.0
// What .npy files cannot hold, and files that lie. tests/unit/io/golden_test.cpp has the ones that do not.
#include "io/npy.hpp"

#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

constexpr const char *kGood = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

std::string npy(const std::string &header, std::size_t data_bytes = 24, char version = 1) {
  std::string length = {static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8 & 255)};
  if (version > 1) length += {static_cast<char>(header.size() >> 16 & 255), '\0'};
  return "\x93NUMPY" + std::string({version, '\0'}) + length + header + std::string(data_bytes, '\1');
}

std::string replaced(std::string text, const std::string &what, const std::string &by) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) fail_test("no ", what, " in ", text);
  return text.replace(at, what.size(), by);
}

void broken_headers(void **) {
  const TemporaryFolder folder;
  const struct {
    const char *what, *by, *says;
  } cases[] = {
      {"{", "[", "byte 0"},
      {"}", "", "broken"},
      {"}", "} x", "broken"},
      {"'<f4'", "<f4", "byte 10"},
      {"'<f4'", "'<c8'", "'<c8'"},
      {"'<f4'", "'<V2'", "'<V2'"},
      {"'<f4'", "'<tenletterstenletterstenletterstenletters'", "'<tenletterstenletterstenletterst' is not"},
      {"'<f4'", "''", "''"},
      {"'<f4'", "'=f4'", "'=f4'"},
      {"'<f4'", "[('a', '<f4')]", "broken"},
      {"False", "Maybe", "broken"},
      {"(2, 3)", "(2, -3)", "broken"},
      {"(2, 3)", "(2 3)", "broken"},
      {"(2, 3)", "(99999999999999999999,)", "broken"},
      {"(2, 3)", "(4294967296, 4294967296, 2)", "4294967296"},
      {"(2, 3)", "(4611686018427387904,)", "4611686018427387904"},
      {"(2, 3)", "(1, 1, 1, 1, 1, 1, 1, 1, 6)", "8"},
      {"(2, 3)", "(2, 4)", "2x4"},
      {"(2, 3)", "(2, 2)", "16 bytes, 24 are there"},
      {"'shape'", "'size'", "'size'"},
      {"'shape'", "'descr'", "'descr'"},
      {"'shape'", "'fortran_order'", "a second or unknown key 'fortran_order'"},
      {"), }", "), 'shape': (6,), }", "a second or unknown key 'shape'"},
      {"), }", "), 'shape", "the header is broken at byte 58"},
      {"), }", "), ", "the header is broken at byte 58"},
      {"'descr': '<f4', ", "", "lacks 'descr'"},
      {"'fortran_order': False, ", "", "lacks 'fortran_order'"},
      {", 'shape': (2, 3)", "", "lacks 'shape'"},
  };
  for (const auto &c : cases) {
    const std::string path = folder.put("x.npy", npy(replaced(kGood, c.what, c.by)));
    expect_error(QTN_EFORMAT, {path, c.says}, [&] { io::open_npy(path); });
  }
}

void headers_up_to_64_KiB(void **) {
  const TemporaryFolder folder;
  const std::string good = kGood;
  for (const std::size_t size : {std::size_t{65535}, std::size_t{65536}}) {
    const std::string header = good + std::string(size - good.size(), ' ');
    const io::TensorFile file = io::open_npy(folder.put("x.npy", npy(header, 24, 2)));
    assert_int_equal(file.tensors().size(), 1);
  }
  const std::string large = good + std::string(65537 - good.size(), ' ');
  expect_error(QTN_EFORMAT, "65537", [&] { io::open_npy(folder.put("x.npy", npy(large, 24, 2))); });
}

void cut_files(void **) {
  const TemporaryFolder folder;
  const std::string whole = npy(kGood);
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_error(QTN_EFORMAT, "x.npy", [&] { io::open_npy(folder.put("x.npy", whole.substr(0, size))); });
  for (const char version : {'\0', '\4', '\xff'})
    expect_error(QTN_EFORMAT, "version", [&] { io::open_npy(folder.put("x.npy", npy(kGood, 24, version))); });
  expect_error(QTN_EIO, "No such file", [&] { io::open_npy(folder.file("none.npy")); });
  expect_error(QTN_EIO, "directory", [&] { io::open_npy(folder.file("")); });
}

/// NumPy's own files end with a comma and spaces, those of others need not.
void other_spellings_of_a_header(void **) {
  const TemporaryFolder folder;
  for (const std::string &header :
       {replaced(kGood, "), }", ")}"), replaced(kGood, "'descr'", "\"descr\""), replaced(kGood, "(2, 3)", "(2,3,)"),
        replaced(kGood, "False", "True"), replaced(kGood, "}", "}\n\t "), replaced(kGood, "<f4", "|f4")}) {
    const io::TensorFile file = io::open_npy(folder.put("x.npy", npy(header)));
    assert_true(file.only().shape == (Shape{2, 3}) && file.only().dtype == QTN_FLOAT32);
    assert_true(file.only().fortran_order == (header.find("True") != std::string::npos));
  }
}

void no_bool_but_0_and_1(void **) {
  const TemporaryFolder folder;
  const io::TensorFile file =
      io::open_npy(folder.put("x.npy", npy(replaced(replaced(kGood, "<f4", "|b1"), "(2, 3)", "(2,)"), 0) + "\x02\xff"));
  assert_true(bytes_of(file.read(file.only())) == "\1\1");
}

void what_npy_does_not_hold(void **) {
  const TemporaryFolder folder;
  const auto q = std::make_shared<Quantizer>(QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, std::vector{0.5},
                                             std::vector<std::int64_t>{0}, Numerics::fbgemm);
  expect_error(QTN_EDTYPE, {"quantized", "qtensor_int_repr"},
               [&] { io::save_npy(folder.file("x.npy"), Tensor(QTN_INT8, Shape{2}, q)); });
  expect_error(QTN_EUNSUPPORTED, "bfloat16",
               [&] { io::save_npy(folder.file("x.npy"), Tensor(QTN_BFLOAT16, Shape{2})); });
  assert_int_equal(folder.count(), 0);
}

void views_are_written_in_logical_order(void **) {
  const TemporaryFolder folder;
  const Tensor t = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  const std::int32_t axes[] = {1, 0};
  io::save_npy(folder.file("x.npy"), t.permute(axes));
  const io::TensorFile file = io::open_npy(folder.file("x.npy"));
  expect_equal(file.read(file.only()), floats({3, 2}, {0, 3, 1, 4, 2, 5}));
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::broken_headers),
      cmocka_unit_test(qtn::headers_up_to_64_KiB),
      cmocka_unit_test(qtn::cut_files),
      cmocka_unit_test(qtn::other_spellings_of_a_header),
      cmocka_unit_test(qtn::no_bool_but_0_and_1),
      cmocka_unit_test(qtn::what_npy_does_not_hold),
      cmocka_unit_test(qtn::views_are_written_in_logical_order),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
