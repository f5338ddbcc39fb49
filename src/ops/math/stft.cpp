// SPDX-License-Identifier: Apache-2.0
#include "ops/common/fourier.hpp"
#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"onesided", AttrSpec::kInt}};

struct Form {
  std::int64_t frames, length, step, bins;
};

Form form_of(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real("STFT", "signal", &x);
  if (x.rank() != 3 || (x.dim(2) != 1 && x.dim(2) != 2))
    fail(QTN_ESHAPE, "STFT: signal ", to_string(x.shape()), " must be [batch, length, 1 or 2]");
  const Tensor *window = call.in(2);
  if (window) {
    require_same_dtype("STFT", x, *window);
    if (window->rank() != 1) fail(QTN_ESHAPE, "STFT: window ", to_string(window->shape()), " must be a list");
  }
  Form form{0, x.dim(1), constant_int("STFT", "frame_step", *call.in(1)), 0};
  if (window) form.length = window->dim(0);
  if (call.in(3)) form.length = constant_int("STFT", "frame_length", *call.in(3));
  if (window && window->dim(0) != form.length)
    fail(QTN_ESHAPE, "STFT: a window of ", window->dim(0), " for frames of ", form.length);
  if (form.step < 1) fail(QTN_EINVAL, "STFT: frame_step is ", form.step);
  if (form.length < 1 || form.length > x.dim(1))
    fail(QTN_EINVAL, "STFT: frames of ", form.length, " in a signal of ", x.dim(1));
  const bool onesided = call.attrs.get_int("onesided", 1) != 0;
  if (onesided && x.dim(2) != 1) fail(QTN_ESHAPE, "STFT: onesided wants a real signal, it is ", to_string(x.shape()));
  form.frames = (x.dim(1) - form.length) / form.step + 1;
  form.bins = onesided ? form.length / 2 + 1 : form.length;
  return form;
}

Types infer(const Call &call) {
  const Form form = form_of(call);
  return {{call.in(0)->dtype(), {call.in(0)->dim(0), form.frames, form.bins, 2}}};
}

template <class T>
void run_as(const Call &call, const Form &form, const Tensor &y) {
  const Tensor &x = *call.in(0), *window = call.in(2);
  const std::int64_t parts = x.dim(2);
  Fourier transform(form.length, false);
  std::vector<Fourier::Number> line(static_cast<std::size_t>(form.length));
  T *to = y.as<T>();
  for (std::int64_t row = 0; row < x.dim(0) * form.frames; ++row) {
    const T *from = x.as<const T>() + (row / form.frames * x.dim(1) + row % form.frames * form.step) * parts;
    for (std::int64_t k = 0; k < form.length; ++k) {
      const double factor = window ? static_cast<double>(window->as<const T>()[k]) : 1;
      line[static_cast<std::size_t>(k)] = {factor * static_cast<double>(from[k * parts]),
                                           parts == 2 ? factor * static_cast<double>(from[k * parts + 1]) : 0};
    }
    transform.run(line);
    for (std::int64_t k = 0; k < form.bins; ++k) {
      *to++ = static_cast<T>(line[static_cast<std::size_t>(k)].real());
      *to++ = static_cast<T>(line[static_cast<std::size_t>(k)].imag());
    }
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  outputs[0].dtype() == QTN_FLOAT64 ? run_as<double>(call, form_of(call), outputs[0])
                                    : run_as<float>(call, form_of(call), outputs[0]);
}

}  // namespace

const OpDef kSTFT{
    .name = "STFT", .min_inputs = 2, .max_inputs = 4, .max_outputs = 1, .attrs = kAttrs, .infer = infer, .run = run};

}  // namespace qtn::ops
