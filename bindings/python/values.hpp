// SPDX-License-Identifier: Apache-2.0
// Values of Python as what the C++ header takes, and back. Functions that can fail return false or NULL, with a Python
// exception set that names the argument.
#pragma once

#include <climits>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "errors.hpp"

namespace qpy {

/// The name of an object's class, for a message.
inline std::string type_name(PyObject *object) {
  const Ref name(PyType_GetName(Py_TYPE(object)));
  const char *text = name ? PyUnicode_AsUTF8AndSize(name.get(), nullptr) : nullptr;
  return text ? text : "?";
}

/// Any iterable, as a list of its items.
inline Ref items(PyObject *object, const char *name, const char *wanted) {
  Ref list(PyUnicode_Check(object) || PyBytes_Check(object) ? nullptr : PySequence_List(object));
  if (!list && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError)))
    PyErr_Format(PyExc_TypeError, "%s is of type '%s', not a sequence of %s", name, type_name(object).c_str(), wanted);
  return list;
}

inline bool integer(PyObject *object, const char *name, int64_t &out) {
  const Ref number(PyNumber_Index(object));
  if (!number) {
    PyErr_Format(PyExc_TypeError, "%s is of type '%s', not an integer", name, type_name(object).c_str());
    return false;
  }
  out = PyLong_AsLongLong(number.get());
  return out != -1 || !PyErr_Occurred();
}

inline bool real(PyObject *object, const char *name, double &out) {
  out = PyFloat_AsDouble(object);
  if (out != -1 || !PyErr_Occurred()) return true;
  if (PyErr_ExceptionMatches(PyExc_TypeError))
    PyErr_Format(PyExc_TypeError, "%s is of type '%s', not a number", name, type_name(object).c_str());
  return false;
}

template <class T, class F>
bool list_of(PyObject *object, const char *name, const char *wanted, std::vector<T> &out, F &&convert) {
  const Ref list = items(object, name, wanted);
  if (!list) return false;
  const Py_ssize_t count = PyList_Size(list.get());
  out.resize(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!convert(PyList_GetItem(list.get(), i), name, out[static_cast<size_t>(i)])) return false;
  return true;
}

inline bool integers(PyObject *object, const char *name, std::vector<int64_t> &out) {
  return list_of(object, name, "integers", out, integer);
}

inline bool reals(PyObject *object, const char *name, std::vector<double> &out) {
  return list_of(object, name, "numbers", out, real);
}

inline bool text(PyObject *object, const char *name, std::string &out) {
  Py_ssize_t size = 0;
  const char *data = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
  if (data) {
    out.assign(data, static_cast<size_t>(size));
  } else if (!PyErr_Occurred()) {
    PyErr_Format(PyExc_TypeError, "%s is of type '%s', not str", name, type_name(object).c_str());
  }
  return data != nullptr;
}

/// The name of a file: str, bytes or what os.fspath takes.
inline bool path(PyObject *object, const char *, std::string &out) {
  PyObject *bytes = nullptr;
  if (!PyUnicode_FSConverter(object, &bytes)) return false;
  const Ref held(bytes);
  out.assign(PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes)));
  return true;
}

inline bool strings(PyObject *object, const char *name, std::vector<std::string> &out) {
  return list_of(object, name, "str", out, text);
}

inline bool paths(PyObject *object, const char *name, std::vector<std::string> &out) {
  return list_of(object, name, "paths", out, path);
}

inline PyObject *text_of(const std::string &s) {
  return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "surrogateescape");
}

template <class List, class F>
PyObject *tuple_of(const List &list, F &&convert) {
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(list.size)));
  for (size_t i = 0; tuple && i < list.size; ++i) {
    PyObject *item = convert(list[i]);
    if (!item) return nullptr;
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple.release();
}

inline PyObject *tuple_of(qtn::Ints list) {
  return tuple_of(list, [](int64_t value) { return PyLong_FromLongLong(value); });
}

inline PyObject *tuple_of(qtn::Doubles list) {
  return tuple_of(list, [](double value) { return PyFloat_FromDouble(value); });
}

// --- enumerations, which generate.py makes from types.h

inline PyObject *enum_type(const char *name) { return borrowed("qtensor._enums", name); }

