// SPDX-License-Identifier: Apache-2.0
// Observers: of any settings, shown any tensors; and their bytes, any and changed.
#include "edits.hpp"

namespace fuzz {
namespace {

constexpr const char *kKinds[] = {"minmax",    "max", "moving_average", "percentile", "nvidia_percentile",
                                  "histogram", "mse", "nvidia_mse",     "entropy",    "nvidia_entropy",
                                  "fixed"};
constexpr const char *kTypes[] = {"uint8", "int8", "uint16", "int16", "int32", "uint4", "int4", "uint2", "int2"};
constexpr const char *kSchemes[] = {"per_tensor_affine",
                                    "per_tensor_symmetric",
                                    "per_channel_affine",
                                    "per_channel_symmetric",
                                    "per_block_affine",
                                    "per_block_symmetric",
                                    "per_channel_affine_float_qparams"};
constexpr const char *kNumerics[] = {"fbgemm", "qnnpack", "onnx", "nvidia", "tflite"};

Observer some_observer(Bytes &bytes) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  const auto text = [&](const char *key, const char *value) {
    if (bytes.one_in(2)) must(qattrs_set_string(attrs.get(), key, value), key);
  };
  const auto real = [&](const char *key) {
    if (bytes.one_in(8)) must(qattrs_set_float(attrs.get(), key, awkward_float(bytes)), key);
  };
  const auto integer = [&](const char *key) {
    if (bytes.one_in(8)) must(qattrs_set_int(attrs.get(), key, awkward_int(bytes)), key);
  };
  const char *kind = bytes.one_of(kKinds);
  text("dtype", bytes.one_of(kTypes));
  text("scheme", bytes.one_of(kSchemes));
  text("numerics", bytes.one_of(kNumerics));
  for (const char *key : {"averaging_constant", "percentile", "eps", "scale", "min", "max", "scale_amax"}) real(key);
  for (const char *key : {"axis", "bins", "absolute", "zero_point", "reduce_range", "narrow_range", "block_size",
                          "quant_min", "quant_max"})
    integer(key);
  return make<Observer>(qobserver_create, kind, attrs.get());
}

Tensor some_tensor(Bytes &bytes) {
  std::vector<std::int64_t> shape;
  for (int rank = bytes.in(0, 4); rank > 0; --rank) shape.push_back(bytes.in(0, 6));
  Tensor t = filled(QTN_FLOAT32, shape, bytes.byte());
  void *data = nullptr;
  must(qtensor_data_mut(&data, t.get()), "data");
  if (qtensor_numel(t.get()) > 0)
    for (int i = bytes.in(0, 3); i > 0; --i)
      static_cast<float *>(data)[bytes.byte() % qtensor_numel(t.get())] = static_cast<float>(awkward_float(bytes));
  return t;
}

/// Written and read again, it chooses the same.
void check(const qobserver *o) {
  const Quantizer q = make<Quantizer>(qobserver_quantizer, o);
  const Blob saved = make<Blob>(qobserver_save, o);
  require(saved != nullptr, std::string("saving: ") + qerror_message());
  const Observer again = make<Observer>(qobserver_load, qblob_data(saved.get()), qblob_size(saved.get()));
  require(again != nullptr, std::string("what was saved cannot be read: ") + qerror_message());
  const Quantizer other = make<Quantizer>(qobserver_quantizer, again.get());
  require((q != nullptr) == (other != nullptr), "a quantizer on one side");
  if (!q) return;
  for (std::size_t i = 0; i < qquantizer_count(q.get()); ++i)
    require(qquantizer_scales(q.get())[i] == qquantizer_scales(other.get())[i] &&
                qquantizer_zero_points(q.get())[i] == qquantizer_zero_points(other.get())[i],
            "another quantizer once saved");
}

void test(const std::uint8_t *data, std::size_t size) {
  Bytes bytes(data, size);
  const Observer o = some_observer(bytes);
  if (!o) return;
  for (int i = bytes.in(0, 3); i > 0; --i) good(qobserver_observe(o.get(), some_tensor(bytes).get()));
  check(o.get());
  const Blob saved = make<Blob>(qobserver_save, o.get());
  const auto *begin = static_cast<const std::uint8_t *>(qblob_data(saved.get()));
  const auto changed = edited({begin, begin + qblob_size(saved.get())}, bytes.rest().data(), bytes.left());
  const Observer other = make<Observer>(qobserver_load, changed.data(), changed.size());
  if (!other) return;
  check(other.get());
  if (good(qobserver_observe(other.get(), some_tensor(bytes).get()))) check(other.get());
  if (good(qobserver_merge(o.get(), other.get()))) check(o.get());
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{256} << 20, fuzz::test)
