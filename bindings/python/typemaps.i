// SPDX-License-Identifier: Apache-2.0
// Arguments and results: lists, numbers and texts of Python instead of classes for them.

%define QTN_LIST(Type, Storage, Convert)
%typemap(in) Type (Storage storage) {
  if (!qpy::guarded([&] { return Convert($input, "$1_name", storage); })) SWIG_fail;
  $1 = storage;
}
%enddef

QTN_LIST(qtn::Ints, std::vector<int64_t>, qpy::integers)
QTN_LIST(qtn::Doubles, std::vector<double>, qpy::reals)
%typemap(out) qtn::Ints, qtn::Doubles "$result = qpy::guarded([&] { return qpy::tuple_of($1); });"
%typemap(out) std::string {
  $result = qpy::text_of($1);
}

// What is converted into an object of its own, which the call refers to.
%define QTN_VALUE(Type, Convert)
%typemap(in) const Type & (Type storage) {
  if (!qpy::guarded([&] { return Convert($input, "$1_name", storage); })) SWIG_fail;
  $1 = &storage;
}
%typemap(freearg) const Type & ""
%enddef

%typemap(out) qtn::Attrs "$result = qpy::guarded([&] { return qpy::dict_of($1); });"

QTN_VALUE(qtn::Strings, qpy::strings)
QTN_VALUE(qtn::Tensor, qpy::tensor)
QTN_VALUE(qtn::Tensors, qpy::tensors)
QTN_VALUE(std::string, qpy::text)
%typemap(in) const qtn::Attrs & (qtn::Attrs storage) {
  if (!qpy::guarded([&] { return qpy::attributes($input, "$1_name", "$symname", storage); })) SWIG_fail;
  $1 = &storage;
}
%typemap(freearg) const qtn::Attrs & ""

// Files are named by what os.fspath takes.
%typemap(in) const std::string &path (std::string storage) {
  if (!qpy::guarded([&] { return qpy::path($input, "$1_name", storage); })) SWIG_fail;
  $1 = &storage;
}
%typemap(in) const qtn::Strings &parts (qtn::Strings storage) {
  if (!qpy::guarded([&] { return qpy::paths($input, "$1_name", storage); })) SWIG_fail;
  $1 = &storage;
}

// Any buffer that is contiguous, for the time of the call.
%typemap(in) qtn::Bytes (Py_buffer view) {
  view.obj = nullptr;
  if ($input != Py_None) {
    if (PyObject_GetBuffer($input, &view, PyBUF_SIMPLE) != 0) SWIG_fail;
    $1.data = view.buf;
    $1.size = static_cast<size_t>(view.len);
  }
}
%typemap(arginit) qtn::Bytes "view$argnum.obj = nullptr;"
%typemap(freearg) qtn::Bytes "if (view$argnum.obj) PyBuffer_Release(&view$argnum);"
%typemap(out) qtn::Blob {
  $result = PyBytes_FromStringAndSize(static_cast<const char *>($1.data()), static_cast<Py_ssize_t>($1.size()));
}

%define QTN_ENUM(Type, Name)
%typemap(in) Type {
  static PyObject *const type = qpy::enum_type(#Name);
  int number = 0;
  if (!qpy::enum_number($input, "$1_name", type, number)) SWIG_fail;
  $1 = static_cast<Type>(number);
}
%typemap(out) Type {
  static PyObject *const members = qpy::enum_members(qpy::enum_type(#Name));
  $result = qpy::enum_member(members, $1);
}
%enddef

QTN_ENUM(qtn::DType, DType)
QTN_ENUM(qtn::Scheme, Scheme)
QTN_ENUM(qtn::Mode, Mode)
QTN_ENUM(qtn::Status, Status)

%typemap(out) qtn::Tensors "$result = qpy::guarded([&] { return qpy::list_of_tensors($1); });"
%typemap(out) qpy::Arrays "$result = qpy::guarded([&] { return qpy::list_of_arrays($1); });"
%typemap(directorout) qtn::Tensors {
  if (!qpy::tensors($input, "result", $result)) throw qpy::Raised();
}
// A director's answer goes through an int.
%typemap(directorout) qtn::TrainingProgress::Answer {
  int64_t answer = 0;
  if (!qpy::integer($input, "an answer", answer)) throw qpy::Raised();
  $result = static_cast<qtn::TrainingProgress::Answer>(answer);
}

// The report of Model.quantize comes out with the model.
%typemap(in, numinputs = 0) std::string *report (std::string storage) "$1 = &storage;"
%typemap(argout) std::string *report {
  %append_output(qpy::text_of(*$1));
}
