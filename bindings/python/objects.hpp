// SPDX-License-Identifier: Apache-2.0
// Objects of the wrapped classes, by what SWIG has generated before: this file is part of the module only.
#pragma once

#include <cstring>

#include "buffer.hpp"

namespace qpy {

/// NULL for another class, without an exception.
template <class T>
T *pointer(PyObject *self, swig_type_info *type, int flags) {
  void *found = nullptr;
  return SWIG_IsOK(SWIG_ConvertPtr(self, &found, type, flags)) ? static_cast<T *>(found) : nullptr;
}

/// A copy of the C++ object behind one of Python; a closed one is an error.
template <class T>
bool object(PyObject *self, swig_type_info *type, const char *name, T &out) {
  const T *found = pointer<T>(self, type, 0);
  if (!found) {
    const char *const wanted = std::strrchr(type->str, ':') + 1;  // "Tensor *"
    PyErr_Format(PyExc_TypeError, "%s is of type '%s', not %s", name, type_name(self).c_str(),
                 std::string(wanted, std::strcspn(wanted, " ")).c_str());
    return false;
  }
  out = *found;
  if (!out) raise(QTN_ESTATE, (type_name(self) + " is closed").c_str());
  return static_cast<bool>(out);
}

template <class T>
PyObject *new_object(T value, swig_type_info *type) {
  if (!value) Py_RETURN_NONE;
  return SWIG_NewPointerObj(new T(std::move(value)), type, SWIG_POINTER_OWN);
}

/// The base class of tensors, which shows their memory.
inline PyTypeObject *tensor_base = nullptr;

/// Faster than asking SWIG, which looks for an attribute that arrays do not have.
inline bool is_tensor(PyObject *object) { return PyType_IsSubtype(Py_TYPE(object), tensor_base); }

/// What has no buffer that a tensor can be over: qtensor._arrays makes a tensor of it, or says why there is none.
inline bool foreign_tensor(PyObject *from, const char *name, qtn::Tensor &out) {
  static PyObject *const convert = borrowed("qtensor._arrays", "foreign");
  const Ref made(convert ? PyObject_CallFunction(convert, "Os", from, name) : nullptr);
  return made && object(made.get(), SWIGTYPE_p_qtn__Tensor, name, out);
}

/// A tensor, an array of whatever library, or None for one that is absent.
inline bool tensor(PyObject *from, const char *name, qtn::Tensor &out) {
  if (from == Py_None) return true;
  if (is_tensor(from)) return object(from, SWIGTYPE_p_qtn__Tensor, name, out);
  if (PyObject_CheckBuffer(from)) out = tensor_of_buffer(from, name, true);
  if (out) return true;
  PyErr_Clear();
  return foreign_tensor(from, name, out);
}

/// A configuration, the name of a recipe, or settings by selector.
inline bool config(PyObject *from, swig_type_info *type, qtn::Config &out) {
  if (pointer<qtn::Config>(from, type, 0)) return object(from, type, "config", out);
  static PyObject *const convert = borrowed("qtensor._callbacks", "config_of");
  const Ref made(convert ? PyObject_CallFunctionObjArgs(convert, from, nullptr) : nullptr);
  return made && object(made.get(), type, "config", out);
}

/// Whether this is one array, where a sequence of them is wanted.
inline bool is_array(PyObject *object) {
  if (PyList_Check(object) || PyTuple_Check(object)) return false;
  return PyObject_CheckBuffer(object) || PyObject_HasAttrString(object, "__dlpack__") ||
         PyObject_HasAttrString(object, "__array__");
}

inline bool tensors(PyObject *from, const char *name, qtn::Tensors &out) {
  if (is_array(from)) {
    PyErr_Format(PyExc_TypeError, "%s is of type '%s', not a sequence of tensors", name, type_name(from).c_str());
    return false;
  }
  const Ref list = items(from, name, "tensors");
  if (!list) return false;
  const Py_ssize_t count = PyList_Size(list.get());
  out.resize(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *item = PyList_GetItem(list.get(), i);
    std::string of;  // only of what may be refused, for a name costs time
    if (!PyObject_CheckBuffer(item)) of = std::string(name) + "[" + std::to_string(i) + "]";
    if (!tensor(item, of.empty() ? name : of.c_str(), out[static_cast<size_t>(i)])) return false;
  }
  return true;
}

/// A list of what `convert` makes of each tensor.
template <class F>
PyObject *list_of(qtn::Tensors tensors, F &&convert) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; list && i < tensors.size(); ++i) {
    PyObject *item = convert(std::move(tensors[i]));
    if (!item) return nullptr;
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list.release();
}

inline PyObject *new_tensor(qtn::Tensor tensor) { return new_object(std::move(tensor), SWIGTYPE_p_qtn__Tensor); }

inline PyObject *list_of_tensors(qtn::Tensors tensors) { return list_of(std::move(tensors), new_tensor); }

/// Attributes as a dict of values of their kinds; lists of numbers are tuples.
inline PyObject *dict_of(const qtn::Attrs &attrs) {
  Ref dict(PyDict_New());
  for (size_t i = 0; dict && i < attrs.count(); ++i) {
    const std::string key = attrs.key(i), kind = attrs.kind(key);
    const Ref value(kind == "int"      ? PyLong_FromLongLong(attrs.get_int(key))
                    : kind == "float"  ? PyFloat_FromDouble(attrs.get_float(key))
                    : kind == "string" ? text_of(attrs.get_string(key))
                    : kind == "ints"   ? tuple_of(attrs.get_ints(key))
                    : kind == "floats" ? tuple_of(attrs.get_floats(key))
                                       : new_object(attrs.get_tensor(key), SWIGTYPE_p_qtn__Tensor));
    if (!value || PyDict_SetItemString(dict.get(), key.c_str(), value.get()) != 0) return nullptr;
  }
  return dict.release();
}

