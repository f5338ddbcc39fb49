// SPDX-License-Identifier: Apache-2.0
// Memory that Python and tensors share: arrays become tensors, tensors show themselves as buffers, neither is copied.
#pragma once

#include <cstring>

#include "values.hpp"

namespace qpy {

/// The codes of Python's struct module on a machine whose long has 8 bytes.
struct Format {
  qdtype dtype;
  char code;
  Py_ssize_t size;
};
constexpr Format kFormats[] = {{QTN_FLOAT32, 'f', 4}, {QTN_UINT8, 'B', 1},  {QTN_INT8, 'b', 1},   {QTN_UINT16, 'H', 2},
                               {QTN_INT16, 'h', 2},   {QTN_INT32, 'i', 4},  {QTN_INT64, 'q', 8},  {QTN_INT64, 'l', 8},
                               {QTN_UINT32, 'I', 4},  {QTN_UINT64, 'Q', 8}, {QTN_UINT64, 'L', 8}, {QTN_BOOL, '?', 1},
                               {QTN_FLOAT16, 'e', 2}, {QTN_FLOAT64, 'd', 8}};

/// 0 for a type that tensors do not have.
inline qdtype dtype_of(const char *format) {
  if (!format) return QTN_UINT8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  for (const Format &f : kFormats)
    if (format[0] == f.code && format[1] == '\0') return f.dtype;
  return static_cast<qdtype>(0);
}

/// NULL for a type that buffers do not have.
inline const Format *format_of(qdtype dtype) {
  for (const Format &f : kFormats)
    if (f.dtype == dtype) return &f;
  return nullptr;
}

// --- arrays as tensors

/// The deleter of tensors over a buffer: any thread may drop the last of them.
inline void release_buffer(void *, void *view) {
  if (!Py_IsInitialized()) return;  // the memory goes with the process
  const PyGILState_STATE state = PyGILState_Ensure();
  PyBuffer_Release(static_cast<Py_buffer *>(view));
  delete static_cast<Py_buffer *>(view);
  PyGILState_Release(state);
}

struct ReleaseView {
  void operator()(Py_buffer *view) const { release_buffer(nullptr, view); }
};

/// Whether a tensor can be over this memory.
inline bool can_share(const Py_buffer &view) {
  return PyBuffer_IsContiguous(&view, 'C') && !view.readonly &&
         reinterpret_cast<uintptr_t>(view.buf) % static_cast<uintptr_t>(view.itemsize) == 0;
}

/// A tensor over the memory of an array. What is read-only, not aligned or has strides of its own is copied where
/// `may_copy`. `dtype` says what elements are that buffers have no format for. Absent, with a Python exception set,
/// where the array has no buffer, or elements that tensors do not have.
inline qtn::Tensor tensor_of_buffer(PyObject *object, const char *name, bool may_copy,
                                    qdtype dtype = static_cast<qdtype>(0)) {
  auto fresh = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object, fresh.get(), PyBUF_FULL_RO) != 0) return qtn::Tensor();
  std::unique_ptr<Py_buffer, ReleaseView> view(fresh.release());
  if (!dtype) dtype = dtype_of(view->format);
  // NumPy shows a single date or span of time as its bytes, and arrays of them not at all.
  if (dtype == QTN_UINT8 && view->ndim == 1 && view->len == 8 && type_name(object).find("time") != std::string::npos) {
    PyErr_Format(PyExc_TypeError, "%s is of type '%s', which tensors do not have", name, type_name(object).c_str());
    return qtn::Tensor();
  }
  if (!dtype) {
    PyErr_Format(PyExc_TypeError, "%s has elements of format \"%s\", which tensors do not have", name, view->format);
    return qtn::Tensor();
  }
  const std::vector<int64_t> shape(view->shape, view->shape + view->ndim);
  const auto nbytes = static_cast<size_t>(view->len);
  if (nbytes > 0 && !may_copy && (view->readonly || !PyBuffer_IsContiguous(view.get(), 'C'))) {
    PyErr_Format(PyExc_ValueError, "%s is %s: its memory cannot be shared", name,
                 view->readonly ? "read-only" : "not C-contiguous");
    return qtn::Tensor();
  }
  if (nbytes > 0 && (!may_copy || can_share(*view))) {
    const qtn::Tensor tensor = qtn::Tensor::wrap(dtype, shape, view->buf, nbytes, release_buffer, view.get());
    (void)view.release();
    return tensor;
  }
  qtn::Tensor copy = qtn::Tensor::create(dtype, shape);
  if (PyBuffer_ToContiguous(copy.data_mut(), view.get(), view->len, 'C') != 0) return qtn::Tensor();
  return copy;
}

