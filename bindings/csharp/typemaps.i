// SPDX-License-Identifier: Apache-2.0
// Arguments and results: arrays, numbers and texts of C# instead of classes for them. Lists go in as Pinned memory
// and come out as a Block (values.hpp, Native.cs).

// --- in

%define QTN_PINNED(Type, Parameter)
%typemap(ctype, out="void *") Type "qcs::Pinned"
%typemap(imtype, out="global::System.IntPtr") Type "Pinned"
%typemap(cstype, out="Parameter") Type "Parameter"
%enddef

%define QTN_ARRAY(Type, Element, Number)
QTN_PINNED(Type, Element[])
%typemap(csin, pre="    fixed (Element *pinned_$csinput = $csinput) {", terminator="    }") Type
  "new Pinned(pinned_$csinput, Pinned.Length($csinput, nameof($csinput)))"
%typemap(in) Type "$1 = Type(static_cast<const Number *>($input.data), static_cast<size_t>($input.size));"
%enddef

QTN_ARRAY(qtn::Ints, long, int64_t)
QTN_ARRAY(qtn::Doubles, double, double)

QTN_PINNED(qtn::Bytes, byte[])
%typemap(csin, pre="    fixed (byte *pinned_$csinput = $csinput) {", terminator="    }") qtn::Bytes
  "new Pinned(pinned_$csinput, $csinput == null ? -1 : $csinput.Length)"
// An empty array has no address, but is not none.
%typemap(in) qtn::Bytes {
  $1.data = $input.size == 0 ? "" : $input.data;
  $1.size = $input.size < 0 ? 0 : static_cast<size_t>($input.size);
}

// What C# writes into bytes, and C++ makes an object of.
%define QTN_ENCODED(Type, Parameter, Encode)
QTN_PINNED(const Type &, %arg(Parameter))
%typemap(csin, pre="    byte[] bytes_$csinput = Encode($csinput, nameof($csinput));\n    fixed (byte *pinned_$csinput = bytes_$csinput) {", terminator="    }")
  const Type & "new Pinned(pinned_$csinput, bytes_$csinput.Length)"
%typemap(in) const Type & (Type storage) {
  if (!qcs::guarded([&] { return qcs::read($input, storage); })) return $null;
  $1 = &storage;
}
%enddef

QTN_ENCODED(std::string, string, Encoder.Text)
QTN_ENCODED(qtn::Strings, %arg(global::System.Collections.Generic.IEnumerable<string>), Encoder.Texts)
QTN_ENCODED(qtn::Attrs, %arg(global::System.Collections.Generic.IDictionary<string, object>), Encoder.Attributes)

// The handles of a list stay open for the call.
QTN_PINNED(const qtn::Tensors &, %arg(global::System.Collections.Generic.IReadOnlyList<Tensor>))
%typemap(csin, pre="    using (var held_$csinput = new HeldTensors($csinput, nameof($csinput)))\n    fixed (global::System.IntPtr *pinned_$csinput = held_$csinput.Pointers) {", terminator="    }")
  const qtn::Tensors & "new Pinned(pinned_$csinput, held_$csinput.Pointers.Length)"
%typemap(in) const qtn::Tensors & (qtn::Tensors storage) {
  if (!qcs::guarded([&] { return qcs::read($input, storage); })) return $null;
  $1 = &storage;
}

// --- numbers: those without a sign are long, and not below 0

%typemap(ctype) size_t "int64_t"
%typemap(imtype) size_t "long"
%typemap(cstype) size_t "long"
%typemap(csin) size_t "Pinned.NotNegative($csinput, nameof($csinput))"
%typemap(in) size_t "$1 = static_cast<size_t>($input);"
%typemap(out) size_t "$result = static_cast<int64_t>($1);"
%typemap(csout, excode=SWIGEXCODE) size_t {
    long result = $imcall;$excode
    return result;
  }

%apply void *VOID_INT_PTR { void * }

// --- out

%define QTN_BLOCK(Type, Result, Decode)
%typemap(ctype, out="void *") Type "qcs::Pinned"
%typemap(imtype, out="global::System.IntPtr") Type "Pinned"
%typemap(cstype, out="Result") Type "Result"
%typemap(out) Type "$result = qcs::guarded([&] { return qcs::block_of($1); });"
%typemap(csout, excode=SWIGEXCODE) Type {
    global::System.IntPtr block = $imcall;$excode
    return Block.Decode(block);
  }
%enddef

%typemap(out) qtn::Ints, qtn::Doubles "$result = qcs::guarded([&] { return qcs::block_of($1); });"
%typemap(csout, excode=SWIGEXCODE) qtn::Ints {
    global::System.IntPtr block = $imcall;$excode
    return Block.Longs(block);
  }
%typemap(csout, excode=SWIGEXCODE) qtn::Doubles {
    global::System.IntPtr block = $imcall;$excode
    return Block.Doubles(block);
  }
QTN_BLOCK(std::string, string, Text)
QTN_BLOCK(qtn::Blob, byte[], Bytes)
QTN_BLOCK(qtn::Tensors, Tensor[], Tensors)
QTN_BLOCK(qtn::Attrs, %arg(global::System.Collections.Generic.Dictionary<string, object>), Attributes)

%typemap(ctype) std::string *report "void **"
%typemap(imtype) std::string *report "out global::System.IntPtr"
%typemap(cstype) std::string *report "out string"
%typemap(csin, pre="    global::System.IntPtr block_$csinput = global::System.IntPtr.Zero;", post="      $csinput = Block.Text(block_$csinput);")
  std::string *report "out block_$csinput"
%typemap(in) std::string *report (std::string storage) {
  *$input = nullptr;
  $1 = &storage;
}
%typemap(argout) std::string *report "*$input = qcs::guarded([&] { return qcs::block_of(*$1); });"

// --- functions of C#

%define QTN_FUNCTION(Type, Delegate)
%typemap(ctype) Type "Type"
%typemap(imtype) Type "Delegate"
%typemap(cstype) Type "Delegate"
%typemap(csin) Type "$csinput"
%typemap(in) Type "$1 = $input;"
%enddef

QTN_FUNCTION(qcs::SampleFunction, SampleFunction)
QTN_FUNCTION(qcs::BatchFunction, BatchFunction)
QTN_FUNCTION(qcs::ProgressFunction, ProgressFunction)
QTN_FUNCTION(qcs::TrainingFunction, TrainingFunction)
QTN_FUNCTION(qcs::CallFunction, CallFunction)
QTN_FUNCTION(qcs::ReleasedFunction, ReleasedFunction)
QTN_FUNCTION(qtensor_deleter_cb, DeleterFunction)
