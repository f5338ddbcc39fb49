// SPDX-License-Identifier: Apache-2.0
#include "io/tensor_file.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "base/json_writer.hpp"
#include "core/scheme.hpp"
#include "io/checked.hpp"

namespace qtn::io {
namespace {

static_assert(std::endian::native == std::endian::little, "big-endian machines need byte swapping of all other files");

void swap_bytes(const Tensor &t) {
  const std::size_t size = dtype_size(t.dtype());
  auto *bytes = t.as<std::byte>();
  for (std::byte *end = bytes + t.nbytes(); bytes != end; bytes += size) std::reverse(bytes, bytes + size);
}

/// A bool is 0 or 1, whatever a file holds.
void normalize_bools(const Tensor &t) {
  auto *bytes = t.as<std::uint8_t>();
  std::transform(bytes, bytes + t.nbytes(), bytes, [](std::uint8_t byte) { return byte != 0; });
}

Tensor reversed_axes(const Tensor &t) {
  std::vector<std::int32_t> axes;
  for (std::size_t i = t.rank(); i-- > 0;) axes.push_back(static_cast<std::int32_t>(i));
  return t.permute(axes);
}

/// to_stored() undone.
Tensor from_stored(const Tensor &t, qdtype dtype) {
  if (!is_packed(dtype)) return t;
  if (!is_packed_integer(dtype)) {
    const Tensor codes(dtype, t.shape());
    const PackedSpan to = codes.packed();
    std::int64_t i = 0;
    for (const std::int64_t code : int_values(t, "tensor")) {
      if (code > 15) fail(QTN_EFORMAT, code, " is no pattern of ", dtype_name(dtype));
      to.store(i++, code);
    }
    return codes;
  }
  const IntegerRange range = integer_range(dtype);
  for (const std::int64_t v : int_values(t, "tensor"))
    if (v < range.lo || v > range.hi) fail(QTN_EFORMAT, v, " is no ", dtype_name(dtype));
  return from_plain(t, dtype);
}

}  // namespace

qdtype stored_dtype(qdtype dtype) {
  if (dtype == QTN_FLOAT4E2M1) return QTN_UINT8;
  return is_packed(dtype) ? plain_dtype(dtype) : dtype;
}

Tensor to_stored(const Tensor &t) {
  if (t.dtype() != QTN_FLOAT4E2M1) return is_packed(t.dtype()) ? to_plain(t) : t.to_contiguous();
  const Tensor flat = t.to_contiguous(), patterns(QTN_UINT8, t.shape());
  for (std::int64_t i = 0; i < t.count(); ++i)
    patterns.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(flat.packed().load(i));
  return patterns;
}

void TensorFile::add(StoredTensor t) {
  const std::size_t size = dtype_size(stored_dtype(t.dtype));
  const auto count = static_cast<std::uint64_t>(element_count(t.shape));
  const std::uint64_t left = file_.size() - std::min(t.offset, file_.size());
  if (count > left / size)
    fail(QTN_EFORMAT, "a ", to_string(t.shape), " tensor of ", dtype_name(t.dtype), " needs ", count, " times ", size,
         " bytes, ", left, " are there");
  if (t.quantizer) check_quantizer_fits(*t.quantizer, t.shape);
  tensors_.push_back(std::move(t));
}

std::string TensorFile::names() const {
  std::string all;
  for (const StoredTensor &t : tensors_) all += cat(all.empty() ? "" : ", ", '"', t.name, '"');
  return all.empty() ? "none" : all;
}

const StoredTensor &TensorFile::only() const {
  if (tensors_.size() != 1) fail(QTN_EINVAL, path(), ": holds ", tensors_.size(), " tensors, not 1: ", names());
  return tensors_.front();
}

const StoredTensor &TensorFile::named(std::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const auto &t) { return t.name == name; });
  if (found == tensors_.end()) fail(QTN_EINVAL, path(), ": holds no tensor \"", name, "\", but ", names());
  return *found;
}

Tensor TensorFile::read_at(const StoredTensor &t, std::uint64_t offset, const Shape &shape) const {
  const Tensor raw(stored_dtype(t.dtype), shape);
  file_.read(raw.data(), offset, raw.nbytes());
  if (t.big_endian) swap_bytes(raw);
  if (t.dtype == QTN_BOOL) normalize_bools(raw);
  return checked(path(), [&] { return from_stored(raw, t.dtype); });
}

Tensor TensorFile::read(const StoredTensor &t) const {
  Shape shape = t.shape;
  if (t.fortran_order) std::reverse(shape.begin(), shape.end());
  const Tensor all = read_at(t, t.offset, shape).with_quantizer(t.quantizer);
  return t.fortran_order ? reversed_axes(all) : all;
}

Tensor TensorFile::read_rows(const StoredTensor &t, std::int64_t start, std::int64_t stop) const {
  if (t.shape.empty()) fail(QTN_EINVAL, path(), ": \"", t.name, "\" is a scalar, which has no rows");
  if (start < 0 || start > stop || stop > t.shape[0])
    fail(QTN_EINVAL, path(), ": rows ", start, " to ", stop, " of a ", to_string(t.shape), " tensor");
  if (start == stop && t.quantizer && !t.quantizer->per_tensor())
    fail(QTN_EINVAL, path(), ": no rows, ", start, " to ", stop, ", of a tensor quantized per ",
         t.quantizer->per_channel() ? "channel" : "block");
  if (t.fortran_order) return read(t).slice(0, start, stop, 1);
  // The quantizer of the rows is that of a slice, made without elements.
  const Tensor form = Tensor::meta(stored_dtype(t.dtype), t.shape).with_quantizer(t.quantizer);
  const Tensor rows = form.slice(0, start, stop, 1);
  const auto row_bytes =
      static_cast<std::uint64_t>(element_count(t.shape, 1, t.shape.size())) * dtype_size(form.dtype());
  return read_at(t, t.offset + static_cast<std::uint64_t>(start) * row_bytes, rows.shape())
      .with_quantizer(rows.quantizer());
}

std::string inspect_json(const TensorFile &file) {
  JsonWriter json;
  json.begin_object();
  json.key("tensors");
  json.begin_list();
  for (const StoredTensor &t : file.tensors()) {
    json.begin_object();
    json.member("name", t.name);
    json.member("dtype", dtype_name(t.dtype));
    json.member("shape", t.shape);
    if (t.quantizer) json.member("scheme", scheme_name(t.quantizer->scheme()));
    json.end_object();
  }
  json.end_list();
  json.end_object();
  return json.take();
}

}  // namespace qtn::io
