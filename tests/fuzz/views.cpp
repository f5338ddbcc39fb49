// SPDX-License-Identifier: Apache-2.0
// Views of tensors, beside a list of which elements they show: shapes, elements, reals and what writing changes.
#include <algorithm>
#include <bit>
#include <cstring>

#include "fuzzing.hpp"

namespace fuzz {
namespace {

using Shape = std::vector<std::int64_t>;

unsigned bits_of(qdtype dtype) {
  switch (dtype) {
    case QTN_UINT2:
    case QTN_INT2:
      return 2;
    case QTN_UINT4:
    case QTN_INT4:
      return 4;
    case QTN_UINT16:
    case QTN_INT16:
    case QTN_FLOAT16:
    case QTN_BFLOAT16:
      return 16;
    case QTN_INT32:
    case QTN_FLOAT32:
      return 32;
    case QTN_INT64:
    case QTN_FLOAT64:
      return 64;
    default:
      return 8;
  }
}

/// The element at that place as bits.
std::uint64_t code_at(const void *data, std::size_t at, unsigned bits) {
  const auto *bytes = static_cast<const std::uint8_t *>(data);
  if (bits < 8) return static_cast<std::uint64_t>(bytes[at * bits / 8] >> (at * bits % 8)) & ((1U << bits) - 1);
  std::uint64_t code = 0;
  std::memcpy(&code, bytes + at * bits / 8, bits / 8);
  return code;
}

std::size_t count_of(const Shape &shape) {
  std::size_t count = 1;
  for (const std::int64_t d : shape) count *= static_cast<std::size_t>(d);
  return count;
}

/// What a view should be: the shape, and which element of the storage each of its elements is.
struct Shown {
  Shape shape;
  std::vector<std::size_t> places;

