// SPDX-License-Identifier: Apache-2.0
#include "shared/checkpoint.hpp"

#include <array>
#include <cstdint>
#include <filesystem>

#include "data/file.hpp"
#include "shared/interrupt.hpp"

namespace tool {

namespace {

constexpr std::array<const char *, 3> kNames{"calibration", "data", "done"};

Tensor bytes_of(const void *data, size_t size) {
  const auto count = static_cast<int64_t>(size);
  return make<Tensor>(qtensor_create, QTN_UINT8, &count, size_t{1}, nullptr, data, size);
}

std::string text_of(const Tensor &tensor) {
  return {static_cast<const char *>(qtensor_data(tensor.get())), qtensor_nbytes(tensor.get())};
}

// The library has calibrations in files of their own; this one lives for a moment.
struct Beside {
  std::string path;
  ~Beside() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

}  // namespace

size_t Checkpoint::resume(qmodel *prepared) const {
  if (!std::filesystem::exists(path_)) return 0;
  std::array<Tensor, 3> parts;
  for (size_t i = 0; i < kNames.size(); ++i) parts[i] = make<Tensor>(qtensor_load_named, path_.c_str(), kNames[i]);
  const auto &[calibration, data, done] = parts;
  if (qtensor_dtype(done.get()) != QTN_INT64 || qtensor_numel(done.get()) != 1)
    throw Failure(path_ + ": is no checkpoint of a calibration");
  if (text_of(data) != data_) throw Failure(path_ + ": is of the data " + text_of(data) + ", and these are " + data_);
  const Beside file{beside()};
  write_file(file.path, text_of(calibration));
  check(qmodel_load_calibration(prepared, file.path.c_str()));
  return static_cast<size_t>(*static_cast<const int64_t *>(qtensor_data(done.get())));
}

void Checkpoint::write(const qmodel *prepared, size_t done, bool always) {
  if (path_.empty() || (!always && Clock::now() - last_ < kInterval)) return;
  const Beside file{beside()};
  write_whole([&] { return qmodel_save_calibration(prepared, file.path.c_str()); });
  const Bytes calibration = read_file(file.path);
  const auto count = static_cast<int64_t>(done);
  const int64_t one = 1;
  const Tensor seen = make<Tensor>(qtensor_create, QTN_INT64, &one, size_t{1}, nullptr, &count, sizeof count);
  const Tensor held = bytes_of(calibration.data(), calibration.size()), data = bytes_of(data_.data(), data_.size());
  const std::array<const qtensor *, 3> tensors{held.get(), data.get(), seen.get()};
  write_whole([&] { return qtensor_save_all(path_.c_str(), kNames.data(), tensors.data(), tensors.size()); });
  last_ = Clock::now();
}

void Checkpoint::remove() const {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

}  // namespace tool
