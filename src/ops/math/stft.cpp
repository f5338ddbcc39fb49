// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/fourier.hpp"
#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"onesided", AttrSpec::kInt}};

struct Form {
  std::int64_t frames, length, step, bins;
  std::int64_t parts;  ///< of a number of the signal: 1, or 2 where it is complex
};

Form form_of(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real("STFT", "signal", &x);
  if (x.rank() < 2 || x.rank() > 3 || (x.rank() == 3 && x.dim(2) != 1 && x.dim(2) != 2))
    fail(QTN_ESHAPE, "STFT: signal ", to_string(x.shape()), " must be [batch, length], or with 1 or 2 numbers behind");
  const Tensor *window = call.in(2);
  if (window) {
    require_same_dtype("STFT", x, *window);
    if (window->rank() != 1) fail(QTN_ESHAPE, "STFT: window ", to_string(window->shape()), " must be a list");
  }
  const std::int64_t parts = x.rank() == 3 ? x.dim(2) : 1;
  Form form{0, x.dim(1), constant_int("STFT", "frame_step", *call.in(1)), 0, parts};
  if (window) form.length = window->dim(0);
  if (call.in(3)) form.length = constant_int("STFT", "frame_length", *call.in(3));
  if (window && window->dim(0) != form.length)
    fail(QTN_ESHAPE, "STFT: a window of ", window->dim(0), " for frames of ", form.length);
  if (form.step < 1) fail(QTN_EINVAL, "STFT: frame_step is ", form.step);
  if (form.length < 1 || form.length > x.dim(1))
    fail(QTN_EINVAL, "STFT: frames of ", form.length, " in a signal of ", x.dim(1));
  const bool onesided = call.attrs.get_int("onesided", 1) != 0;
  if (onesided && parts != 1) fail(QTN_ESHAPE, "STFT: onesided wants a real signal, it is ", to_string(x.shape()));
  form.frames = (x.dim(1) - form.length) / form.step + 1;
  form.bins = onesided ? form.length / 2 + 1 : form.length;
  return form;
}

Types infer(const Call &call) {
  const Form form = form_of(call);
  return {{call.in(0)->dtype(), {call.in(0)->dim(0), form.frames, form.bins, 2}}};
}

/// The frames of a signal under their window, and the bins of what comes of them.
template <class T>
class Frames {
 public:
  Frames(const Call &call, const Form &form, const Tensor &y)
      : x_(*call.in(0)), window_(call.in(2)), form_(form), y_(y.as<T>()), transform_(form.length, false) {
    line_.resize(static_cast<std::size_t>(form.length));
  }

  void run() {
    const std::int64_t rows = x_.dim(0) * form_.frames;
    // A real frame is the imaginary part of the one before it: their spectra are the even and the odd part of one.
    for (std::int64_t row = 0, taken = 1; row < rows; row += taken) {
      const bool two = form_.parts == 1 && row + 1 < rows && are_alike(size_of(row), size_of(row + 1));
      taken = two ? 2 : 1;
      for (std::int64_t k = 0; k < form_.length; ++k)
        line_[at(k)] = {sample(row, k, 0), two ? sample(row + 1, k, 0) : form_.parts == 2 ? sample(row, k, 1) : 0};
      transform_.run(line_);
      for (std::int64_t k = 0; k < form_.bins; ++k) {
        const Fourier::Number z = line_[at(k)], mirrored = std::conj(line_[at(k == 0 ? 0 : form_.length - k)]);
        store(row, k, two ? (z + mirrored) * 0.5 : z);
        if (two) store(row + 1, k, {(z - mirrored).imag() * 0.5, (mirrored - z).real() * 0.5});
      }
    }
  }

 private:
  static std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

  /// Not finite where a number of the frame is not.
  double size_of(std::int64_t row) const {
    double sum = 0;
    for (std::int64_t k = 0; k < form_.length; ++k) sum += std::fabs(sample(row, k, 0));
    return sum;
  }

  /// Whether neither of two frames of these sizes loses digits to the other.
  static bool are_alike(double a, double b) {
    constexpr double kApart = std::is_same_v<T, double> ? 16 : 1 << 20;
    return a > 0 && b > 0 && a <= b * kApart && b <= a * kApart && std::isfinite(a + b);
  }

  double sample(std::int64_t row, std::int64_t k, std::int64_t part) const {
    const std::int64_t place = row / form_.frames * x_.dim(1) + row % form_.frames * form_.step + k;
    const double value = static_cast<double>(x_.as<const T>()[place * form_.parts + part]);
    return window_ ? value * static_cast<double>(window_->as<const T>()[k]) : value;
  }

  void store(std::int64_t row, std::int64_t k, Fourier::Number value) {
    T *to = y_ + (row * form_.bins + k) * 2;
    to[0] = static_cast<T>(value.real());
    to[1] = static_cast<T>(value.imag());
  }

  const Tensor &x_;
  const Tensor *window_;
  const Form &form_;
  T *y_;
  Fourier transform_;
  std::vector<Fourier::Number> line_;
};

void run(const Call &call, std::span<Tensor> outputs) {
  const Form form = form_of(call);
  outputs[0].dtype() == QTN_FLOAT64 ? Frames<double>(call, form, outputs[0]).run()
                                    : Frames<float>(call, form, outputs[0]).run();
}

}  // namespace

const OpDef kSTFT{
    .name = "STFT", .min_inputs = 2, .max_inputs = 4, .max_outputs = 1, .attrs = kAttrs, .infer = infer, .run = run};

}  // namespace qtn::ops
