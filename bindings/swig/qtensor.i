// SPDX-License-Identifier: Apache-2.0
// The wrapped C++ header, for every language: what languages see of it, and under which names. How values look in a
// language, how exceptions and callbacks cross, its own file says, which this one includes before the header.
//
// A language file defines
//   QTN_LANGUAGE_OBJECT(Class)   what a class with a handle needs: copies of `self`, close(), absent values
//   QTN_OF_MODEL(Class)          one that is made of a model, and remembers its inputs
%module(directors="1") core

%{
#include "qtensor/qtensor.hpp"
%}

%include <stdint.i>
%include <std_string.i>
#ifndef SWIGCSHARP  // which has exceptions of its own
%include <exception.i>
#endif

// --- what no language sees: handles, memory, and lists that are values of the language

%ignore qtn::detail;
%ignore qtn::Error;
%ignore qtn::Ints;
%ignore qtn::Doubles;
%ignore qtn::Bytes;
%ignore qtn::Blob;
%ignore *::operator bool;
%ignore *::operator[];
%ignore qtn::Tensor::wrap;
%ignore qtn::Tensor::floats;
%ignore qtn::Tensor::int64s;
%ignore qtn::Tensor::as;
%ignore qtn::Tensor::data;
%ignore qtn::Tensor::data_mut;
%ignore qtn::Tensor::to_dlpack;
%ignore qtn::Tensor::to_dlpack_versioned;
%ignore qtn::Tensor::from_dlpack;
%ignore qtn::Tensor::from_dlpack_versioned;
%ignore qtensor_deleter;
%ignore qtensor_deleter_cb;
%ignore qmodel_sample_cb;
%ignore qmodel_progress_cb;
%ignore qmodel_batch_cb;
%ignore qmodel_training_cb;
%ignore qop_call_cb;
%ignore qop_destroy_cb;
%ignore qanswer;
%ignore QTN_CONTINUE;
%ignore QTN_STOP;
%ignore QTN_CANCEL;
%ignore QTN_ANSWER_FORCE32;
%ignore qtn::Call::Call;
%ignore qtn::Call::get;
%nodefaultctor qtn::Call;
%nodefaultdtor qtn::Call;
%nodefaultctor qtn::Lib;
%nodefaultctor qtn::Op;
%nodefaultdtor qtn::Lib;
%nodefaultdtor qtn::Op;

// --- objects are made by constructors

%define QTN_CONSTRUCTOR(Class, Parameters, Arguments...)
%ignore qtn::Class::create;
%extend qtn::Class {
  Class(Parameters) { return new qtn::Class(qtn::Class::create(Arguments)); }
}
%enddef

// An object without a handle, which the default constructor makes, is an absent argument in C++, and a closed object in
// other languages.
%define QTN_OBJECT(Class)
%ignore qtn::Class::Class();
%ignore qtn::Class::get;
%ignore qtn::Class::use;
%ignore qtn::Class::adopt;
QTN_LANGUAGE_OBJECT(Class)
%enddef

// --- callbacks

%feature("director") qtn::Samples;
%feature("director") qtn::Progress;
%feature("director") qtn::Batches;
%feature("director") qtn::TrainingProgress;
%feature("director") qtn::Operator;

#if defined(SWIGPYTHON)
%include "../python/python.i"
#elif defined(SWIGJAVA)
%include "../java/java.i"
#elif defined(SWIGCSHARP)
%include "../csharp/csharp.i"
#endif

QTN_OBJECT(Tensor)
QTN_OBJECT(Quantizer)
QTN_OBJECT(Observer)
QTN_OBJECT(Config)
QTN_OBJECT(Model)
QTN_OBJECT(Session)
QTN_OBJECT(Layer)
QTN_OBJECT(Trainer)

QTN_OF_MODEL(Session)
QTN_OF_MODEL(Trainer)

QTN_CONSTRUCTOR(Quantizer,
                %arg(qtn::DType dtype, qtn::Scheme scheme, int32_t axis, qtn::Doubles scales,
                     qtn::Ints zero_points = {}, const qtn::Attrs &attrs = {}),
                dtype, scheme, axis, scales, zero_points, attrs)
QTN_CONSTRUCTOR(Observer, %arg(const std::string &kind, const qtn::Attrs &attrs = {}), kind, attrs)
QTN_CONSTRUCTOR(Config, %arg(const std::string &name), name)
QTN_CONSTRUCTOR(Session, %arg(const qtn::Model &model, const qtn::Attrs &attrs = {}), model, attrs)
QTN_CONSTRUCTOR(Layer,
                %arg(const std::string &kind, const qtn::Tensor &weight, const qtn::Tensor &bias = {},
                     const qtn::Config *config = nullptr, const qtn::Quantizer &x_quantizer = {},
                     const qtn::Quantizer &out_quantizer = {}, const qtn::Attrs &attrs = {}),
                kind, weight, bias, config ? *config : qtn::Config(), x_quantizer, out_quantizer, attrs)
QTN_CONSTRUCTOR(Trainer, %arg(const qtn::Model &model, const qtn::Attrs &attrs = {}), model, attrs)

// Null in place of settings is what NULL is in C.
%ignore qtn::Config::set;
%ignore qtn::Lib::set_limits;
%ignore qtn::Trainer::set;
%ignore qtn::Trainer::set_group;
#ifdef SWIGPYTHON
%rename(set) qtn::Config::set_;
%rename(set_limits) qtn::Lib::set_limits_;
%rename(set) qtn::Trainer::set_;
%rename(set_group) qtn::Trainer::set_group_;
#endif
%extend qtn::Config {
  qtn::Config &set_(const std::string &selector, const qtn::Attrs &settings) {
    return settings.get() ? $self->set(selector, settings) : $self->leave_in_float(selector);
  }
}
%extend qtn::Lib {
  static void set_limits_(const qtn::Attrs &limits = {}) {
    limits.get() ? qtn::Lib::set_limits(limits) : qtn::Lib::set_limits();
  }
}
%extend qtn::Trainer {
  void set_(const qtn::Attrs &attrs) {
    attrs.get() ? $self->set(attrs) : qtn::detail::check(qtrainer_set($self->get(), nullptr));
  }
  void set_group_(const std::string &selector, const qtn::Attrs &settings) {
    settings.get() ? $self->set_group(selector, settings)
                   : qtn::detail::check(qtrainer_set_group($self->get(), selector.c_str(), nullptr));
  }
}

%include "qtensor/types.h"
%include "qtensor/qtensor.hpp"
