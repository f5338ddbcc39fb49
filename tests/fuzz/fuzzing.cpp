// SPDX-License-Identifier: Apache-2.0
#include "fuzzing.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "pages.hpp"

namespace fuzz {

void fail(const std::string &what) {
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

bool good(qstatus status) {
  if (status == QTN_OK) return true;
  const std::string message = qerror_message();
  require(status > 0 && status <= QTN_ECANCELED, "unknown status " + std::to_string(status));
  require(status != QTN_EINTERNAL, "a defect of the library: " + message);
  require(!message.empty(), std::string(qstatus_name(status)) + " without a message");
  require(message.find('\n') == std::string::npos, "a message of several lines: " + message);
  return false;
}

void must(qstatus status, const char *what) {
  stop_without_memory(status);
  if (!good(status)) fail(std::string(what) + ": " + qerror_message());
}

std::int64_t Bytes::number(std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | byte();
  const unsigned unused = static_cast<unsigned>(64 - 8 * bytes);
  return std::bit_cast<std::int64_t>(value << unused) >> unused;
}

std::int64_t awkward_int(Bytes &bytes) {
  const std::uint8_t kind = bytes.byte();
  if (kind < 176) return kind % 11 - 3;
  if (kind < 208) return bytes.number(1);
  if (kind < 224) return bytes.number(2);
  if (kind < 232) return bytes.number(8);
  constexpr std::int64_t kEdges[] = {INT32_MAX,
                                     INT32_MIN,
                                     INT64_MAX,
                                     INT64_MIN,
                                     std::int64_t{1} << 31,
                                     std::int64_t{1} << 32,
                                     std::int64_t{1} << 62,
                                     INT64_MAX - 1};
  return kEdges[kind % 8];
}

double awkward_float(Bytes &bytes) {
  const std::uint8_t kind = bytes.byte();
  if (kind < 200) return (kind - 100) / 16.0;
  if (kind < 224) return std::bit_cast<float>(static_cast<std::uint32_t>(bytes.number(4)));
  constexpr double kEdges[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-45, 3e38, 1e300};
  return kEdges[kind % 8];
}

Tensor filled(qdtype dtype, const std::vector<std::int64_t> &shape, std::uint64_t seed) {
  Tensor t = make<Tensor>(qtensor_create, dtype, shape.data(), shape.size(), nullptr, nullptr, std::size_t{0});
  if (!t) return t;
  void *data = nullptr;
  must(qtensor_data_mut(&data, t.get()), "data of a new tensor");
  const auto count = static_cast<std::size_t>(qtensor_numel(t.get()));
  Dice dice(seed);
  // Small numbers, as in ONNX's own tests; what is integer is mostly an index, a size, or a code.
  const auto fill = [&](auto zero, auto &&value) {
    auto *items = static_cast<decltype(zero) *>(data);
    for (std::size_t i = 0; i < count; ++i) items[i] = static_cast<decltype(zero)>(value());
  };
  switch (dtype) {
    case QTN_FLOAT32:
      fill(float{}, [&] { return dice.next() % 16 == 0 ? 0.0F : dice.unit() * 3 - 1.3F; });
      break;
    case QTN_FLOAT64:
      fill(double{}, [&] { return dice.unit() * 3 - 1.3F; });
      break;
    case QTN_INT64:
      fill(std::int64_t{}, [&] { return static_cast<std::int64_t>(dice.next() % 7) - 2; });
      break;
    case QTN_INT32:
      fill(std::int32_t{}, [&] { return static_cast<std::int32_t>(dice.next() % 7) - 2; });
      break;
    case QTN_BOOL:
      fill(std::uint8_t{}, [&] { return dice.next() % 2; });
      break;
    case QTN_FLOAT16:
    case QTN_BFLOAT16:
      fill(std::uint16_t{}, [&] { return 0x3c00 + dice.next() % 1024; });
      break;
    default:  // integers of up to 16 bits and float8: any bytes
      for (std::size_t i = 0; i < qtensor_nbytes(t.get()); ++i)
        static_cast<std::uint8_t *>(data)[i] = static_cast<std::uint8_t>(dice.next());
  }
  return at_the_end_of_a_page(t.get());
}

std::vector<std::int64_t> shape_of(const qtensor *t) {
  const std::int64_t *shape = qtensor_shape(t);
  return {shape, shape + qtensor_rank(t)};
}

namespace {

/// Floats of fewer bits as float32, other elements as they are.
Tensor widened(const qtensor *t) {
  switch (qtensor_dtype(t)) {
    case QTN_FLOAT16:
    case QTN_BFLOAT16:
    case QTN_FLOAT8E4M3FN:
    case QTN_FLOAT8E5M2: {
      const Attrs attrs = make<Attrs>(qattrs_create);
      must(qattrs_set_int(attrs.get(), "to", 1), "to");  // ONNX's number of float32
      qtensor *wide = nullptr;
      must(qop_run(&wide, 1, "Cast", &t, 1, attrs.get()), "Cast");
      return Tensor(wide);
    }
    default: {
      qtensor *same = nullptr;
      must(qtensor_contiguous(&same, t), "contiguous");
      return Tensor(same);
    }
  }
}

}  // namespace

namespace {

/// The bits of the last byte of a tensor that belong to elements.
std::uint8_t last_bits(const qtensor *t) {
  unsigned bits = 8;
  switch (qtensor_dtype(t)) {
    case QTN_UINT2:
    case QTN_INT2:
      bits = 2;
      break;
    case QTN_UINT4:
    case QTN_INT4:
    case QTN_FLOAT4E2M1:
      bits = 4;
      break;
    default:
      break;
  }
  const auto used = static_cast<unsigned>(static_cast<std::uint64_t>(qtensor_numel(t)) * bits % 8);
  return static_cast<std::uint8_t>(used == 0 ? 0xFF : (1U << used) - 1);
}

}  // namespace

bool is_finite(const qtensor *t) {
  const Tensor wide = widened(t);
  const auto all = [&](auto zero) {
    const auto *x = static_cast<const decltype(zero) *>(qtensor_data(wide.get()));
    return std::all_of(x, x + qtensor_nbytes(wide.get()) / sizeof zero, [](auto v) { return std::isfinite(v); });
  };
  switch (qtensor_dtype(wide.get())) {
    case QTN_FLOAT32:
      return all(float{});
    case QTN_FLOAT64:
      return all(double{});
    default:
      return true;
  }
}

bool same_bits(const qtensor *a, const qtensor *b, std::string *difference) {
  if (qtensor_dtype(a) != qtensor_dtype(b)) {
    *difference = std::string(qdtype_name(qtensor_dtype(a))) + " and " + qdtype_name(qtensor_dtype(b));
    return false;
  }
  if (shape_of(a) != shape_of(b)) {
    *difference = "other shapes";
    return false;
  }
  const Tensor left = widened(a), right = widened(b);
  const std::size_t nbytes = qtensor_nbytes(left.get());
  if (nbytes == 0 || std::memcmp(qtensor_data(left.get()), qtensor_data(right.get()), nbytes) == 0) return true;
  const auto compare = [&](auto zero) {
    using T = decltype(zero);
    const auto *x = static_cast<const T *>(qtensor_data(left.get())),
               *y = static_cast<const T *>(qtensor_data(right.get()));
    for (std::size_t i = 0; i < nbytes / sizeof(T); ++i)
      if (std::memcmp(x + i, y + i, sizeof(T)) != 0) {
        if constexpr (sizeof(T) == 1)
          if (i + 1 == nbytes && ((x[i] ^ y[i]) & last_bits(left.get())) == 0) continue;
        if constexpr (std::is_floating_point_v<T>)
          if (std::isnan(x[i]) && std::isnan(y[i])) continue;
        char text[128];
        std::snprintf(text, sizeof text, "element %zu is %.17g and %.17g", i, static_cast<double>(x[i]),
                      static_cast<double>(y[i]));
        *difference = text;
        return false;
      }
    return true;
  };
  switch (qtensor_dtype(left.get())) {
    case QTN_FLOAT32:
      return compare(float{});
    case QTN_FLOAT64:
      return compare(double{});
    case QTN_INT64:
      return compare(std::int64_t{});
    case QTN_INT32:
      return compare(std::int32_t{});
    default:
      return compare(std::uint8_t{});
  }
}

namespace {

/// One for the process, in memory where there is such a place.
const std::string &folder() {
  static const struct Folder {
    std::string path;
    Folder() {
      const std::filesystem::path memory = "/dev/shm";
      const auto base = std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path();
      path = (base / ("qtensor-fuzz-" + std::to_string(getpid()))).string();
      std::filesystem::create_directories(path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  } instance;
  return instance.path;
}

}  // namespace

File::File(const std::string &name) : path_(folder() + "/" + name) {}

File::~File() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

void File::write(std::span<const std::uint8_t> bytes) const {
  std::ofstream file(path_, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  require(static_cast<bool>(file.flush()), "cannot write " + path_);
}

std::vector<std::uint8_t> File::read() const {
  std::ifstream file(path_, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace fuzz
