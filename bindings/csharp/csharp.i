// SPDX-License-Identifier: Apache-2.0
// C#'s part of the module. What is written by hand stands in QTensor/*.cs, in parts of the same classes.

%{
#include "callbacks.hpp"

// Native.cs calls these by name.
extern "C" {
SWIGEXPORT void qcs_on_failure(qcs::Fail fail) { qcs::fail = fail; }
SWIGEXPORT void qcs_free(void *block) { std::free(block); }
}
%}

%pragma(csharp) imclassclassmodifiers="internal static unsafe partial class"
%pragma(csharp) moduleclassmodifiers="internal static class"

%feature("except", canthrow=1) {
  try {
    $action
  } catch (...) {
    qcs::fail_with_current();
    return $null;
  }
}

// --- names: methods, members and types in C#'s way; statuses keep theirs

%rename("%(camelcase)s", %$isfunction) "";
%rename("%(strip:[QTN_])s", %$isenumitem) "";
%rename(Float32) QTN_FLOAT32;
%rename(UInt8) QTN_UINT8;
%rename(Int8) QTN_INT8;
%rename(UInt16) QTN_UINT16;
%rename(Int16) QTN_INT16;
%rename(Int32) QTN_INT32;
%rename(Int64) QTN_INT64;
%rename(UInt32) QTN_UINT32;
%rename(UInt64) QTN_UINT64;
%rename(Bool) QTN_BOOL;
%rename(Float16) QTN_FLOAT16;
%rename(Float64) QTN_FLOAT64;
%rename(BFloat16) QTN_BFLOAT16;
%rename(Float8E4M3FN) QTN_FLOAT8E4M3FN;
%rename(Float8E5M2) QTN_FLOAT8E5M2;
%rename(Float8E4M3FNUZ) QTN_FLOAT8E4M3FNUZ;
%rename(Float8E5M2FNUZ) QTN_FLOAT8E5M2FNUZ;
%rename(Float8E8M0) QTN_FLOAT8E8M0;
%rename(Float4E2M1) QTN_FLOAT4E2M1;
%rename(UInt4) QTN_UINT4;
%rename(Int4) QTN_INT4;
%rename(UInt2) QTN_UINT2;
%rename(Int2) QTN_INT2;
%rename(PerTensorAffine) QTN_PER_TENSOR_AFFINE;
%rename(PerTensorSymmetric) QTN_PER_TENSOR_SYMMETRIC;
%rename(PerChannelAffine) QTN_PER_CHANNEL_AFFINE;
%rename(PerChannelSymmetric) QTN_PER_CHANNEL_SYMMETRIC;
%rename(PerBlockAffine) QTN_PER_BLOCK_AFFINE;
%rename(PerBlockSymmetric) QTN_PER_BLOCK_SYMMETRIC;
%rename(PerChannelAffineFloatQparams) QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
%rename(Ptq) QTN_PTQ;
%rename(Qat) QTN_QAT;
%rename(Status) qstatus;
%rename(DType) qdtype;
%rename(Scheme) qscheme;
%rename(Mode) qmode;
%ignore QTN_STATUS_FORCE32;
%ignore QTN_DTYPE_FORCE32;
%ignore QTN_SCHEME_FORCE32;
%ignore QTN_MODE_FORCE32;
%csconst(1);

// --- what C# does with delegates and dictionaries

%ignore qtn::Attrs;
%ignore qtn::Samples;
%ignore qtn::Progress;
%ignore qtn::Batches;
%ignore qtn::TrainingProgress;
%ignore qtn::Operator;
%ignore qtn::Op::register_operator;
%csmethodmodifiers qtn::Op::unregister_operator "internal";
// One call of such an operator, for RegisteredOperator.
%typemap(csclassmodifiers) qtn::Call "internal unsafe class"
%typemap(csinterfaces) qtn::Call ""
%typemap(csdispose) qtn::Call ""
%typemap(csdisposing) qtn::Call ""
%typemap(csbody) qtn::Call %{
  private readonly global::System.Runtime.InteropServices.HandleRef swigCPtr;

  internal Call(global::System.IntPtr address) {
    swigCPtr = new global::System.Runtime.InteropServices.HandleRef(this, address);
  }
%}
%ignore qtn::Model::quantize;
%ignore qtn::Model::quantize_qat;