// --- tensors as buffers

/// What a view shows, and keeps: the tensor, whatever becomes of the object it was asked of.
struct Shown {
  qtn::Tensor tensor;
  void *data;
  Py_ssize_t nbytes, itemsize;
  int ndim;
  char format[2] = {};
  Py_ssize_t shape[8], strides[8];
};

inline bool refuse(const char *why) {
  PyErr_SetString(PyExc_BufferError, why);
  return false;
}

/// Whether `view`, complete, is what `flags` ask for; leaves out what they do not.
inline bool narrow(Py_buffer *view, int flags) {
  const auto asks = [flags](int flag) { return (flags & flag) == flag; };
  if ((!asks(PyBUF_STRIDES) || asks(PyBUF_C_CONTIGUOUS)) && !PyBuffer_IsContiguous(view, 'C'))
    return refuse("the tensor is not C-contiguous: ask contiguous()");
  if (asks(PyBUF_F_CONTIGUOUS) && !PyBuffer_IsContiguous(view, 'F')) return refuse("the tensor is not F-contiguous");
  if (asks(PyBUF_ANY_CONTIGUOUS) && !PyBuffer_IsContiguous(view, 'A')) return refuse("the tensor is not contiguous");
  if (!asks(PyBUF_FORMAT)) view->format = nullptr;
  if (!asks(PyBUF_ND)) view->shape = nullptr;
  if (!asks(PyBUF_STRIDES)) view->strides = nullptr;
  return true;
}

/// NULL for a tensor that no buffer shows.
inline const Format *format_of(const qtensor *t) {
  return qtensor_quantizer(t) ? nullptr : format_of(qtensor_dtype(t));
}

/// Fills in what a view shows. false, with a Python exception set, for a tensor that no buffer shows.
inline bool look_at(qtn::Tensor tensor, Shown &shown) {
  shown.tensor = std::move(tensor);
  const auto used = shown.tensor.use();  // once, which takes less time than in each member
  qtensor *const t = used;
  const Format *format = format_of(t);
  if (!format) {
    PyErr_Format(PyExc_BufferError, "a tensor of %s%s is no array: ask int_repr() or dequantize()",
                 qtensor_quantizer(t) ? "quantized " : "", qdtype_name(qtensor_dtype(t)));
    return false;
  }
  shown.format[0] = format->code;
  shown.itemsize = format->size;
  shown.nbytes = static_cast<Py_ssize_t>(qtensor_nbytes(t));
  const size_t rank = qtensor_rank(t);
  shown.ndim = static_cast<int>(rank);
  const int64_t *const shape = qtensor_shape(t), *const strides = qtensor_strides(t);
  for (size_t i = 0; i < rank; ++i) {
    shown.shape[i] = shape[i];
    shown.strides[i] = strides[i] * format->size;
  }
  qtn::detail::check(qtensor_data_mut(&shown.data, t));
  return true;
}

inline bool show(PyObject *self, Shown &shown, Py_buffer *view, int flags) {
  view->buf = shown.data;
  view->len = shown.nbytes;
  view->itemsize = shown.itemsize;
  view->readonly = 0;
  view->ndim = shown.ndim;
  view->format = shown.format;
  view->shape = shown.shape;
  view->strides = shown.strides;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  if (!narrow(view, flags)) return false;
  Py_INCREF(self);
  view->obj = self;
  return true;
}

/// A view with a memory of its own, which unshow() frees.
inline bool show(PyObject *self, const qtn::Tensor &tensor, Py_buffer *view, int flags) {
  auto shown = std::make_unique<Shown>();
  if (!look_at(tensor, *shown) || !show(self, *shown, view, flags)) return false;
  view->internal = shown.release();
  return true;
}

inline void unshow(PyObject *, Py_buffer *view) { delete static_cast<Shown *>(view->internal); }

}  // namespace qpy
