// SPDX-License-Identifier: Apache-2.0
// Python's part of the module. The package `qtensor` adds its sugar in _mixins.py, from whose classes these inherit.

%{
#include "objects.hpp"
%}

%init %{
  if (PyObject *buffer = qpy::buffer_type()) PyModule_AddObject(m, "Buffer", buffer);
%}

%pythonbegin %{
import qtensor._mixins
%}

%feature("kwargs");
%feature("compactdefaultargs");
%feature("autodoc", "1");  // from which stubs.py makes core.pyi
%rename("$ignore", %$isenumitem) "";
%ignore qtn::Attrs;

%exception {
  try {
    $action
  } catch (...) {
    qpy::raise_current();
    SWIG_fail;
  }
}
%feature("director:except") {
  throw qpy::Raised();
}
// What an operator raises is said to the call, which takes memory: where there is none, this is what comes here.
%define QTN_DIRECTOR_OUT_OF_MEMORY(Method)
%feature("director:except") qtn::Operator::Method {
  if (!PyErr_ExceptionMatches(PyExc_MemoryError)) throw qpy::Raised();
  PyErr_Clear();
  throw std::bad_alloc();
}
%enddef
QTN_DIRECTOR_OUT_OF_MEMORY(infer)
QTN_DIRECTOR_OUT_OF_MEMORY(run)
QTN_DIRECTOR_OUT_OF_MEMORY(run_quantized)

%include "gil.i"
%include "typemaps.i"

// --- objects

%define QTN_LANGUAGE_OBJECT(Class)
// A destructor ($disown) and close() work on the object, all else on a copy, which stays even if another thread closes that.
%typemap(in) qtn::Class *self (qtn::Class storage), const qtn::Class *self (qtn::Class storage) {
  if ($disown)
    $1 = qpy::pointer<qtn::Class>($input, $1_descriptor, $disown);
  else if (qpy::guarded([&] { return qpy::object($input, $1_descriptor, "self", storage); }))
    $1 = &storage;
  if (!$1) SWIG_fail;
}
%typemap(in) qtn::Class *closing {
  $1 = qpy::pointer<qtn::Class>($input, $1_descriptor, 0);
  if (!$1) SWIG_fail;
}
%typemap(out) qtn::Class {
  $result = qpy::guarded([&] { return qpy::new_object(std::move($1), $&1_descriptor); });
}
// A setter that returns its object, for chains.
%typemap(out) qtn::Class & {
  $result = qpy::guarded([&] { return qpy::new_object(*$1, $1_descriptor); });
}
%extend qtn::Class {
  static void _close(qtn::Class *closing) {
    *closing = qtn::Class();
  }
}
%feature("python:abc", "qtensor._mixins.Class") qtn::Class;
%extend qtn::Class {
%pythoncode %{
    __repr__ = qtensor._mixins.Class.__repr__
%}
}
%enddef

%define QTN_ARGUMENT(Class)
%typemap(in) const qtn::Class & (qtn::Class storage) {
  if (!qpy::guarded([&] { return qpy::object($input, $1_descriptor, "$1_name", storage); })) SWIG_fail;
  $1 = &storage;
}
%enddef
QTN_ARGUMENT(Observer)
QTN_ARGUMENT(Model)
// Also the name of a recipe, or settings by selector.
%typemap(in) const qtn::Config & (qtn::Config storage) {
  if (!qpy::guarded([&] { return qpy::config($input, $1_descriptor, storage); })) SWIG_fail;
  $1 = &storage;
}
// One that may be absent.
%typemap(in) const qtn::Config *config (qtn::Config storage) {
  if ($input != Py_None && !qpy::guarded([&] { return qpy::config($input, $descriptor(qtn::Config *), storage); })) SWIG_fail;
  $1 = &storage;
}
%typemap(in) const qtn::Quantizer & (qtn::Quantizer storage) {
  if ($input != Py_None && !qpy::guarded([&] { return qpy::object($input, $1_descriptor, "$1_name", storage); })) SWIG_fail;
  $1 = &storage;
}

// --- accessors are properties

%define QTN_PROPERTY(Class, Name, Type)
%feature("shadow") qtn::Class::Name %{
    Name: "Type" = property($action)
%}
%enddef