%include "typemaps.i"

// --- objects

%define QTN_LANGUAGE_OBJECT(Class)
%nodefaultdtor qtn::Class;
%typemap(csdispose) qtn::Class ""
%typemap(csdisposing) qtn::Class ""
%typemap(csclassmodifiers) qtn::Class "public sealed unsafe partial class"
%typemap(csbody) qtn::Class %{
  private readonly NativeHandle handle;

  internal Class(NativeHandle handle) {
    this.handle = handle;
  }

  // What SWIG calls the handle of `this`.
  private NativeHandle swigCPtr => Open(handle);

  // A handle is closed only when no call uses it, which need not come while several threads call: the flag comes at once.
  private static NativeHandle Open(NativeHandle handle) {
    if (handle.Disposed) throw new global::System.ObjectDisposedException(typeof(Class).FullName);
    return handle;
  }

  internal static NativeHandle Required(Class argument, string name) {
    if (argument == null) throw new global::System.ArgumentNullException(name);
    return Open(argument.handle);
  }

  internal static NativeHandle Optional(Class argument, string name) =>
      argument == null ? NativeHandle.None : Open(argument.handle);

  /// <summary>Frees the object, when calls that use it have ended. Disposing again does nothing.</summary>
  public void Dispose() {
    handle.Disposed = true;
    handle.Dispose();
  }

  internal sealed class NativeHandle : global::Microsoft.Win32.SafeHandles.SafeHandleZeroOrMinusOneIsInvalid {
    /// <summary>Stands for an object that is absent.</summary>
    internal static readonly NativeHandle None = new NativeHandle();
    internal volatile bool Disposed;

    private NativeHandle() : base(true) {}
    internal NativeHandle(global::System.IntPtr pointer) : base(true) {
      SetHandle(pointer);
    }

    protected override bool ReleaseHandle() {
      Free(handle);
      return true;
    }
  }
%}
%typemap(csconstruct, excode=SWIGEXCODE) qtn::Class %{: this($imcall) {$excode
  }
%}
%typemap(imtype) qtn::Class, qtn::Class *, const qtn::Class & "Class.NativeHandle"
%typemap(in) const qtn::Class & "$1 = const_cast<qtn::Class *>(qcs::object_or_none<qtn::Class>($input));"
%typemap(out) qtn::Class {
  $result = qcs::guarded([&] { return qcs::object_of<qtn::Class>($1); });
}
%typemap(csout, excode=SWIGEXCODE) qtn::Class {
    Class.NativeHandle made = $imcall;$excode
    return made.IsInvalid ? null : new Class(made);
  }
%csmethodmodifiers qtn::Class::free_ "private";
%extend qtn::Class {
  static void free_(void *pointer) { delete static_cast<qtn::Class *>(pointer); }
}
%enddef

// A setter that returns its object, for chains.
%typemap(imtype) qtn::Config & "global::System.IntPtr"
%typemap(out) qtn::Config & "$result = $1;"
%typemap(csout, excode=SWIGEXCODE) qtn::Config & {
    $imcall;$excode
    return this;
  }

%define QTN_ARGUMENT(Class, Need)
%typemap(csin) const qtn::Class & "global::QTensor.Class.Need($csinput, nameof($csinput))"
%enddef
QTN_ARGUMENT(Tensor, Optional)
QTN_ARGUMENT(Quantizer, Optional)
QTN_ARGUMENT(Observer, Required)
QTN_ARGUMENT(Config, Required)
QTN_ARGUMENT(Model, Required)
// One that may be absent.
%typemap(imtype) const qtn::Config *config "Config.NativeHandle"
%typemap(csin) const qtn::Config *config "global::QTensor.Config.Optional($csinput, nameof($csinput))"
%typemap(in) const qtn::Config *config "$1 = const_cast<qtn::Config *>(qcs::object_or_none<qtn::Config>($input));"

