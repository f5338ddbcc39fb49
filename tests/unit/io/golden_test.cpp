// SPDX-License-Identifier: Apache-2.0
// Files that NumPy and the safetensors package wrote are read as they meant them, and written again to the byte.
#include "golden.hpp"

#include "io/npy.hpp"
#include "io/safetensors.hpp"
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;
using Json = nlohmann::json;

const std::string kFolder = QTN_GOLDEN_DIR "/files/";

std::string bytes_from_hex(const std::string &hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

void check_tensor(const Tensor &t, const Json &wanted) {
  assert_string_equal(dtype_name(t.dtype()), wanted.at("dtype").get<std::string>().c_str());
  const auto dims = wanted.at("shape").get<std::vector<std::int64_t>>();
  assert_true(t.shape() == Shape(dims));
  if (bytes_of(t) != bytes_from_hex(wanted.at("bytes"))) fail_test("elements differ: ", wanted.dump());
}

void npy_files(void **) {
  const TemporaryFolder folder;
  const Json all = read_json(kFolder + "files.json");
  for (const Json &c : all.at("npy")) {
    const std::string path = kFolder + c.at("file").get<std::string>();
    const io::TensorFile file = io::open_npy(path);
    const Tensor t = file.read(file.only());
    check_tensor(t, c);
    if (t.rank() > 0 && t.dim(0) > 1)
      assert_true(bytes_of(file.read_rows(file.only(), 1, 2)) == bytes_of(t.slice(0, 1, 2, 1)));
    if (!c.at("plain")) continue;
    io::save_npy(folder.file("again.npy"), t);
    if (content_of(folder.file("again.npy")) != content_of(path)) fail_test(path, " is written otherwise");
  }
}

void safetensors_files(void **) {
  const TemporaryFolder folder;
  const Json all = read_json(kFolder + "files.json");
  for (const Json &c : all.at("safetensors")) {
    const std::string path = kFolder + c.at("file").get<std::string>();
    const Json &wanted = c.at("tensors");
    const io::TensorFile file = io::open_safetensors(path);
    assert_int_equal(file.tensors().size(), wanted.size());
    std::vector<Tensor> tensors;
    std::vector<io::NamedTensor> named;
    for (const Json &w : wanted) tensors.push_back(file.read(file.named(w.at("name").get<std::string>())));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      check_tensor(tensors[i], wanted[i]);
      named.push_back({wanted[i].at("name"), &tensors[i]});
    }
    if (path.ends_with("metadata.safetensors")) continue;  // metadata of others is not kept
    io::save_safetensors(folder.file("again.safetensors"), named);
    if (content_of(folder.file("again.safetensors")) != content_of(path)) fail_test(path, " is written otherwise");
  }
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::npy_files), cmocka_unit_test(qtn::safetensors_files)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
