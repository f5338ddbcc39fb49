// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "guard.hpp"

using namespace qtn;
using namespace qtn::capi;

namespace {

/// Memory of the caller. The deleter is set last, when nothing can fail any more.
struct Wrapped {
  void *data = nullptr;
  void *ctx = nullptr;
  qtensor_deleter_cb deleter = nullptr;

  Wrapped() = default;
  Wrapped(const Wrapped &) = delete;
  Wrapped &operator=(const Wrapped &) = delete;
  ~Wrapped() {
    if (deleter) deleter(data, ctx);
  }
};

struct Layout {
  Shape shape;
  std::size_t nbytes;
};

/// Everything about a new tensor that does not depend on where its elements are.
Layout check_layout(const char *entry, qdtype dtype, const std::int64_t *dims, std::size_t rank,
                    const qquantizer *quantizer) {
  check_dtype(entry, dtype);
  need_array(entry, dims, rank, "shape");
  const Shape shape(std::span(dims, rank));
  const std::int64_t count = element_count(shape);
  if (static_cast<std::size_t>(count) > PTRDIFF_MAX / 8)
    fail(QTN_ENOMEM, entry, ": a ", to_string(shape), " tensor does not fit in memory");
  if (quantizer) {
    const Quantizer &q = *quantizer->value;
    if (q.dtype() != dtype)
      fail(QTN_EDTYPE, entry, ": the quantizer is for ", dtype_name(q.dtype()), ", dtype is ", dtype_name(dtype));
    check_quantizer_fits(q, shape);
  }
  return {shape, storage_nbytes(dtype, count)};
}

void check_nbytes(const char *entry, const Layout &layout, qdtype dtype, std::size_t nbytes) {
  if (nbytes != layout.nbytes)
    fail(QTN_EINVAL, entry, ": nbytes is ", nbytes, ", a ", to_string(layout.shape), " tensor of ", dtype_name(dtype),
         " takes ", layout.nbytes);
}

void give(qtensor **out, Tensor t) { *out = new qtensor(std::move(t)); }

/// The shape with its one -1, if any, replaced by what the count of elements leaves for it.
Shape completed(Shape shape, const Shape &from) {
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open == shape.end()) return shape;
  *open = 1;
  const std::int64_t rest = element_count(shape), count = element_count(from);
  *open = -1;
  if (rest == 0 || count % rest != 0)
    fail(QTN_ESHAPE, "reshape: no dimension in place of -1 makes ", to_string(shape), " of the ", count,
         " elements of ", to_string(from));
  *open = count / rest;
  return shape;
}

void copy(const char *entry, qtensor &dst, const Tensor &src) {
  Tensor &to = dst.value;
  if (src.quantized() ? to.shape() != src.shape() : !src.expands_to(to.shape()))
    fail(QTN_ESHAPE, entry, ": dst is ", to_string(to.shape()), ", src is ", to_string(src.shape()));
  if (src.quantized()) {
    if (!to.quantized()) fail(QTN_EDTYPE, entry, ": src is quantized, dst is not; dequantize src first");
    if (to.dtype() != src.dtype() || to.quantizer()->scheme() != src.quantizer()->scheme())
      fail(QTN_EDTYPE, entry, ": dst and src are quantized with different dtypes or schemes");
    copy_elements(to, to.owns_same_storage(src) ? src.clone() : src);
    to = to.with_quantizer(src.quantizer());
    dst.quantizer.value = src.quantizer();
  } else {
    const Tensor wide = src.expand(to.shape());
    const Tensor values = to.quantized() ? quantize(wide, to.quantizer()) : wide;
    copy_elements(to, to.owns_same_storage(values) ? values.clone() : values);
  }
}

}  // namespace

qstatus qtensor_create(qtensor **out, qdtype dtype, const int64_t *shape, size_t rank, const qquantizer *quantizer,
                       const void *data, size_t nbytes) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    const Layout layout = check_layout(entry, dtype, shape, rank, quantizer);
    if (data) check_nbytes(entry, layout, dtype, nbytes);
    Tensor t(dtype, layout.shape, fitted(quantizer_or_none(quantizer), layout.shape));
    if (data)
      std::memcpy(t.data(), data, nbytes);
    else
      std::memset(t.data(), 0, layout.nbytes);
    give(out, std::move(t));
  });
}

