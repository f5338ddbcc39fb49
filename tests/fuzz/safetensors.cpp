// SPDX-License-Identifier: Apache-2.0
// Safetensors files. What is read can be written, and is then read again the same.
#include <cstring>

#include "fuzzing.hpp"

namespace fuzz {
namespace {

void require_equal(const qtensor *a, const qtensor *b, const char *what) {
  std::string difference;
  if (!same_bits(a, b, &difference)) fail(std::string(what) + ": " + difference);
  const qquantizer *p = qtensor_quantizer(a), *q = qtensor_quantizer(b);
  require((p == nullptr) == (q == nullptr), std::string(what) + ": a quantizer on one side");
  if (p == nullptr) return;
  require(qquantizer_count(p) == qquantizer_count(q) && qquantizer_scheme(p) == qquantizer_scheme(q) &&
              qquantizer_axis(p) == qquantizer_axis(q) && qquantizer_block_size(p) == qquantizer_block_size(q) &&
              qquantizer_quant_min(p) == qquantizer_quant_min(q) &&
              qquantizer_quant_max(p) == qquantizer_quant_max(q) &&
              std::strcmp(qquantizer_numerics(p), qquantizer_numerics(q)) == 0 &&
              std::memcmp(qquantizer_scales(p), qquantizer_scales(q), 8 * qquantizer_count(p)) == 0 &&
              std::memcmp(qquantizer_zero_points(p), qquantizer_zero_points(q), 8 * qquantizer_count(p)) == 0,
          std::string(what) + ": another quantizer");
}

/// Names as the inspection says them, as far as they are written without escapes.
std::vector<std::string> names_in(const std::string &json) {
  std::vector<std::string> names;
  const std::string key = "\"name\":";
  for (std::size_t at = json.find(key); at != std::string::npos && names.size() < 8; at = json.find(key, at + 1)) {
    const std::size_t begin = json.find('"', at + key.size()), end = json.find('"', begin + 1);
    if (begin == std::string::npos || end == std::string::npos) break;
    names.push_back(json.substr(begin + 1, end - begin - 1));
  }
  return names;
}

void check(const qtensor *t) {
  static const File copy("copy.safetensors");
  char text[256];
  std::size_t length = 0;
  must(qtensor_describe(text, sizeof text, &length, t), "describing");
  if (qtensor_quantizer(t) != nullptr) make<Tensor>(qtensor_dequantize, t);
  must(qtensor_save(t, copy.path()), "writing what was read");
  const Tensor again = make<Tensor>(qtensor_load, copy.path());
  require(again != nullptr, std::string("reading what was written: ") + qerror_message());
  require_equal(again.get(), t, "written and read again");
}

void test(const std::uint8_t *data, std::size_t size) {
  static const File file("x.safetensors");
  file.write({data, size});
  const Blob text = make<Blob>(qtensor_inspect, file.path());
  const Tensor only = make<Tensor>(qtensor_load, file.path());
  if (only) check(only.get());
  if (!text) {
    require(only == nullptr, "a tensor of a file that cannot be inspected");
    return;
  }
  for (const std::string &name : names_in(static_cast<const char *>(qblob_data(text.get())))) {
    const Tensor one = make<Tensor>(qtensor_load_named, file.path(), name.c_str());
    if (!one) continue;
    check(one.get());
    if (qtensor_rank(one.get()) == 0) continue;
    const std::int64_t rows = qtensor_shape(one.get())[0], begin = rows / 3, end = rows - rows / 4;
    const Tensor part = make<Tensor>(qtensor_load_rows, file.path(), name.c_str(), begin, end);
    const Tensor view = make<Tensor>(qtensor_slice, one.get(), 0, begin, end, std::int64_t{1});
    require((part != nullptr) == (view != nullptr), "rows of a file and of its tensor");
    if (part) require_equal(part.get(), view.get(), "rows");
  }
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{256} << 20, fuzz::test)
