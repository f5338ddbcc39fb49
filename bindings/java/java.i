// SPDX-License-Identifier: Apache-2.0
// Java's part of the module. What the package org.qtensor adds is in the classes that these extend, src/org/qtensor/*Base.

%define %arg(Argument...)
Argument
%enddef

%include <enums.swg>
%include "typemaps.i"

%{
#include "objects.hpp"
#include "values.hpp"
%}

%pragma(java) moduleclassmodifiers="final class"
%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) jniclasscode=%{
  static {
    NativeLibrary.load();
  }
%}

%rename("%(lowercamelcase)s", %$isfunction) "";

%exception {
  try {
    $action
  } catch (...) {
    qjava::raise_current(jenv);
    return $null;
  }
}
%feature("director:except") {
  if (jenv->ExceptionCheck()) throw qjava::Raised(jenv);
}
// RegisteredOperator throws nothing, except where there is no memory in which to say what was thrown.
%define QTN_DIRECTOR_OUT_OF_MEMORY(Method)
%feature("director:except") qtn::Operator::Method {
  if (jenv->ExceptionCheck()) {
    jenv->ExceptionClear();
    throw std::bad_alloc();
  }
}
%enddef
QTN_DIRECTOR_OUT_OF_MEMORY(infer)
QTN_DIRECTOR_OUT_OF_MEMORY(run)
QTN_DIRECTOR_OUT_OF_MEMORY(run_quantized)

// --- objects

%typemap(javaclassmodifiers) SWIGTYPE "public final class"
%typemap(javafinalize) SWIGTYPE ""

// Memory goes with NativeObject, and that of directors with delete(), which the package calls.
%typemap(directordisconnect, methodname="swigDirectorDisconnect") SWIGTYPE %{
  void $methodname() {}
%}
%typemap(directorowner_release, methodname="swigReleaseOwnership") SWIGTYPE %{
  private void $methodname() {
    $jnicall;
  }
%}
%typemap(directorowner_take, methodname="swigTakeOwnership") SWIGTYPE %{
  private void $methodname() {
    $jnicall;
  }
%}
%typemap(javadestruct, methodname="delete", methodmodifiers="", parameters="") SWIGTYPE ""

%define QTN_LANGUAGE_OBJECT(Class)
%nodefaultdtor qtn::Class;
%typemap(javabase) qtn::Class "$javaclassnameBase"
%typemap(javabody) qtn::Class %{
  $javaclassname(long box) {
    super(box);
  }
%}
%typemap(javaconstruct) qtn::Class {
    this($imcall);
  }
