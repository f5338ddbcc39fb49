// SPDX-License-Identifier: Apache-2.0
#include "ops/common/window.hpp"

#include "base/error.hpp"

namespace qtn::ops {
namespace {

constexpr std::int64_t kLimit = std::int64_t{1} << 31;

std::int64_t ceil_quotient(std::int64_t a, std::int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

Span taps_within(std::int64_t start, std::int64_t dilation, std::int64_t kernel, std::int64_t low, std::int64_t high) {
  return {ceil_quotient(low - start, dilation), std::min(kernel, ceil_quotient(high - start, dilation))};
}

Window::Dims dims_of(const char *op, const char *name, std::span<const std::int64_t> values, std::size_t rank,
                     std::int64_t least) {
  if (values.size() != rank)
    fail(QTN_EINVAL, op, ": ", name, " has ", values.size(), " values for ", rank, " spatial axes");
  Window::Dims dims{};
  for (std::size_t i = 0; i < rank; ++i) {
    if (values[i] < least || values[i] >= kLimit)
      fail(QTN_EINVAL, op, ": ", name, " of ", values[i], " is out of range");
    dims[i] = values[i];
  }
  return dims;
}

Window::Dims dims_attr(const char *op, const char *name, const Attrs &attrs, std::size_t rank) {
  const std::vector<std::int64_t> ones(rank, 1);
  return dims_of(op, name, attrs.get_ints(name, ones), rank, 1);
}

/// The pads that are given, which auto_pad replaces. Returns auto_pad.
std::string read_pads(const char *op, const Attrs &attrs, Window &w) {
  const std::string auto_pad = attrs.get_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER", valid = auto_pad == "VALID";
  if (!same && !valid && auto_pad != "NOTSET" && !auto_pad.empty())
    fail(QTN_EINVAL, op, ": auto_pad is \"", auto_pad, "\", not NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  if (!same && !valid) {
    const std::vector<std::int64_t> zeros(2 * w.rank, 0), pads = attrs.get_ints("pads", zeros);
    if (pads.size() != 2 * w.rank)
      fail(QTN_EINVAL, op, ": pads has ", pads.size(), " values for ", w.rank, " spatial axes");
    w.pad_begin = dims_of(op, "pads", std::span(pads).first(w.rank), w.rank, 0);
    w.pad_end = dims_of(op, "pads", std::span(pads).last(w.rank), w.rank, 0);
  }
  return auto_pad;
}

void place(const char *op, const Attrs &attrs, Window &w) {
  const std::string auto_pad = read_pads(op, attrs, w);
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER", valid = auto_pad == "VALID";
  const bool ceil_mode = attrs.has("ceil_mode") && attrs.get_int("ceil_mode", 0) != 0;
  for (std::size_t i = 0; i < w.rank; ++i) {
    const std::int64_t extent = (w.kernel[i] - 1) * w.dilation[i] + 1;
    if (same) {
      w.out[i] = ceil_quotient(w.in[i], w.stride[i]);
      const std::int64_t total = std::max<std::int64_t>(0, (w.out[i] - 1) * w.stride[i] + extent - w.in[i]);
      w.pad_begin[i] = auto_pad == "SAME_LOWER" ? total - total / 2 : total / 2;
      w.pad_end[i] = total - w.pad_begin[i];
      if (total >= kLimit)
        fail(QTN_EINVAL, op, ": a kernel of ", w.kernel[i], " with dilation ", w.dilation[i], " is out of range");
      continue;
    }
    const std::int64_t room = w.in[i] + w.pad_begin[i] + w.pad_end[i] - extent;
    // ONNX: ceil_mode lets a window begin on the image that is larger than all of it.
    const bool ceil = ceil_mode && !valid;
    if ((ceil ? room <= -w.stride[i] : room < 0) || w.in[i] == 0)
      fail(QTN_ESHAPE, op, ": kernel ", w.kernel[i], " with dilation ", w.dilation[i], " does not fit an input of ",
           w.in[i], " padded by ", w.pad_begin[i], " and ", w.pad_end[i]);
    // ONNX: ceil_mode does not change VALID, and no window starts in the padding at the end.
    w.out[i] = (ceil ? ceil_quotient(room, w.stride[i]) : room / w.stride[i]) + 1;
    if ((w.out[i] - 1) * w.stride[i] >= w.in[i] + w.pad_begin[i] && ceil_mode) --w.out[i];
  }
}

Window begin(const char *op, const Shape &x) {
  if (x.size() < 3 || x.size() > 2 + Window::kMaxRank)
    fail(x.size() < 3 ? QTN_ESHAPE : QTN_EUNSUPPORTED, op,
         ": x must have 1 to 3 spatial axes after batch and channels, it is ", to_string(x));
  Window w;
  w.rank = x.size() - 2;
  for (std::size_t i = 0; i < w.rank; ++i) {
    if (x[i + 2] < 0 || x[i + 2] >= kLimit) fail(QTN_ESHAPE, op, ": x is too large: ", to_string(x));
    w.in[i] = x[i + 2];
  }
  return w;
}

/// Everything of a convolution but where its windows lie.
Window weighted_window(const char *op, const Attrs &attrs, const Shape &x, const Shape &weight) {
  Window w = begin(op, x);
  if (weight.size() != x.size())
    fail(QTN_ESHAPE, op, ": weight ", to_string(weight), " does not have the rank of x ", to_string(x));
  const std::span<const std::int64_t> kernel(weight.begin() + 2, w.rank);
  w.kernel = dims_of(op, "weight", kernel, w.rank, 1);
  const std::vector<std::int64_t> stated = attrs.get_ints("kernel_shape");
  if (!stated.empty() && !std::equal(stated.begin(), stated.end(), kernel.begin(), kernel.end()))
    fail(QTN_EINVAL, op, ": kernel_shape is ", to_string(Shape(stated)), ", weight is ", to_string(weight));
  w.stride = dims_attr(op, "strides", attrs, w.rank);
  w.dilation = dims_attr(op, "dilations", attrs, w.rank);
  return w;
}

Window::TapTable tabulate(const Window &w, Span (Window::*taps)(std::size_t, std::int64_t) const) {
  Window::TapTable table;
  for (std::size_t axis = 0; axis < w.rank; ++axis)
    for (std::int64_t o = 0; o < w.out[axis]; ++o) table[axis].push_back((w.*taps)(axis, o));
  return table;
}

}  // namespace

Span Window::taps(std::size_t axis, std::int64_t o) const {
  return taps_within(o * stride[axis] - pad_begin[axis], dilation[axis], kernel[axis], 0, in[axis]);
}

Span Window::padded_taps(std::size_t axis, std::int64_t o) const {
  return taps_within(o * stride[axis] - pad_begin[axis], dilation[axis], kernel[axis], -pad_begin[axis],
                     in[axis] + pad_end[axis]);
}

Window::TapTable Window::tap_table() const { return tabulate(*this, &Window::taps); }

Window::TapTable Window::padded_tap_table() const { return tabulate(*this, &Window::padded_taps); }

Span Window::outputs(std::size_t axis, std::int64_t k) const {
  const std::int64_t shift = k * dilation[axis] - pad_begin[axis];
  return {ceil_quotient(-shift, stride[axis]), std::min(out[axis], ceil_quotient(in[axis] - shift, stride[axis]))};
}

std::int64_t Window::taps_count() const { return element_count(Shape(std::span(kernel).first(rank))); }
std::int64_t Window::outputs_count() const { return element_count(Shape(std::span(out).first(rank))); }

Window Window::lifted() const {
  Window w = *this;
  w.rank = kMaxRank;
  const auto lift = [&](Dims &dims, std::int64_t fill) {
    std::rotate(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(rank), dims.end());
    std::fill_n(dims.begin(), kMaxRank - rank, fill);
  };
  for (Dims *ones : {&w.in, &w.kernel, &w.stride, &w.dilation, &w.out}) lift(*ones, 1);
  for (Dims *zeros : {&w.pad_begin, &w.pad_end}) lift(*zeros, 0);
  return w;
}

Window conv_window(const Attrs &attrs, const Shape &x, const Shape &weight) {
  Window w = weighted_window("Conv", attrs, x, weight);
  place("Conv", attrs, w);
  return w;
}

Window transposed_window(const Attrs &attrs, const Shape &x, const Shape &weight) {
  constexpr const char *kOp = "ConvTranspose";
  Window w = weighted_window(kOp, attrs, x, weight);
  w.out = w.in;
  const std::vector<std::int64_t> zeros(w.rank, 0), stated = attrs.get_ints("output_shape");
  const Window::Dims extra = dims_of(kOp, "output_padding", attrs.get_ints("output_padding", zeros), w.rank, 0);
  const Window::Dims wanted = stated.empty() ? Window::Dims{} : dims_of(kOp, "output_shape", stated, w.rank, 1);
  const std::string auto_pad = read_pads(kOp, attrs, w);
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  for (std::size_t i = 0; i < w.rank; ++i) {
    if (w.out[i] == 0) fail(QTN_ESHAPE, kOp, ": x ", to_string(x), " has an empty spatial axis");
    const std::int64_t whole = w.stride[i] * (w.out[i] - 1) + extra[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
    if (same || !stated.empty()) {
      w.in[i] = stated.empty() ? w.out[i] * w.stride[i] : wanted[i];
      const std::int64_t total = std::max<std::int64_t>(0, whole - w.in[i]);
      w.pad_begin[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pad_end[i] = total - w.pad_begin[i];
    } else {
      w.in[i] = whole - w.pad_begin[i] - w.pad_end[i];
    }
    if (w.in[i] < 1 || std::max(w.in[i], w.pad_begin[i]) >= kLimit)
      fail(QTN_ESHAPE, kOp, ": an output of ", w.in[i], " from x ", to_string(x), " with stride ", w.stride[i],
           ", kernel ", w.kernel[i], ", dilation ", w.dilation[i], " and pads of ", w.pad_begin[i], " and ",
           w.pad_end[i], " is out of range");
  }
  return w;
}

Window pool_window(const char *op, const Attrs &attrs, const Shape &x) {
  Window w = begin(op, x);
  if (!attrs.has("kernel_shape")) fail(QTN_EINVAL, op, ": attribute \"kernel_shape\" is missing");
  w.kernel = dims_of(op, "kernel_shape", attrs.get_ints("kernel_shape"), w.rank, 1);
  w.stride = dims_attr(op, "strides", attrs, w.rank);
  w.dilation = dims_attr(op, "dilations", attrs, w.rank);
  place(op, attrs, w);
  // A window with padding alone would have no maximum and no mean.
  for (std::size_t i = 0; i < w.rank; ++i)
    if (std::max(w.pad_begin[i], w.pad_end[i]) > (w.kernel[i] - 1) * w.dilation[i])
      fail(QTN_EINVAL, op, ": pads of ", w.pad_begin[i], " and ", w.pad_end[i], " are not smaller than the kernel of ",
           w.kernel[i], " with dilation ", w.dilation[i]);
  return w;
}

}  // namespace qtn::ops