/// A number, a member, its name, or what has such a name, as a dtype of NumPy.
inline bool enum_number(PyObject *object, const char *name, PyObject *type, int &out) {
  if (!type) return false;
  if (PyLong_Check(object)) {
    const long number = PyLong_AsLong(object);
    if (number == -1 && PyErr_Occurred()) return false;
    out = number < INT_MIN || number > INT_MAX ? INT_MAX : static_cast<int>(number);
    return true;
  }
  Ref key;
  if (PyUnicode_Check(object)) {
    Py_INCREF(object);
    key.reset(object);
  } else {
    key.reset(PyObject_GetAttrString(object, PyType_Check(object) ? "__name__" : "name"));
    PyErr_Clear();
  }
  const Ref member(key ? PyObject_GetItem(type, key.get()) : nullptr);
  const Ref value(member ? PyObject_GetAttrString(member.get(), "value") : nullptr);
  if (!value) {
    const Ref kind(PyType_GetName(reinterpret_cast<PyTypeObject *>(type)));
    PyErr_Format(key ? PyExc_ValueError : PyExc_TypeError, "%s is %R, no %S", name, object, kind.get());
    return false;
  }
  out = static_cast<int>(PyLong_AsLong(value.get()));
  return true;
}

/// The members of an enumeration by their numbers. NULL with a Python exception set.
inline PyObject *enum_members(PyObject *type) {
  const Ref all(type ? PySequence_List(type) : nullptr);
  Ref members(all ? PyDict_New() : nullptr);
  for (Py_ssize_t i = 0; members && i < PyList_Size(all.get()); ++i) {
    PyObject *member = PyList_GetItem(all.get(), i);
    const Ref value(PyObject_GetAttrString(member, "value"));
    if (!value || PyDict_SetItem(members.get(), value.get(), member) != 0) return nullptr;
  }
  return members.release();
}

inline PyObject *enum_member(PyObject *members, int number) {
  const Ref key(members ? PyLong_FromLong(number) : nullptr);
  return key ? PyObject_GetItem(members, key.get()) : nullptr;
}

// --- attributes

inline bool set_list(qtn::Attrs &attrs, const std::string &key, PyObject *value) {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  if (integers(value, key.c_str(), ints)) {
    attrs.set_ints(key, ints);
    return true;
  }
  PyErr_Clear();
  if (!reals(value, key.c_str(), floats)) return false;
  attrs.set_floats(key, floats);
  return true;
}

/// The name of an element type or a scheme, in attributes of operators its number; other values as they are.
inline PyObject *plain(PyObject *value, bool number) {
  static PyObject *const dtype = enum_type("DType"), *const scheme = enum_type("Scheme");
  for (PyObject *type : {dtype, scheme})
    if (type && Py_TYPE(value) == reinterpret_cast<PyTypeObject *>(type))
      return PyObject_GetAttrString(value, number ? "value" : "name");
  Py_INCREF(value);
  return value;
}

inline bool set_attr(qtn::Attrs &attrs, const std::string &key, PyObject *value) {
  int64_t whole = 0;
  double number = 0;
  std::string chars;
  if (PyUnicode_Check(value)) {
    if (!text(value, key.c_str(), chars)) return false;
    attrs.set_string(key, chars);
  } else if (PyIndex_Check(value) && !PySequence_Check(value)) {
    if (!integer(value, key.c_str(), whole)) return false;
    attrs.set_int(key, whole);
  } else if (PyNumber_Check(value) && !PySequence_Check(value)) {
    if (!real(value, key.c_str(), number)) return false;
    attrs.set_float(key, number);
  } else if (!PySequence_Check(value) || !set_list(attrs, key, value)) {
    PyErr_Format(PyExc_TypeError, "attribute \"%s\" is of type '%s', not int, float, str, or a list of int or float",
                 key.c_str(), type_name(value).c_str());
    return false;
  }
  return true;
}

/// `function` is what they are given to.
inline bool attributes(PyObject *object, const char *name, const char *function, qtn::Attrs &attrs) {
  if (object == Py_None) return true;
  if (!PyDict_Check(object)) {
    PyErr_Format(PyExc_TypeError, "%s is of type '%s', not dict", name, type_name(object).c_str());
    return false;
  }
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  std::string chars;
  attrs = qtn::detail::some(attrs);
  while (PyDict_Next(object, &position, &key, &value)) {
    const Ref plain_value(plain(value, std::strcmp(function, "Op_run") == 0));
    if (!plain_value || !text(key, "key of an attribute", chars) || !set_attr(attrs, chars, plain_value.get()))
      return false;
  }
  return true;
}

}  // namespace qpy