qstatus qtensor_wrap(qtensor **out, qdtype dtype, const int64_t *shape, size_t rank, const qquantizer *quantizer,
                     void *data, size_t nbytes, qtensor_deleter_cb deleter, void *ctx) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    const Layout layout = check_layout(entry, dtype, shape, rank, quantizer);
    need_array(entry, data, layout.nbytes, "data");
    check_nbytes(entry, layout, dtype, nbytes);
    if (reinterpret_cast<std::uintptr_t>(data) % ((dtype_bits(dtype) + 7) / 8) != 0)
      fail(QTN_EINVAL, entry, ": data is not aligned for ", dtype_name(dtype));
    auto owner = std::make_shared<Wrapped>();
    owner->data = data;
    owner->ctx = ctx;
    Wrapped &wrapped = *owner;
    void *elements = data ? data : &wrapped;  // of nothing: a tensor without an address holds no values
    give(out, Tensor(dtype, layout.shape, contiguous_strides(layout.shape), elements, std::move(owner),
                     fitted(quantizer_or_none(quantizer), layout.shape)));
    wrapped.deleter = deleter;
  });
}

qstatus qtensor_share(qtensor **out, const qtensor *t) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    give(out, t->value);
  });
}

void qtensor_free(qtensor *t) { delete alive(t); }

qdtype qtensor_dtype(const qtensor *t) { return alive(t) ? t->value.dtype() : qdtype{}; }
size_t qtensor_rank(const qtensor *t) { return alive(t) ? t->value.rank() : 0; }
const int64_t *qtensor_shape(const qtensor *t) { return alive(t) ? t->value.shape().data() : nullptr; }
const int64_t *qtensor_strides(const qtensor *t) { return alive(t) ? t->value.strides().data() : nullptr; }
int64_t qtensor_numel(const qtensor *t) { return alive(t) ? t->value.count() : 0; }
size_t qtensor_nbytes(const qtensor *t) { return alive(t) ? t->value.nbytes() : 0; }
const qquantizer *qtensor_quantizer(const qtensor *t) {
  return alive(t) && t->value.quantized() ? &t->quantizer : nullptr;
}
const void *qtensor_data(const qtensor *t) { return alive(t) ? t->value.data() : nullptr; }

qstatus qtensor_data_mut(void **out, qtensor *t) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    *out = t->value.data();
  });
}

qstatus qtensor_quantize(qtensor **out, const qtensor *x, const qquantizer *quantizer) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, x, "x");
    need(entry, quantizer, "quantizer");
    give(out, quantize(x->value, quantizer->value));
  });
}

qstatus qtensor_dequantize(qtensor **out, const qtensor *x) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, x, "x");
    give(out, dequantize(x->value));
  });
}

qstatus qtensor_select(qtensor **out, const qtensor *t, int32_t axis, int64_t index) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    give(out, t->value.select(axis, index));
  });
}

qstatus qtensor_slice(qtensor **out, const qtensor *t, int32_t axis, int64_t start, int64_t stop, int64_t step) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    give(out, t->value.slice(axis, start, stop, step));
  });
}

qstatus qtensor_permute(qtensor **out, const qtensor *t, const int32_t *axes, size_t count) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    need_array(entry, axes, count, "axes");
    give(out, t->value.permute({axes, count}));
  });
}

qstatus qtensor_contiguous(qtensor **out, const qtensor *t) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    give(out, t->value.to_contiguous());
  });
}

qstatus qtensor_copy(qtensor *dst, const qtensor *src) {
  return guard(__func__, [&](const char *entry) {
    need(entry, dst, "dst");
    need(entry, src, "src");
    copy(entry, *dst, src->value);
  });
}

qstatus qtensor_reshape(qtensor **out, const qtensor *t, const int64_t *shape, size_t rank) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    need_array(entry, shape, rank, "shape");
    give(out, t->value.reshape(completed(Shape(std::span(shape, rank)), t->value.shape())));
  });
}

qstatus qtensor_int_repr(qtensor **out, const qtensor *t) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    if (!t->value.quantized()) fail(QTN_EDTYPE, entry, ": t is a plain ", dtype_name(t->value.dtype()), " tensor");
    give(out, t->value.with_quantizer(nullptr));
  });
}

qstatus qtensor_equal(int32_t *out, const qtensor *a, const qtensor *b) {
  if (out) *out = 0;
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, a, "a");
    need(entry, b, "b");
    *out = equal(a->value, b->value);
  });
}

qstatus qtensor_item(double *out, const qtensor *t) {
  if (out) *out = 0;
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    *out = item(t->value);
  });
}

qstatus qtensor_describe(char *buf, size_t cap, size_t *out_len, const qtensor *t) {
  if (out_len) *out_len = 0;
  if (buf && cap != 0) *buf = '\0';
  return guard(__func__, [&](const char *entry) {
    if (cap != 0) need_pointer(entry, buf, "buf");
    need(entry, out_len, "out_len");
    need(entry, t, "t");
    const std::string text = describe(t->value);
    if (cap != 0) {
      const std::size_t kept = std::min(text.size(), cap - 1);
      std::memcpy(buf, text.data(), kept);
      buf[kept] = '\0';
    }
    *out_len = text.size();
  });
}
