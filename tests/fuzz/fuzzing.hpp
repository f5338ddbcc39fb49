// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share: owners of handles, what must hold of every call, files, and numbers out of bytes.
#pragma once

#include <qtensor/qtensor.h>

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace fuzz {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T *handle) const {
    Free(handle);
  }
};

using Tensor = std::unique_ptr<qtensor, Freer<qtensor_free>>;
using Quantizer = std::unique_ptr<qquantizer, Freer<qquantizer_free>>;
using Attrs = std::unique_ptr<qattrs, Freer<qattrs_free>>;
using Config = std::unique_ptr<qconfig, Freer<qconfig_free>>;
using Model = std::unique_ptr<qmodel, Freer<qmodel_free>>;
using Session = std::unique_ptr<qsession, Freer<qsession_free>>;
using Trainer = std::unique_ptr<qtrainer, Freer<qtrainer_free>>;
using Observer = std::unique_ptr<qobserver, Freer<qobserver_free>>;
using Layer = std::unique_ptr<qlayer, Freer<qlayer_free>>;
using Blob = std::unique_ptr<qblob, Freer<qblob_free>>;

/// Ends the process, so that the fuzzer keeps the input, with a line that says why.
[[noreturn]] void fail(const std::string &what);

inline void require(bool holds, const std::string &what) {
  if (!holds) fail(what);
}

/// Whether a call went well. One that did not has a known status, other than that of a defect, and one line that says
/// why.
bool good(qstatus status);

/// Ends this input where memory did.
inline void stop_without_memory(qstatus status) {
  if (status == QTN_ENOMEM) throw std::bad_alloc();
}

/// A call that must go well, whatever the input.
void must(qstatus status, const char *what);

/// make<Model>(qmodel_load, path): a call that returns a handle by its first parameter; an error leaves none.
template <typename Handle, typename Function, typename... Args>
Handle make(Function function, Args &&...args) {
  typename Handle::pointer handle = nullptr;
  const qstatus status = function(&handle, std::forward<Args>(args)...);
  require(good(status) == (handle != nullptr), "a handle and a status that do not go together");
  stop_without_memory(status);
  return Handle(handle);
}

/// Numbers that look random and follow from a seed alone.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>(state_ >> 33);
  }
  float unit() { return static_cast<float>(next() % 65536) / 65536.0F; }

 private:
  std::uint64_t state_;
};

/// The bytes of an input, taken one after another as numbers. Behind the last one come such that follow from the first
/// eight, so that short inputs describe as much as long ones.
class Bytes {
 public:
  Bytes(const std::uint8_t *data, std::size_t size) : at_(data), end_(data + size), more_(seed(data, size)) {}

  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  std::uint8_t byte() { return at_ == end_ ? static_cast<std::uint8_t>(more_.next() >> 8) : *at_++; }
  bool one_in(unsigned n) { return byte() % n == n - 1; }
  /// From low to high, both included; of at most 256 values.
  int in(int low, int high) { return low + byte() % (high - low + 1); }
  std::int64_t number(std::size_t bytes);
  std::span<const std::uint8_t> rest() const { return {at_, end_}; }

  template <typename T, std::size_t n>
  const T &one_of(const T (&items)[n]) {
    return items[byte() % n];
  }

 private:
  static std::uint64_t seed(const std::uint8_t *data, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size && i < 8; ++i) value = value << 8 | data[i];
    return value * 0x9e3779b97f4a7c15ULL;
  }

  const std::uint8_t *at_, *end_;
  Dice more_;
};

/// An integer as attributes have them: mostly small, now and then at the edge of what overflows.
std::int64_t awkward_int(Bytes &bytes);
double awkward_float(Bytes &bytes);

/// A tensor of that type with values that follow from the seed: small, both signs, some zeros; empty handle: refused.
/// Its memory ends with a page, after which there is none.
Tensor filled(qdtype dtype, const std::vector<std::int64_t> &shape, std::uint64_t seed);

std::vector<std::int64_t> shape_of(const qtensor *t);

/// Whether the elements, in row-major order, are the same bits; NaN is NaN whatever its payload. Says where they are
/// not.
bool same_bits(const qtensor *a, const qtensor *b, std::string *difference);

/// Whether it holds neither NaN nor infinity.
bool is_finite(const qtensor *t);

/// A file of this process in memory, whose content changes; gone when the process ends.
class File {
 public:
  explicit File(const std::string &name);
  ~File();
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  const char *path() const { return path_.c_str(); }
  void write(std::span<const std::uint8_t> bytes) const;
  std::vector<std::uint8_t> read() const;

 private:
  std::string path_;
};

}  // namespace fuzz

/// A target: what libFuzzer calls, or the replay of stored inputs. An input for which there is no memory just ends.
#define FUZZ_TARGET(bytes_of_memory, body)                                            \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) { \
    const fuzz::MemoryLimit limit(bytes_of_memory);                                   \
    try {                                                                             \
      body(data, size);                                                               \
    } catch (const std::bad_alloc &) {                                                \
    }                                                                                 \
    return 0;                                                                         \
  }
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);