inline PyObject *bytes_of(const qtn::Tensor &contiguous) {
  return PyBytes_FromStringAndSize(static_cast<const char *>(contiguous.data()),
                                   static_cast<Py_ssize_t>(contiguous.nbytes()));
}

// --- tensors as buffers

inline int get_buffer(PyObject *self, Py_buffer *view, int flags) {
  view->obj = nullptr;
  qtn::Tensor shown;
  const bool done =
      guarded([&] { return object(self, SWIGTYPE_p_qtn__Tensor, "self", shown) && show(self, shown, view, flags); });
  return done ? 0 : -1;
}

inline PyObject *buffer_type() {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void *>(get_buffer)},
                                {Py_bf_releasebuffer, reinterpret_cast<void *>(unshow)},
                                {0, nullptr}};
  static PyType_Spec spec = {"qtensor._core.Buffer", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject *type = PyType_FromSpec(&spec);
  tensor_base = reinterpret_cast<PyTypeObject *>(type);
  return type;
}

// --- tensors as arrays

/// What an array is over: the memory of a tensor, without the rest of a Tensor, which takes longer to make. Its views take
/// no memory: where they failed, NumPy would make an array of one object of it.
struct Memory {
  PyObject ob_base;
  Shown shown;
};

inline int get_memory(PyObject *self, Py_buffer *view, int flags) {
  view->obj = nullptr;
  return show(self, reinterpret_cast<Memory *>(self)->shown, view, flags) ? 0 : -1;
}

inline void free_memory(PyObject *self) {
  PyTypeObject *const type = Py_TYPE(self);
  reinterpret_cast<Memory *>(self)->shown.~Shown();
  PyObject_Free(self);
  Py_DECREF(type);
}

inline PyObject *memory_of(qtn::Tensor tensor) {
  Shown shown{};
  if (!look_at(std::move(tensor), shown)) return nullptr;
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void *>(get_memory)},
                                {Py_tp_dealloc, reinterpret_cast<void *>(free_memory)},
                                {0, nullptr}};
  static PyType_Spec spec = {"qtensor._core.Memory", sizeof(Memory), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static PyObject *type = nullptr;
  if (!type) type = PyType_FromSpec(&spec);
  auto *memory = type ? PyObject_New(Memory, reinterpret_cast<PyTypeObject *>(type)) : nullptr;
  if (memory) new (&memory->shown) Shown(std::move(shown));
  return reinterpret_cast<PyObject *>(memory);
}

/// An array over the memory of a tensor; what no buffer shows, qtensor._arrays copies, or says why there is no array.
inline PyObject *array_of(qtn::Tensor tensor) {
  static PyObject *asarray = nullptr, *copied_array = nullptr;  // an import may let another thread in here
  if (!asarray) asarray = borrowed("numpy", "asarray");
  if (!copied_array) copied_array = borrowed("qtensor._arrays", "copied_array");
  if (!asarray || !copied_array) return nullptr;
  const bool shows = format_of(tensor.use()) != nullptr;
  const Ref object(shows ? memory_of(std::move(tensor)) : new_tensor(std::move(tensor)));
  return object ? PyObject_CallFunctionObjArgs(shows ? asarray : copied_array, object.get(), nullptr) : nullptr;
}

/// Tensors that Python gets as arrays.
struct Arrays {
  qtn::Tensors tensors;
};

inline PyObject *list_of_arrays(Arrays arrays) { return list_of(std::move(arrays.tensors), array_of); }

// --- DLPack

/// A capsule that nobody has taken: the structure goes back by the way that consumers take.
template <class Managed>
void drop(PyObject *capsule, const char *name, qtn::Tensor (*consume)(Managed *)) noexcept {
  if (!PyCapsule_IsValid(capsule, name)) return;
  try {
    consume(static_cast<Managed *>(PyCapsule_GetPointer(capsule, name)));
  } catch (const qtn::Error &) {  // out of memory: leaked
  }
}

inline PyObject *capsule_of(const qtn::Tensor &tensor, bool versioned) {
  if (versioned)
    return PyCapsule_New(tensor.to_dlpack_versioned(), "dltensor_versioned", [](PyObject *capsule) {
      drop(capsule, "dltensor_versioned", qtn::Tensor::from_dlpack_versioned);
    });
  return PyCapsule_New(tensor.to_dlpack(), "dltensor",
                       [](PyObject *capsule) { drop(capsule, "dltensor", qtn::Tensor::from_dlpack); });
}

inline qtn::Tensor tensor_of_capsule(PyObject *capsule) {
  qtn::Tensor tensor;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    tensor = qtn::Tensor::from_dlpack_versioned(
        static_cast<DLManagedTensorVersioned *>(PyCapsule_GetPointer(capsule, "dltensor_versioned")));
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
  } else {
    auto *managed = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(capsule, "dltensor"));
    if (!managed) throw Raised();
    tensor = qtn::Tensor::from_dlpack(managed);
    PyCapsule_SetName(capsule, "used_dltensor");
  }
  return tensor;
}

}  // namespace qpy