// Every call works on a copy of the C++ object, which stays even if another thread closes that.
%typemap(in) qtn::Class *self (qtn::Class storage), const qtn::Class *self (qtn::Class storage) {
  if (!qjava::object(jenv, $input, #Class, "self", storage)) return $null;
  $1 = &storage;
}
%typemap(in) const qtn::Class & (qtn::Class storage) {
  if (!qjava::argument(jenv, $input, #Class, "$1_name", storage)) return $null;
  $1 = &storage;
}
%typemap(javain) const qtn::Class & "NativeObject.box($javainput)"
// What a constructor has made.
%typemap(out) qtn::Class * {
  $result = qjava::boxed_or_null(jenv, std::move(*$1));
  delete $1;
}
%typemap(out) qtn::Class "$result = qjava::boxed_or_null(jenv, std::move($1));"
%typemap(javaout) qtn::Class {
    long box = $jnicall;
    return box == 0 ? null : new $&javaclassname(box);
  }
// A setter that returns its object, for chains.
%typemap(out) qtn::Class & "(void)$1;"
%typemap(javaout) qtn::Class & {
    $jnicall;
    return this;
  }
%enddef

%define QTN_STATIC(Class)
%typemap(javabody) qtn::Class %{
  private $javaclassname() {}
%}
%enddef
QTN_STATIC(Lib)
QTN_STATIC(Op)

%define QTN_OF_MODEL(Class)
%typemap(javaconstruct) qtn::Class {
    this($imcall);
    remember(model);
  }
%enddef
// One that may be absent.
%typemap(javain) const qtn::Config *config "NativeObject.box($javainput)"
%typemap(in) const qtn::Config *config (qtn::Config storage) {
  if ($input && !qjava::object(jenv, $input, "Config", "config", storage)) return $null;
  $1 = &storage;
}

// --- what Javadoc says of classes; of their members finish.py makes it

%typemap(javaimports) qtn::Tensor %{
/** An n-dimensional array with an element type and, where it is quantized, a Quantizer. Views share memory. */%}
%typemap(javaimports) qtn::Quantizer %{
/** An immutable mapping real = (q - zero_point) * scale, of the whole tensor, of channels or of blocks. */%}
%typemap(javaimports) qtn::Observer %{
/** Statistics of the tensors it is shown, from which it chooses a Quantizer. */%}
%typemap(javaimports) qtn::Config %{
/** What of a model is quantized, and how: a recipe, and what set() changes of it. */%}
%typemap(javaimports) qtn::Model %{
/** A graph of ONNX operators with its weights: float, prepared, or quantized. */%}
%typemap(javaimports) qtn::Trainer %{
/** A model being trained, with its optimizer. */%}
%typemap(javaimports) qtn::Lib %{
/** The library itself. */%}
%typemap(javaimports) qtn::Session %{
/** A model packed, planned and ready to run, from many threads at once; with state, one run at a time. */%}
%typemap(javaimports) qtn::Layer %{
/** One layer with weights in integers, for programs that run a network themselves. Many threads may run one. */%}
%typemap(javaimports) qtn::Op %{
/** Operators on tensors, one at a time. */%}

// --- what the package wraps once more

%define QTN_WRAPPED(Function, Name)
%rename(Name) qtn::Function;
%javamethodmodifiers qtn::Function "";
%enddef
QTN_WRAPPED(Tensor::create, make)
QTN_WRAPPED(Tensor::reshape, reshaped)
QTN_WRAPPED(Tensor::permute, permuted)
QTN_WRAPPED(Session::run, runAll)
QTN_WRAPPED(Session::profile, profileAll)
QTN_WRAPPED(Session::bind, bindNumbers)
QTN_WRAPPED(Model::calibrate, calibrateWith)
QTN_WRAPPED(Model::load_bytes, loadBytes)
QTN_WRAPPED(Model::quantize, quantizeWith)
QTN_WRAPPED(Model::quantize_qat, quantizeQatWith)
QTN_WRAPPED(Model::report_summary, reportSummary)
QTN_WRAPPED(Trainer::evaluate, evaluateAll)
QTN_WRAPPED(Trainer::step, stepWith)
QTN_WRAPPED(Trainer::backward, backwardWith)
QTN_WRAPPED(Op::register_operator, registerOperator)
QTN_WRAPPED(Op::unregister_operator, unregisterOperator)
QTN_WRAPPED(Tensor::over, over)
QTN_WRAPPED(Tensor::memory, memory)
%feature("compactdefaultargs") qtn::Tensor::create;
%feature("compactdefaultargs") qtn::Model::quantize;
%feature("compactdefaultargs") qtn::Model::quantize_qat;
%extend qtn::Tensor {
  static qtn::Tensor over(qtn::DType dtype, qtn::Ints shape, const qtn::Quantizer &quantizer, jobject buffer, int64_t offset,
                          int64_t nbytes) {
    return qjava::tensor_of_buffer(dtype, shape, quantizer, buffer, offset, nbytes);
  }
  jobject memory() const { return qjava::buffer_of(*$self); }
}

// --- attributes come from a Map

%typemap(javaclassmodifiers) qtn::Attrs "final class"
QTN_OBJECT(Attrs)
%extend qtn::Attrs {
  // Has a handle already: what a setter makes in its copy would be lost.
  static qtn::Attrs fresh() {
    qattrs *attrs = nullptr;
    qtn::detail::check(qattrs_create(&attrs));
    return qtn::Attrs::adopt(attrs);
  }
}
%typemap(jstype) const qtn::Attrs & "java.util.Map<String, ?>"
%typemap(javain, pre="    Attrs $javainputAttrs = AttrsBase.of($javainput);", pgcppname="$javainputAttrs")
  const qtn::Attrs & "NativeObject.box($javainputAttrs)"

// --- callbacks: interfaces of Java, told by these

%define QTN_DIRECTOR(Class)
%rename(Class##Director) qtn::Class;
%typemap(javaclassmodifiers) qtn::Class "abstract class"
%typemap(javadestruct, methodname="delete", methodmodifiers="", parameters="") qtn::Class {
    $jnicall;
  }
%typemap(javabody) qtn::Class %{
  private final long swigCPtr;

  $javaclassname(long address, boolean owned) {
    swigCPtr = address;
  }

  static long getCPtr($javaclassname director) {
    return director == null ? 0 : director.swigCPtr;
  }
%}
%enddef
QTN_DIRECTOR(Samples)
QTN_DIRECTOR(Progress)
QTN_DIRECTOR(Batches)
QTN_DIRECTOR(TrainingProgress)
QTN_DIRECTOR(Operator)
// One call of such an operator, for RegisteredOperator.
%typemap(javaclassmodifiers) qtn::Call "final class"
%typemap(javabody) qtn::Call %{
  private final long swigCPtr;

  Call(long address, boolean owned) {
    swigCPtr = address;
  }

  static long getCPtr(Call call) {
    return call == null ? 0 : call.swigCPtr;
  }
%}
%ignore qtn::TrainingProgress::Answer;

%{
extern "C" {

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *) {
  qjava::vm = vm;
  JNIEnv *const jenv = qjava::env();
  const jclass object = jenv ? jenv->FindClass("org/qtensor/NativeObject") : nullptr;
  if (object) qjava::box_field = jenv->GetFieldID(object, "swigCPtr", "J");
  return qjava::box_field ? JNI_VERSION_10 : JNI_ERR;
}

JNIEXPORT void JNICALL Java_org_qtensor_NativeObject_empty(JNIEnv *, jclass, jlong box) { qjava::box_at(box)->empty(); }

JNIEXPORT void JNICALL Java_org_qtensor_NativeObject_free(JNIEnv *, jclass, jlong box) { delete qjava::box_at(box); }
}
%}