QTN_PROPERTY(Tensor, dtype, DType)
QTN_PROPERTY(Tensor, rank, int)
QTN_PROPERTY(Tensor, shape, %arg(tuple[int, ...]))
QTN_PROPERTY(Tensor, strides, %arg(tuple[int, ...]))
QTN_PROPERTY(Tensor, numel, int)
QTN_PROPERTY(Tensor, nbytes, int)
QTN_PROPERTY(Tensor, quantizer, Quantizer | None)
QTN_PROPERTY(Quantizer, dtype, DType)
QTN_PROPERTY(Quantizer, scheme, Scheme)
QTN_PROPERTY(Quantizer, axis, int)
QTN_PROPERTY(Quantizer, count, int)
QTN_PROPERTY(Quantizer, scales, %arg(tuple[float, ...]))
QTN_PROPERTY(Quantizer, zero_points, %arg(tuple[int, ...]))
QTN_PROPERTY(Quantizer, float_zero_points, %arg(tuple[float, ...]))
QTN_PROPERTY(Quantizer, block_size, int)
QTN_PROPERTY(Quantizer, quant_min, int)
QTN_PROPERTY(Quantizer, quant_max, int)
QTN_PROPERTY(Quantizer, numerics, str)
QTN_PROPERTY(Model, input_count, int)
QTN_PROPERTY(Model, output_count, int)
QTN_PROPERTY(Model, tensor_count, int)
QTN_PROPERTY(Session, output_count, int)
QTN_PROPERTY(Layer, weight, Tensor)
QTN_PROPERTY(Layer, bias, Tensor | None)
QTN_PROPERTY(Trainer, parameter_count, int)
QTN_PROPERTY(Trainer, buffer_count, int)

// --- an index is that of something that there is

%define QTN_INDEX(Class, Name, Count, Noun)
%feature("pythonprepend") qtn::Class::Name %{
    qtensor._mixins.position(Count, Noun, *args, **kwargs)
%}
%enddef
QTN_INDEX(Model, input_name, self.input_count, "input")
QTN_INDEX(Model, input_dtype, self.input_count, "input")
QTN_INDEX(Model, input_shape, self.input_count, "input")
QTN_INDEX(Model, output_name, self.output_count, "output")
QTN_INDEX(Model, tensor_name, self.tensor_count, "tensor")
QTN_INDEX(Trainer, parameter_name, self.parameter_count, "parameter")
QTN_INDEX(Trainer, parameter, None, "parameter")
QTN_INDEX(Trainer, gradient, None, "parameter")
QTN_INDEX(Trainer, buffer_name, self.buffer_count, "buffer")
QTN_INDEX(Trainer, buffer, None, "buffer")

// --- what the package wraps once more: JSON, arrays, callbacks

%rename(_item) qtn::Tensor::item;
%rename(_inspect) qtn::Model::inspect;
%rename(_inspect) qtn::Tensor::inspect;
%rename(_create) qtn::Tensor::create;
%rename(_run) qtn::Session::run;
%rename(_profile) qtn::Session::profile;
%rename(_bind) qtn::Session::bind;
%rename(_step) qtn::Trainer::step;
%rename(_backward) qtn::Trainer::backward;
%rename(_evaluate) qtn::Trainer::evaluate;
%rename(_calibrate) qtn::Model::calibrate;
%rename(_quantize) qtn::Model::quantize;
%rename(_quantize_qat) qtn::Model::quantize_qat;
%rename(_report_summary) qtn::Model::report_summary;
%feature("pythonappend") qtn::Layer::Layer "self._remember(*args, **kwargs)"
%define QTN_OF_MODEL(Class)
%feature("pythonappend") qtn::Class::Class "self._remember(*args, **kwargs)"
%enddef
%extend qtn::Session {
  qpy::Arrays _arrays(const qtn::Tensors &inputs) const { return {$self->run(inputs)}; }
}
%extend qtn::Tensor {
  static qtn::Tensor _of(PyObject *value, const std::string &name) {
    qtn::Tensor tensor;
    if (!qpy::tensor(value, name.c_str(), tensor)) throw qpy::Raised();
    return tensor;
  }
  static qtn::Tensor _from_buffer(PyObject *array, bool may_copy, qtn::DType dtype = static_cast<qtn::DType>(0)) {
    if (!PyObject_CheckBuffer(array)) {
      PyErr_Format(PyExc_TypeError, "array is of type '%s', which has no buffer: as_tensor() takes others, too",
                   qpy::type_name(array).c_str());
      throw qpy::Raised();
    }
    const qtn::Tensor tensor = qpy::tensor_of_buffer(array, "array", may_copy, dtype);
    if (!tensor) throw qpy::Raised();
    return tensor;
  }
  static qtn::Tensor _from_capsule(PyObject *capsule) { return qpy::tensor_of_capsule(capsule); }
  PyObject *_array() const { return qpy::array_of(*$self); }
  PyObject *_bytes() const { return qpy::bytes_of($self->contiguous()); }
  PyObject *_capsule(bool versioned) const { return qpy::capsule_of(*$self, versioned); }
}
