// SPDX-License-Identifier: Apache-2.0
// Exceptions of C++ and of Python, each as the other.
#pragma once

#include <Python.h>

#include <exception>
#include <memory>
#include <new>
#include <string>

#include "qtensor/qtensor.hpp"

namespace qpy {

struct Release {
  void operator()(PyObject *object) const { Py_XDECREF(object); }
};
using Ref = std::unique_ptr<PyObject, Release>;

/// What Python has raised, on its way through C++. The GIL is held where one is made and where it is put back.
class Raised : public std::exception {
 public:
  Raised() : held_(std::make_shared<Held>()) { PyErr_Fetch(&held_->type, &held_->value, &held_->trace); }

  void put_back() const {
    PyErr_Restore(held_->type, held_->value, held_->trace);
    held_->type = held_->value = held_->trace = nullptr;
  }
  const char *what() const noexcept override { return "an exception of Python"; }

 private:
  struct Held {
    PyObject *type, *value, *trace;
    ~Held() {
      const PyGILState_STATE state = PyGILState_Ensure();
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(trace);
      PyGILState_Release(state);
    }
  };
  std::shared_ptr<Held> held_;
};

/// A name of a module of the package; it lives as long as the module. NULL with a Python exception set.
inline PyObject *borrowed(const char *module, const char *name) {
  const Ref found(PyImport_ImportModule(module));
  const Ref object(found ? PyObject_GetAttrString(found.get(), name) : nullptr);
  return object.get();
}

/// Raises the class that the package has for a status.
inline void raise(qtn::Status status, const char *message) {
  static PyObject *const classes = borrowed("qtensor._errors", "BY_STATUS");
  const Ref number(PyLong_FromLong(status));
  PyObject *type = classes && number ? PyDict_GetItemWithError(classes, number.get()) : nullptr;
  const Ref text(PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "surrogateescape"));
  if (text) PyErr_SetObject(type ? type : PyExc_RuntimeError, text.get());
}

/// Turns the C++ exception that is being handled into one of Python.
inline void raise_current() {
  try {
    throw;
  } catch (const Raised &e) {
    e.put_back();
  } catch (const qtn::Error &e) {
    raise(e.status(), e.what());
  } catch (const std::bad_alloc &) {
    PyErr_Clear();
    raise(QTN_ENOMEM, "out of memory");
  } catch (const std::exception &e) {
    if (!PyErr_Occurred()) raise(QTN_EINTERNAL, e.what());  // SWIG's own have told Python
  }
}

/// What `f` gives, or nothing and an exception of Python: for what runs outside of %exception.
template <class F>
auto guarded(F &&f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    raise_current();
    return {};
  }
}

}  // namespace qpy