  std::int64_t stride(std::size_t axis) const {
    std::int64_t stride = 1;
    for (std::size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
    return stride;
  }

  /// places of the elements of another shape, whose index is given to `from`, which says the index here.
  template <typename From>
  Shown moved(const Shape &to, From &&from) const {
    Shown result{to, {}};
    std::vector<std::int64_t> index(to.size());
    for (std::size_t n = count_of(to); n > 0; --n) {
      const std::vector<std::int64_t> here = from(index);
      std::int64_t at = 0;
      for (std::size_t i = 0; i < shape.size(); ++i) at = at * shape[i] + here[i];
      result.places.push_back(places[static_cast<std::size_t>(at)]);
      for (std::size_t i = to.size(); i-- > 0 && ++index[i] == to[i];) index[i] = 0;
    }
    return result;
  }
};

struct Storage {
  qdtype dtype;
  std::vector<std::uint64_t> codes;
  std::vector<float> reals;  ///< of quantized tensors
};

struct View {
  Tensor tensor;
  Shown shown;
};

void check(const View &view, const Storage &storage, const char *what) {
  const qtensor *t = view.tensor.get();
  const unsigned bits = bits_of(storage.dtype);
  require(shape_of(t) == view.shown.shape, std::string(what) + ": another shape");
  require(static_cast<std::size_t>(qtensor_numel(t)) == view.shown.places.size(), std::string(what) + ": another size");
  require(qtensor_nbytes(t) == (view.shown.places.size() * bits + 7) / 8, std::string(what) + ": other bytes");
  const Tensor rows = make<Tensor>(qtensor_contiguous, t);
  require(rows != nullptr, std::string(what) + ": no row-major copy");
  for (std::size_t i = 0; i < view.shown.places.size(); ++i)
    require(code_at(qtensor_data(rows.get()), i, bits) == storage.codes[view.shown.places[i]],
            std::string(what) + ": element " + std::to_string(i));
  if (storage.reals.empty()) return;
  const Tensor reals = make<Tensor>(qtensor_dequantize, t);
  require(reals != nullptr, std::string(what) + ": " + qerror_message());
  for (std::size_t i = 0; i < view.shown.places.size(); ++i) {
    const float got = static_cast<const float *>(qtensor_data(reals.get()))[i];
    require(std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(storage.reals[view.shown.places[i]]),
            std::string(what) + ": real " + std::to_string(i));
  }
}

std::int64_t clamped(std::int64_t index, std::int64_t size) {
  if (index < 0) index = index < -size ? 0 : index + size;
  return std::min(index, size);
}

/// One step further, or nothing where it is refused.
bool advance(View &view, unsigned kind, Bytes &bytes) {
  const Shown &from = view.shown;
  const auto rank = static_cast<int>(from.shape.size());
  const int axis = bytes.in(-rank - 1, rank);
  const bool there = axis >= -rank && axis < rank;
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  Shape shape = from.shape;
  Shown next;
  Tensor t;
  switch (kind) {
    case 0: {
      const std::int64_t index = awkward_int(bytes);
      t = make<Tensor>(qtensor_select, view.tensor.get(), axis, index);
      const bool valid = there && index >= -from.shape[at] && index < from.shape[at];
      require(valid == (t != nullptr), "select");
      if (!valid) return false;
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
      next = from.moved(shape, [&](std::vector<std::int64_t> i) {
        i.insert(i.begin() + static_cast<std::ptrdiff_t>(at), index < 0 ? index + from.shape[at] : index);
        return i;
      });
      break;
    }
    case 1: {
      const std::int64_t start = awkward_int(bytes), stop = awkward_int(bytes), step = awkward_int(bytes);
      t = make<Tensor>(qtensor_slice, view.tensor.get(), axis, start, stop, step);
      require(t == nullptr || (there && step >= 1), "slice");
      if (!t) {
        require(!there || step < 1 || qtensor_quantizer(view.tensor.get()) != nullptr, "no slice");
        return false;
      }
      const std::int64_t begin = clamped(start, shape[at]), end = clamped(stop, shape[at]);
      shape[at] = end <= begin ? 0 : (end - begin - 1) / step + 1;
      next = from.moved(shape, [&](std::vector<std::int64_t> i) {
        i[at] = begin + i[at] * step;
        return i;
      });
      break;
    }
    case 2: {
      std::vector<std::int32_t> axes;
      for (int i = 0; i < rank; ++i) axes.insert(axes.begin() + bytes.in(0, i), i);
      std::vector<std::int32_t> given = axes;
      for (std::int32_t &a : given) a -= bytes.one_in(2) ? rank : 0;
      t = make<Tensor>(qtensor_permute, view.tensor.get(), given.data(), given.size());
      require(t != nullptr, "permute");
      for (std::size_t i = 0; i < axes.size(); ++i) shape[i] = from.shape[static_cast<std::size_t>(axes[i])];
      next = from.moved(shape, [&](const std::vector<std::int64_t> &i) {
        std::vector<std::int64_t> here(i.size());
        for (std::size_t k = 0; k < axes.size(); ++k) here[static_cast<std::size_t>(axes[k])] = i[k];
        return here;
      });
      break;
    }
    case 3: {
      for (int i = bytes.in(0, 2); i > 0 && shape.size() > 1; --i) {
        const std::size_t k = bytes.byte() % (shape.size() - 1);
        shape[k] *= shape[k + 1];
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(k) + 1);
      }
      while (shape.size() < 8 && bytes.one_in(3))
        shape.insert(shape.begin() + bytes.in(0, static_cast<int>(shape.size())), 1);
      Shape asked = shape;
      const bool open = !asked.empty() && bytes.one_in(2) && count_of(shape) > 0;
      if (open) asked[bytes.byte() % asked.size()] = -1;
      t = make<Tensor>(qtensor_reshape, view.tensor.get(), asked.data(), asked.size());
      require(t != nullptr || qtensor_quantizer(view.tensor.get()) != nullptr, "reshape");
      if (!t) return false;
      next = {shape, from.places};
      break;
    }
    case 4:
      t = make<Tensor>(qtensor_contiguous, view.tensor.get());
      next = from;
      break;
    default:
      t = make<Tensor>(qtensor_share, view.tensor.get());
      next = from;
  }
  require(t != nullptr, "a view");
  view = {std::move(t), std::move(next)};
  return true;
}

/// Writes one number to all that a view shows, which the whole then shows too.
void write(View &view, Storage &storage, std::uint8_t value) {
  if (storage.dtype != QTN_UINT8 && storage.dtype != QTN_UINT4 && storage.dtype != QTN_UINT2) return;
  if (qtensor_quantizer(view.tensor.get()) != nullptr) return;
  value = static_cast<std::uint8_t>(value & ((1U << bits_of(storage.dtype)) - 1));
  const Tensor source =
      make<Tensor>(qtensor_create, storage.dtype, nullptr, std::size_t{0}, nullptr, &value, std::size_t{1});
  must(qtensor_copy(view.tensor.get(), source.get()), "copying a scalar");
  for (const std::size_t place : view.shown.places) storage.codes[place] = value;
}

void test(const std::uint8_t *data, std::size_t size) {
  constexpr qdtype kTypes[] = {QTN_FLOAT32, QTN_UINT8,  QTN_INT64, QTN_UINT4, QTN_INT4,
                               QTN_UINT2,   QTN_UINT16, QTN_BOOL,  QTN_UINT8, QTN_UINT4};
  constexpr qdtype kGrids[] = {QTN_UINT8, QTN_INT8, QTN_UINT4, QTN_INT2, QTN_INT16};
  Bytes bytes(data, size);
  const bool quantized = bytes.one_in(3);
  Storage storage{quantized ? bytes.one_of(kGrids) : bytes.one_of(kTypes), {}, {}};
  Shape shape;
  for (int rank = bytes.in(0, 5); rank > 0; --rank) shape.push_back(bytes.one_in(12) ? 0 : bytes.in(1, 5));
  Tensor whole = filled(quantized ? QTN_FLOAT32 : storage.dtype, shape, bytes.byte());
  if (quantized) {
    const bool channels = !shape.empty() && bytes.one_in(2);
    const int axis = channels ? bytes.in(0, static_cast<int>(shape.size()) - 1) : 0;
    const auto count = channels ? static_cast<std::size_t>(shape[static_cast<std::size_t>(axis)]) : 1;
    std::vector<double> scales;
    for (std::size_t i = 0; i < count; ++i) scales.push_back(bytes.in(1, 100) / 64.0);
    const Quantizer q = make<Quantizer>(qquantizer_create, storage.dtype,
                                        channels ? QTN_PER_CHANNEL_SYMMETRIC : QTN_PER_TENSOR_SYMMETRIC, axis,
                                        scales.data(), nullptr, count, nullptr);
    if (!q) return;
    whole = make<Tensor>(qtensor_quantize, whole.get(), q.get());
    require(whole != nullptr, std::string("quantizing: ") + qerror_message());
    const Tensor reals = make<Tensor>(qtensor_dequantize, whole.get());
    const auto *values = static_cast<const float *>(qtensor_data(reals.get()));
    storage.reals.assign(values, values + count_of(shape));
  }
  View base{std::move(whole), {shape, {}}};
  for (std::size_t i = 0; i < count_of(shape); ++i) {
    base.shown.places.push_back(i);
    storage.codes.push_back(code_at(qtensor_data(base.tensor.get()), i, bits_of(storage.dtype)));
  }
  check(base, storage, "the whole");
  View view{make<Tensor>(qtensor_share, base.tensor.get()), base.shown};
  bool shares = true;  // not known any more behind what may copy
  for (int steps = bytes.in(1, 16); steps > 0; --steps) {
    const std::uint8_t kind = bytes.byte() % 7;
    if (kind == 6) {
      if (shares) write(view, storage, bytes.byte());
    } else if (advance(view, kind, bytes) && (kind == 3 || kind == 4)) {
      shares = false;
    }
    check(view, storage, "a view");
    check(base, storage, "the whole");
  }
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{64} << 20, fuzz::test)
