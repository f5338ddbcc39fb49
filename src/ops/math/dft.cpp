// SPDX-License-Identifier: Apache-2.0
#include "ops/common/fourier.hpp"
#include "ops/common/generator.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"inverse", AttrSpec::kInt}, {"onesided", AttrSpec::kInt}};

struct Form {
  std::size_t axis;
  std::int64_t length;  ///< of the signal
  bool inverse, onesided;
  Shape shape;
};

Form form_of(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real("DFT", "input", &x);
  const std::size_t rank = x.rank();
  if (rank < 2 || (x.dim(rank - 1) != 1 && x.dim(rank - 1) != 2))
    fail(QTN_ESHAPE, "DFT: input ", to_string(x.shape()), " must end in an axis of 1 or 2, real and imaginary parts");
  Form form{0, 0, call.attrs.get_int("inverse", 0) != 0, call.attrs.get_int("onesided", 0) != 0, x.shape()};
  form.axis = normalize_axis(call.in(2) ? constant_int("DFT", "axis", *call.in(2)) : -2, rank, "DFT");
  if (form.axis == rank - 1) fail(QTN_EINVAL, "DFT: axis ", form.axis, " is that of real and imaginary parts");
  const std::int64_t given = x.dim(form.axis);
  const bool to_real = form.inverse && form.onesided;
  form.length = call.in(1) ? constant_int("DFT", "dft_length", *call.in(1)) : to_real ? 2 * (given - 1) : given;
  if (form.length < 1) fail(QTN_EINVAL, "DFT: the length is ", form.length);
  // Work and memory are in proportion to the length, whatever is there of the signal.
  constexpr std::int64_t kFree = 1 << 22, kPerElement = 16;
  if (form.length > kFree && form.length / kPerElement > given)
    fail(QTN_EINVAL, "DFT: the length is ", form.length, " for a signal of ", given);
  if (form.onesided && !form.inverse && x.dim(rank - 1) != 1)
    fail(QTN_ESHAPE, "DFT: onesided wants a real input, it is ", to_string(x.shape()));
  form.shape[form.axis] = form.onesided && !form.inverse ? form.length / 2 + 1 : form.length;
  form.shape[rank - 1] = to_real ? 1 : 2;
  return form;
}

Types infer(const Call &call) { return {{call.in(0)->dtype(), form_of(call).shape}}; }

template <class T>
void run_as(const Tensor &x, const Form &form, const Tensor &y) {
  const std::int64_t given = x.dim(form.axis), parts = x.shape().back(),
                     inner = element_count(x.shape(), form.axis + 1, x.rank() - 1),
                     rows = element_count(x.shape(), 0, form.axis) * inner, made = form.shape[form.axis],
                     made_parts = form.shape.back();
  const bool half_given = form.inverse && form.onesided;
  Fourier transform(form.length, form.inverse);
  std::vector<Fourier::Number> line(static_cast<std::size_t>(form.length));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto place = [&](std::int64_t length, std::int64_t k) {
      return (row / inner * length + k) * inner + row % inner;
    };
    std::fill(line.begin(), line.end(), Fourier::Number());
    for (std::int64_t k = 0; k < std::min(given, form.length); ++k) {
      const T *at = x.as<const T>() + place(given, k) * parts;
      const Fourier::Number v(static_cast<double>(at[0]), parts == 2 ? static_cast<double>(at[1]) : 0);
      // The other half of a spectrum that makes real numbers is that of the conjugates.
      if (half_given && k > form.length / 2) break;
      const bool own = !half_given || k == 0 || 2 * k == form.length;
      line[static_cast<std::size_t>(k)] = half_given && own ? Fourier::Number(v.real(), 0) : v;
      if (!own) line[static_cast<std::size_t>(form.length - k)] = std::conj(v);
    }
    transform.run(line);
    const double share = form.inverse ? 1 / static_cast<double>(form.length) : 1;
    for (std::int64_t k = 0; k < made; ++k) {
      const Fourier::Number v = line[static_cast<std::size_t>(k)] * share;
      T *to = y.as<T>() + place(made, k) * made_parts;
      to[0] = static_cast<T>(v.real());
      if (made_parts == 2) to[1] = static_cast<T>(v.imag());
    }
  }
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &x = *call.in(0);
  x.dtype() == QTN_FLOAT64 ? run_as<double>(x, form_of(call), outputs[0]) : run_as<float>(x, form_of(call), outputs[0]);
}

/// The axis was an attribute before opset 20.
void upgrade(OldNode &node) {
  if (node.opset >= 20) return;
  const std::int64_t axis = node.attrs.get_int("axis", 1);
  node.attrs.erase("axis");
  node.constants[2] = Tensor::from<std::int64_t>(QTN_INT64, {}, std::span(&axis, 1));
}

}  // namespace

const OpDef kDFT{.name = "DFT",
                 .min_inputs = 1,
                 .max_inputs = 3,
                 .max_outputs = 1,
                 .attrs = kAttrs,
                 .infer = infer,
                 .run = run,
                 .upgrade = upgrade};

}  // namespace qtn::ops
