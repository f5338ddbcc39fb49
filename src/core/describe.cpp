// SPDX-License-Identifier: Apache-2.0
// Tensors as text, in the layout users of PyTorch know: precision 4, 80 columns, 3 edge items beyond 1000 elements.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/digits.hpp"
#include "base/error.hpp"
#include "core/scales.hpp"
#include "core/scheme.hpp"
#include "core/tensor.hpp"

namespace qtn {
namespace {

constexpr std::size_t kLineWidth = 80;
constexpr std::int64_t kThreshold = 1000;
constexpr std::int64_t kEdgeItems = 3;

/// Shortest decimal that reads back as the same double, laid out as Python's repr().
std::string repr(double value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific).ptr;
  std::string text(digits, end);
  const std::size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return text;
  char fixed[400];
  text.assign(fixed, std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed).ptr);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

enum class Truth : bool {};

/// How values are written, all as wide as the widest of those that are shown: whole numbers with all their digits.
template <class T>
class Formatter {
 public:
  explicit Formatter(const std::vector<T> &shown) {
    for (const T v : shown) width_ = std::max(width_, text(v).size());
  }

  std::size_t width() const { return width_; }
  std::string text(T v) const {
    if constexpr (std::is_same_v<T, Truth>)
      return v == Truth{true} ? "True" : "False";
    else
      return std::to_string(v);
  }

 private:
  std::size_t width_ = 1;
};

template <>
class Formatter<double> {
 public:
  explicit Formatter(const std::vector<double> &shown) {
    std::vector<double> magnitudes;
    bool integral = true;
    for (const double v : shown) {
      if (!std::isfinite(v) || v == 0) continue;
      magnitudes.push_back(std::fabs(v));
      integral = integral && v == std::ceil(v);
    }
    if (magnitudes.empty()) return;
    const auto [low, high] = std::minmax_element(magnitudes.begin(), magnitudes.end());
    const bool wide = *high / *low > 1000 || *high > 1e8;
    style_ = wide || (!integral && *low < 1e-4) ? kScientific : integral ? kInteger : kFixed;
    for (const double v : shown)
      if (std::isfinite(v) && v != 0) width_ = std::max(width_, text(v).size());
  }

  std::size_t width() const { return width_; }
  std::string text(double v) const {
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    if (style_ == kScientific) return digits_of(v, std::chars_format::scientific, 4);
    if (style_ == kInteger) return digits_of(v, std::chars_format::fixed, 0) + ".";
    return digits_of(v, std::chars_format::fixed, 4);
  }

 private:
  enum Style { kInteger, kFixed, kScientific };
  Style style_ = kInteger;
  std::size_t width_ = 1;
};

/// In logical order.
template <class T>
std::vector<T> values_of(const Tensor &t) {
  const Tensor flat = to_plain(t);
  std::vector<T> values(static_cast<std::size_t>(flat.count()));
  dispatch(flat.dtype(), [&](auto zero) {
    const auto *from = flat.as<const decltype(zero)>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(from[i]);
  });
  return values;
}

/// The parts of an axis that are written: all of it, or both edges around "...".
std::vector<std::int64_t> shown_indices(std::int64_t size, bool summarize) {
  std::vector<std::int64_t> shown;
  const bool cut = summarize && size > 2 * kEdgeItems;
  for (std::int64_t i = 0; i < size; ++i)
    if (!cut || i < kEdgeItems || i >= size - kEdgeItems) shown.push_back(i);
  return shown;
}

template <class T>
class Writer {
 public:
  Writer(const Shape &shape, std::vector<T> values)
      : shape_(shape),
        strides_(contiguous_strides(shape)),
        values_(std::move(values)),
        summarize_(static_cast<std::int64_t>(values_.size()) > kThreshold),
        formatter_(shown_values()) {}

  std::string text(std::size_t indent) const {
    if (shape_.empty()) return padded(values_[0]);
    if (values_.empty()) return "[]";
    return block(0, 0, indent);
  }

 private:
  std::string padded(T v) const {
    const std::string t = formatter_.text(v);
    return std::string(formatter_.width() > t.size() ? formatter_.width() - t.size() : 0, ' ') + t;
  }
  std::vector<T> shown_values() const {
    std::vector<T> shown;
    collect(0, 0, shown);
    return shown;
  }
  void collect(std::size_t axis, std::int64_t offset, std::vector<T> &shown) const {
    if (axis == shape_.size()) {
      if (!values_.empty()) shown.push_back(values_[static_cast<std::size_t>(offset)]);
      return;
    }
    for (const std::int64_t i : shown_indices(shape_[axis], summarize_))
      collect(axis + 1, offset + i * strides_[axis], shown);
  }

