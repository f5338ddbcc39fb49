// SPDX-License-Identifier: Apache-2.0
#include "data/images.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "data/array.hpp"

namespace tool {

namespace {

using Three = std::array<float, 3>;

Three three_numbers(const std::string &option, const std::string &text, float otherwise) {
  Three values = {otherwise, otherwise, otherwise};
  if (text.empty()) return values;
  const char *at = text.data(), *end = at + text.size();
  for (size_t i = 0;; ++i) {
    const auto [next, error] = std::from_chars(at, end, values[i]);
    const bool last = next == end && (i == 2 || i == 0);
    if (error != std::errc() || !std::isfinite(values[i]) || (!last && (i == 2 || next == end || *next != ',')))
      throw UsageError(option + " " + text + ": needs three numbers, one for each channel, or one for all");
    if (last) {
      if (i == 0) values.fill(values[0]);
      return values;
    }
    at = next + 1;
  }
}

// Where an output pixel lies between two input pixels: half-pixel centres, edges repeated.
struct Tap {
  size_t low, high;
  float part;  // of `high`
};

std::vector<Tap> taps(size_t from, size_t to) {
  std::vector<Tap> result(to);
  for (size_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    const double inside = std::clamp(centre, 0.0, static_cast<double>(from - 1));
    const auto low = static_cast<size_t>(inside);
    result[i] = {low, std::min(low + 1, from - 1), static_cast<float>(inside - static_cast<double>(low))};
  }
  return result;
}

class ImageSamples : public Samples {
 public:
  ImageSamples(const std::string &folder, const DataOptions &options, const qmodel *model)
      : mean_(three_numbers("--mean", options.mean, 0)),
        std_(three_numbers("--std", options.std, 1)),
        type_(qmodel_input_dtype(model, 0)),
        nhwc_(options.layout == "nhwc"),
        bgr_(options.channels == "bgr") {
    if (std::count(std_.begin(), std_.end(), 0.0F) != 0) throw UsageError("--std " + options.std + ": must not be 0");
    choose_size(options.size, model);
    list(folder);
  }

  size_t count() const override { return paths_.size(); }
  std::vector<std::string> files() const override { return paths_; }

  std::vector<Tensor> read(size_t first, size_t count) const override {
    const size_t elements = 3 * width_ * height_;
    std::vector<float> values(count * elements);
    for (size_t i = 0; i < count; ++i) fill(values.data() + i * elements, decode_image(paths_[first + i]));
    const auto n = static_cast<int64_t>(count), h = static_cast<int64_t>(height_), w = static_cast<int64_t>(width_);
    const std::array<int64_t, 4> shape =
        nhwc_ ? std::array<int64_t, 4>{n, h, w, 3} : std::array<int64_t, 4>{n, 3, h, w};
    std::vector<Tensor> tensors;
    tensors.push_back(of_input(make<Tensor>(qtensor_create, QTN_FLOAT32, shape.data(), shape.size(), nullptr,
                                            values.data(), values.size() * sizeof(float)),
                               type_));
    return tensors;
  }

 private:
  void choose_size(const std::string &text, const qmodel *model) {
    if (text.empty()) {
      const size_t at = nhwc_ ? 1 : 2;
      const int64_t *shape = qmodel_input_rank(model, 0) == 4 ? qmodel_input_shape(model, 0) : nullptr;
      if (shape == nullptr || shape[at] <= 0 || shape[at + 1] <= 0)
        throw UsageError("images need --size WxH: the model does not fix the size of its input");
      height_ = static_cast<size_t>(shape[at]);
      width_ = static_cast<size_t>(shape[at + 1]);
      return;
    }
    const char *end = text.data() + text.size();
    const auto [x, width_error] = std::from_chars(text.data(), end, width_);
    const auto [stop, height_error] = std::from_chars(std::min(x + 1, end), end, height_);
    constexpr size_t kMax = 16384;
    if (width_error != std::errc() || height_error != std::errc() || *x != 'x' || stop != end || width_ == 0 ||
        height_ == 0 || width_ > kMax || height_ > kMax)
      throw UsageError("--size " + text + ": needs WIDTHxHEIGHT in pixels, for example 224x224");
  }

  void list(const std::string &folder) {
    std::error_code error;
    std::filesystem::directory_iterator at, end;
    do {
      at = std::filesystem::directory_iterator(folder, error);
    } while (error == std::errc::interrupted);
    for (; !error && at != end; at.increment(error)) {
      std::string extension = at->path().extension().string();
      std::transform(extension.begin(), extension.end(), extension.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      if (extension == ".jpg" || extension == ".jpeg" || extension == ".png") paths_.push_back(at->path().string());
    }
    if (error) throw Failure(folder + ": cannot be listed: " + error.message());
    if (paths_.empty()) throw Failure(folder + ": holds no .jpg, .jpeg or .png file");
    std::sort(paths_.begin(), paths_.end());
  }

  void fill(float *out, const Image &image) const {
    const std::vector<Tap> columns = taps(image.width, width_), rows = taps(image.height, height_);
    for (size_t y = 0; y < height_; ++y) {
      const unsigned char *upper = image.rgb.data() + 3 * image.width * rows[y].low;
      const unsigned char *lower = image.rgb.data() + 3 * image.width * rows[y].high;
      for (size_t x = 0; x < width_; ++x) {
        const Tap &tap = columns[x];
        for (size_t c = 0; c < 3; ++c) {
          const size_t from = bgr_ ? 2 - c : c;
          const auto across = [&](const unsigned char *row) {
            const auto left = static_cast<float>(row[3 * tap.low + from]);
            return left + (static_cast<float>(row[3 * tap.high + from]) - left) * tap.part;
          };
          const float top = across(upper);
          const float pixel = top + (across(lower) - top) * rows[y].part;
          const size_t to = nhwc_ ? (y * width_ + x) * 3 + c : (c * height_ + y) * width_ + x;
          out[to] = (pixel - mean_[c]) / std_[c];
        }
      }
    }
  }

  Three mean_, std_;
  qdtype type_;  // of the input
  bool nhwc_, bgr_;
  size_t width_ = 0, height_ = 0;
  std::vector<std::string> paths_;
};

}  // namespace

std::unique_ptr<Samples> open_images(const std::string &folder, const DataOptions &options, const qmodel *model) {
  if (qmodel_input_count(model) != 1)
    throw Failure(folder + ": a folder of images is data for one input, and the model has " +
                  std::to_string(qmodel_input_count(model)));
  return std::make_unique<ImageSamples>(folder, options, model);
}

}  // namespace tool
