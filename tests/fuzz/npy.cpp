// SPDX-License-Identifier: Apache-2.0
// NumPy's files. What is read can be written, and is then read again the same; rows are those of the whole.
#include "fuzzing.hpp"

namespace fuzz {
namespace {

void test(const std::uint8_t *data, std::size_t size) {
  static const File file("x.npy"), copy("copy.npy");
  file.write({data, size});
  const Blob text = make<Blob>(qtensor_inspect, file.path());
  const Tensor t = make<Tensor>(qtensor_load_npy, file.path());
  const Tensor rows = make<Tensor>(qtensor_load_rows, file.path(), nullptr, std::int64_t{0}, std::int64_t{1});
  if (!t) return;
  require(text != nullptr, "a tensor of a file that cannot be inspected");
  std::string difference;
  if (qtensor_rank(t.get()) > 0 && qtensor_shape(t.get())[0] > 0) {
    require(rows != nullptr, std::string("no first row: ") + qerror_message());
    const Tensor view = make<Tensor>(qtensor_slice, t.get(), 0, std::int64_t{0}, std::int64_t{1}, std::int64_t{1});
    if (!same_bits(rows.get(), view.get(), &difference)) fail("the first row: " + difference);
  }
  must(qtensor_save_npy(t.get(), copy.path()), "writing what was read");
  const Tensor again = make<Tensor>(qtensor_load_npy, copy.path());
  require(again != nullptr, std::string("reading what was written: ") + qerror_message());
  if (!same_bits(again.get(), t.get(), &difference)) fail("written and read again: " + difference);
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{256} << 20, fuzz::test)