  std::string block(std::size_t axis, std::int64_t offset, std::size_t indent) const {
    const bool innermost = axis + 1 == shape_.size();
    std::vector<std::string> parts;
    std::int64_t expected = 0;
    for (const std::int64_t i : shown_indices(shape_[axis], summarize_)) {
      if (i != expected) parts.emplace_back(innermost ? " ..." : "...");
      expected = i + 1;
      const std::int64_t at = offset + i * strides_[axis];
      parts.push_back(innermost ? padded(values_[static_cast<std::size_t>(at)]) : block(axis + 1, at, indent + 1));
    }
    const std::string newline(innermost ? 1 : shape_.size() - axis - 1, '\n');
    const std::string line_break = "," + newline + std::string(indent + 1, ' ');
    const std::size_t per_line =
        innermost ? std::max<std::size_t>(1, (kLineWidth - std::min(indent, kLineWidth)) / (formatter_.width() + 2))
                  : 1;
    std::string text = "[";
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) text += i % per_line == 0 ? line_break : ", ";
      text += parts[i];
    }
    return text + "]";
  }

  Shape shape_, strides_;
  std::vector<T> values_;
  bool summarize_;
  Formatter<T> formatter_;
};

constexpr std::size_t kIndent = 7;  // the length of "tensor("

// Lines break where they would with PyTorch's names, so these carry its prefix until the text is complete.
constexpr std::string_view kPrefix = "torch.";

std::string without_prefixes(std::string text) {
  for (std::size_t at = text.find(kPrefix); at != std::string::npos; at = text.find(kPrefix, at))
    text.erase(at, kPrefix.size());
  return text;
}

std::string dtype_suffix(const std::string &name) { return cat("dtype=", kPrefix, name); }

std::string with_suffixes(const std::string &body, const std::vector<std::string> &suffixes) {
  std::string text = body;
  const std::size_t newline = text.rfind('\n');
  std::size_t line = newline == std::string::npos ? text.size() + 2 : text.size() - newline + 1;
  for (const std::string &suffix : suffixes) {
    if (line + suffix.size() + 2 > kLineWidth) {
      text += ",\n" + std::string(kIndent, ' ') + suffix;
      line = kIndent + suffix.size();
    } else {
      text += ", " + suffix;
      line += suffix.size() + 2;
    }
  }
  return text + ")";
}

std::string size_suffix(const Shape &shape) {
  std::string text = "size=(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

template <class T>
std::string tensor_text(const Shape &shape, std::vector<T> values) {
  return "tensor(" + Writer<T>(shape, std::move(values)).text(kIndent);
}

template <class T>
std::string parameters_text(const Shape &shape, const std::vector<T> &values, bool named) {
  const std::string body = tensor_text(shape, values);
  return with_suffixes(body, named ? std::vector<std::string>{dtype_suffix("float64")} : std::vector<std::string>{});
}

/// Numbers that PyTorch keeps in its usual type, without its name.
std::string floats_text(const Shape &shape, const std::vector<double> &values) {
  const std::vector<float> narrow(values.begin(), values.end());
  return parameters_text(shape, std::vector<double>(narrow.begin(), narrow.end()), false);
}

std::string quantized_text(const Tensor &t) {
  const Quantizer &q = *t.quantizer();
  std::vector<std::string> suffixes{size_suffix(t.shape()), dtype_suffix(cat("q", dtype_name(t.dtype()))),
                                    cat("quantization_scheme=", kPrefix, scheme_name(q.scheme()))};
  if (!q.per_tensor()) {
    const Shape shape = scale_shape(q, t.shape());
    if (q.zeros_are_floats()) {
      suffixes.push_back("scale=" + floats_text(shape, q.scales()));
      suffixes.push_back("zero_point=" + floats_text(shape, q.float_zero_points()));
    } else {
      suffixes.push_back("scale=" + parameters_text(shape, q.scales(), true));
      suffixes.push_back("zero_point=" + parameters_text(shape, q.zero_points(), false));
    }
    suffixes.push_back("axis=" + std::to_string(q.axis()));
    if (q.per_block()) suffixes.push_back("block_size=" + std::to_string(q.block_size()));
  } else {
    suffixes.push_back("scale=" + repr(q.scales()[0]));
    suffixes.push_back("zero_point=" + std::to_string(q.zero_points()[0]));
  }
  return with_suffixes(tensor_text(t.shape(), values_of<double>(dequantize(t))), suffixes);
}

std::string plain_text(const Tensor &t) {
  if (is_floating(t.dtype())) return tensor_text(t.shape(), values_of<double>(t));
  if (t.dtype() == QTN_BOOL) return tensor_text(t.shape(), values_of<Truth>(t));
  if (t.dtype() == QTN_UINT64) return tensor_text(t.shape(), values_of<std::uint64_t>(t));
  return tensor_text(t.shape(), values_of<std::int64_t>(t));
}

}  // namespace

std::string describe(const Tensor &t) {
  if (t.quantized()) return without_prefixes(quantized_text(t));
  const bool usual_type = t.dtype() == QTN_FLOAT32 || t.dtype() == QTN_INT64 || t.dtype() == QTN_BOOL;
  std::vector<std::string> suffixes;
  if (t.count() == 0 && t.rank() != 1) suffixes.push_back(size_suffix(t.shape()));
  if (t.count() == 0 ? t.dtype() != QTN_FLOAT32 : !usual_type) suffixes.push_back(dtype_suffix(dtype_name(t.dtype())));
  return without_prefixes(with_suffixes(plain_text(t), suffixes));
}

}  // namespace qtn
