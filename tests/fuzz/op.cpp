// SPDX-License-Identifier: Apache-2.0
// One operator, on operands that mostly fit: plain or quantized, side by side or strided. Results do not depend on how
// operands lie in memory, and both instruction sets give the same bits.
#include "calls.hpp"

namespace fuzz {
namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20;

Tensor some_tensor(Bytes &bytes) {
  constexpr qdtype kOften[] = {QTN_FLOAT32, QTN_FLOAT32, QTN_FLOAT32, QTN_UINT8, QTN_INT8, QTN_INT64};
  constexpr qdtype kSeldom[] = {
      QTN_INT32,      QTN_BOOL,           QTN_FLOAT64,        QTN_FLOAT16,    QTN_BFLOAT16,  QTN_UINT16,
      QTN_INT16,      QTN_UINT4,          QTN_INT4,           QTN_UINT2,      QTN_INT2,      QTN_FLOAT8E4M3FN,
      QTN_FLOAT8E5M2, QTN_FLOAT8E4M3FNUZ, QTN_FLOAT8E5M2FNUZ, QTN_FLOAT8E8M0, QTN_FLOAT4E2M1};
  const qdtype dtype = bytes.one_in(4) ? bytes.one_of(kSeldom) : bytes.one_of(kOften);
  std::vector<std::int64_t> shape;
  for (int rank = bytes.one_in(8) ? bytes.in(0, 8) : bytes.in(2, 4); rank > 0; --rank)
    shape.push_back(bytes.one_in(16) ? 0 : bytes.in(1, rank < 4 ? 9 : 2));
  return filled(dtype, shape, bytes.byte());
}

/// Floats on a grid, or integers that stand for reals; what does not fit stays as it is.
Tensor quantized(Tensor t, Bytes &bytes) {
  constexpr const char *kNumerics[] = {"fbgemm", "qnnpack", "onnx", "tflite", "nvidia"};
  constexpr qdtype kTypes[] = {QTN_UINT8,        QTN_UINT8, QTN_INT8,           QTN_INT8,      QTN_UINT4,
                               QTN_INT4,         QTN_UINT2, QTN_INT16,          QTN_UINT16,    QTN_INT32,
                               QTN_FLOAT8E4M3FN, QTN_INT2,  QTN_FLOAT8E5M2FNUZ, QTN_FLOAT4E2M1};
  if (!t || qtensor_dtype(t.get()) != QTN_FLOAT32) return t;
  const Attrs attrs = make<Attrs>(qattrs_create);
  must(qattrs_set_string(attrs.get(), "numerics", bytes.one_of(kNumerics)), "numerics");
  const bool channels = bytes.one_in(3) && qtensor_rank(t.get()) > 0;
  const int axis = channels ? bytes.in(0, static_cast<int>(qtensor_rank(t.get())) - 1) : 0;
  const auto count = channels ? static_cast<std::size_t>(qtensor_shape(t.get())[axis]) : 1;
  std::vector<double> lows(count), highs(count);
  for (std::size_t i = 0; i < count; ++i) {
    lows[i] = -bytes.in(0, 32) / 16.0;
    highs[i] = bytes.in(0, 32) / 16.0;
  }
  const bool symmetric = bytes.one_in(2);
  const qscheme scheme = channels ? (symmetric ? QTN_PER_CHANNEL_SYMMETRIC : QTN_PER_CHANNEL_AFFINE)
                                  : (symmetric ? QTN_PER_TENSOR_SYMMETRIC : QTN_PER_TENSOR_AFFINE);
  const Quantizer q = make<Quantizer>(qquantizer_choose, bytes.one_of(kTypes), scheme, axis, lows.data(), highs.data(),
                                      count, attrs.get());
  if (!q) return t;
  Tensor result = make<Tensor>(qtensor_quantize, t.get(), q.get());
  return result ? std::move(result) : std::move(t);
}

/// The same elements, with other strides: dimensions turned round, or every other of a larger tensor.
Tensor strided(const qtensor *t) {
  std::vector<std::int32_t> turned(qtensor_rank(t));
  for (std::size_t i = 0; i < turned.size(); ++i) turned[i] = static_cast<std::int32_t>(turned.size() - 1 - i);
  const auto made = [](Tensor view) {
    require(view != nullptr, std::string("a tensor cannot be turned round and back: ") + qerror_message());
    return view;
  };
  const Tensor there = made(make<Tensor>(qtensor_permute, t, turned.data(), turned.size()));
  const Tensor rows = made(make<Tensor>(qtensor_contiguous, there.get()));
  return made(make<Tensor>(qtensor_permute, rows.get(), turned.data(), turned.size()));
}

struct Result {
  qstatus status;
  std::vector<Tensor> outputs;
};

Result run(const Called &call, const std::vector<const qtensor *> &inputs, const qattrs *attrs) {
  std::vector<qtensor *> outputs(call.output_count);
  Result result{qop_run(outputs.data(), outputs.size(), call.schema->op, inputs.data(), inputs.size(), attrs), {}};
  const bool went_well = good(result.status);
  for (qtensor *output : outputs) {
    require(went_well || output == nullptr, std::string(call.schema->op) + ": an output of a call that failed");
    result.outputs.emplace_back(output);
  }
  return result;
}

std::string described(const qtensor *t) {
  if (t == nullptr) return "-";
  std::string text = qdtype_name(qtensor_dtype(t));
  for (const std::int64_t dim : shape_of(t)) text += " " + std::to_string(dim);
  return qtensor_quantizer(t) == nullptr ? text : text + " on a grid";
}

void require_same(const Called &call, const std::vector<const qtensor *> &inputs, const Result &got, const Result &want,
                  const char *what) {
  std::string name = std::string(call.schema->op) + " of";
  for (const qtensor *input : inputs) name += " (" + described(input) + ")";
  name += std::string(", ") + what;
  if (got.status == QTN_ENOMEM || want.status == QTN_ENOMEM) return;
  require(got.status == want.status,
          name + ": " + qstatus_name(got.status) + " and " + qstatus_name(want.status) + ": " + qerror_message());
  for (std::size_t i = 0; got.status == QTN_OK && i < got.outputs.size(); ++i) {
    if (!got.outputs[i] && !want.outputs[i]) continue;
    std::string difference;
    if (!same_bits(got.outputs[i].get(), want.outputs[i].get(), &difference)) fail(name + ": " + difference);
  }
}

void test(const std::uint8_t *data, std::size_t size) {
  Bytes bytes(data, size);
  static const std::string best = qlib_isa();
  std::vector<Tensor> pool;
  for (int i = bytes.in(1, 3); i > 0; --i) {
    Tensor t = some_tensor(bytes);
    if (bytes.one_in(2)) t = quantized(std::move(t), bytes);
    if (t) pool.push_back(std::move(t));
  }
  if (pool.empty()) return;
  Called call = invent(bytes, pool);
  std::vector<const qtensor *> inputs;
  for (Operand &operand : call.operands) {
    if (operand.made && bytes.one_in(3)) operand.made = quantized(std::move(operand.made), bytes);
    inputs.push_back(operand.of_pool >= 0 ? pool[static_cast<std::size_t>(operand.of_pool)].get() : operand.made.get());
  }
  const Attrs attrs = attrs_of(call.attrs);
  const Result want = run(call, inputs, attrs.get());

  std::vector<Tensor> views;
  std::vector<const qtensor *> others;
  for (const qtensor *input : inputs) {
    views.push_back(input == nullptr ? nullptr : strided(input));
    others.push_back(views.back().get());
  }
  require_same(call, inputs, run(call, others, attrs.get()), want, "strided");
  must(qlib_set_isa("scalar"), "scalar");
  const Result plain = run(call, inputs, attrs.get());
  must(qlib_set_isa(best.c_str()), "the best instruction set");
  require_same(call, inputs, plain, want, "scalar");
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(fuzz::kMemory, fuzz::test)