%define QTN_OF_MODEL(Class)
%typemap(csconstruct, excode=SWIGEXCODE) qtn::Class %{: this($imcall) {$excode
    inputs = new ModelInputs(model);
  }
%}
%enddef

%define QTN_STATIC(Class)
%typemap(csclassmodifiers) qtn::Class "public static unsafe partial class"
%typemap(csinterfaces) qtn::Class ""
%typemap(csbody) qtn::Class ""
%typemap(csdispose) qtn::Class ""
%typemap(csdisposing) qtn::Class ""
%enddef
QTN_STATIC(Lib)
QTN_STATIC(Op)

// --- accessors are properties

%define QTN_PROPERTY(Class, Name, Type, Property)
%csmethodmodifiers qtn::Class::Name "private";
%rename(Get ## Property) qtn::Class::Name;
%extend qtn::Class {
%proxycode %{
  public Type Property => (Type)Get ## Property();
%}
}
%enddef

QTN_PROPERTY(Tensor, dtype, DType, Dtype)
QTN_PROPERTY(Tensor, rank, int, Rank)
QTN_PROPERTY(Tensor, shape, long[], Shape)
QTN_PROPERTY(Tensor, strides, long[], Strides)
QTN_PROPERTY(Tensor, numel, long, Numel)
QTN_PROPERTY(Tensor, nbytes, long, Nbytes)
QTN_PROPERTY(Tensor, quantizer, Quantizer, Quantizer)
QTN_PROPERTY(Tensor, is_quantized_, bool, IsQuantized)
QTN_PROPERTY(Quantizer, dtype, DType, Dtype)
QTN_PROPERTY(Quantizer, scheme, Scheme, Scheme)
QTN_PROPERTY(Quantizer, axis, int, Axis)
QTN_PROPERTY(Quantizer, count, long, Count)
QTN_PROPERTY(Quantizer, scales, double[], Scales)
QTN_PROPERTY(Quantizer, zero_points, long[], ZeroPoints)
QTN_PROPERTY(Quantizer, float_zero_points, double[], FloatZeroPoints)
QTN_PROPERTY(Quantizer, block_size, long, BlockSize)
QTN_PROPERTY(Quantizer, quant_min, long, QuantMin)
QTN_PROPERTY(Quantizer, quant_max, long, QuantMax)
QTN_PROPERTY(Quantizer, numerics, string, Numerics)
QTN_PROPERTY(Model, input_count, int, InputCount)
QTN_PROPERTY(Model, output_count, int, OutputCount)
QTN_PROPERTY(Model, tensor_count, int, TensorCount)
QTN_PROPERTY(Session, output_count, int, OutputCount)
QTN_PROPERTY(Layer, weight, Tensor, Weight)
QTN_PROPERTY(Layer, bias, Tensor, Bias)
QTN_PROPERTY(Trainer, parameter_count, int, ParameterCount)
QTN_PROPERTY(Trainer, buffer_count, int, BufferCount)

// --- what QTensor/*.cs stands on

%rename(Load) qtn::Model::load_bytes;
%csmethodmodifiers qtn::Model::report_summary "internal";
%rename(RunAll) qtn::Session::run;
%csmethodmodifiers qtn::Session::run "private";
%rename(ProfileAll) qtn::Session::profile;
%csmethodmodifiers qtn::Session::profile "private";
%rename(BindNumbers) qtn::Session::bind;
%csmethodmodifiers qtn::Session::bind "private";
%rename(StepWith) qtn::Trainer::step;
%csmethodmodifiers qtn::Trainer::step "private";
%rename(BackwardWith) qtn::Trainer::backward;
%csmethodmodifiers qtn::Trainer::backward "private";
%rename(EvaluateAll) qtn::Trainer::evaluate;
%csmethodmodifiers qtn::Trainer::evaluate "private";
%rename(CalibrateWith) qtn::Model::calibrate;
%csmethodmodifiers qtn::Model::calibrate "private";
%rename(GetTensor) qtn::Model::tensor;
%ignore qtn::Tensor::reshape;
%typemap(cstype, out="long[]") qtn::Ints dimensions, qtn::Ints axes "params long[]"
%csmethodmodifiers qtn::Tensor::wrap_ "private";
%rename(ToDLPack) qtn::Tensor::to_dlpack_;
%rename(ToDLPackVersioned) qtn::Tensor::to_dlpack_versioned_;
%rename(FromDLPack) qtn::Tensor::from_dlpack_;
%rename(FromDLPackVersioned) qtn::Tensor::from_dlpack_versioned_;
%csmethodmodifiers qtn::Tensor::of_ "private";
%csmethodmodifiers qtn::Tensor::give_ "internal";
%csmethodmodifiers qtn::Tensor::pointer_ "internal";
%csmethodmodifiers qtn::Model::quantize_ "private";
%csmethodmodifiers qtn::Model::quantize_qat_ "private";
%extend qtn::Tensor {
  static qtn::Tensor of_(qtn::DType dtype, qtn::Ints shape, void *data, size_t nbytes) {
    return qtn::Tensor::create(dtype, shape, {}, {data ? data : &dtype, nbytes});  // an empty array is no address
  }
  static qtn::Tensor wrap_(qtn::DType dtype, qtn::Ints shape, void *data, size_t nbytes, qtensor_deleter_cb deleter, void *ctx,
                           const qtn::Quantizer &quantizer) {
    return qtn::Tensor::wrap(dtype, shape, data, nbytes, deleter, ctx, quantizer);
  }
  void *to_dlpack_() const { return $self->to_dlpack(); }
  void *to_dlpack_versioned_() const { return $self->to_dlpack_versioned(); }
  static qtn::Tensor from_dlpack_(void *managed) {
    return qtn::Tensor::from_dlpack(static_cast<DLManagedTensor *>(managed));
  }
  static qtn::Tensor from_dlpack_versioned_(void *managed) {
    return qtn::Tensor::from_dlpack_versioned(static_cast<DLManagedTensorVersioned *>(managed));
  }
  qtn::Tensor reshape_(qtn::Ints dimensions) const { return $self->reshape(dimensions); }
  static void give_(void *tensors, const qtn::Tensor &tensor) { static_cast<qtn::Tensors *>(tensors)->push_back(tensor); }
  bool is_quantized_() const { return qtensor_quantizer($self->use()) != nullptr; }
  void *pointer_() { return $self->data_mut(); }
}
%csmethodmodifiers qtn::Op::register_ "internal";
%extend qtn::Op {
  static void register_(const std::string &domain, const std::string &name, int64_t since_version, qcs::CallFunction infer,
                        qcs::CallFunction run, qcs::CallFunction run_quantized, qcs::ReleasedFunction released) {
    auto op = std::make_unique<qcs::Operator>(infer, run, run_quantized, released);
    qtn::Op::register_operator(domain, name, since_version, *op);
    op.release();
  }
}
%extend qtn::Model {
  qtn::Model quantize_(const qtn::Config &config, qcs::SampleFunction sample, size_t count, const qtn::Attrs &attrs,
                       qcs::ProgressFunction progress, std::string *report) const {
    qcs::Samples samples(sample, count);
    qcs::Progress told(progress);
    return $self->quantize(config, samples, attrs, progress ? &told : nullptr, report);
  }
  qtn::Model quantize_qat_(const qtn::Config &config, qcs::BatchFunction batch, size_t count, size_t target_count,
                           const qtn::Attrs &attrs, qcs::TrainingFunction progress, std::string *report) const {
    qcs::Batches batches(batch, count, target_count);
    qcs::TrainingProgress told(progress);
    return $self->quantize_qat(config, batches, attrs, progress ? &told : nullptr, report);
  }
}
