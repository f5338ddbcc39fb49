// SPDX-License-Identifier: Apache-2.0
// Arguments and results: arrays, texts and enumerations of Java instead of classes for them.

// `Jni` and `Java` are the types of a value in the two, `Convert` makes it one of `Storage`, to which the call refers.
%define QTN_VALUE(Type, Jni, Java, Storage, Convert)
%typemap(jni) Type #Jni
%typemap(jtype) Type Java
%typemap(jstype) Type Java
%typemap(javain) Type "$javainput"
%typemap(in) Type (Storage storage) {
  if (!qjava::Convert(jenv, $input, "$1_name", storage)) return $null;
  QTN_REFER(storage)
}
%enddef

#define QTN_REFER(Storage) $1 = Storage;
QTN_VALUE(qtn::Ints, jlongArray, "long[]", std::vector<int64_t>, integers)
QTN_VALUE(qtn::Doubles, jdoubleArray, "double[]", std::vector<double>, reals)
#undef QTN_REFER
#define QTN_REFER(Storage) $1 = &Storage;
QTN_VALUE(const qtn::Tensors &, jobjectArray, "Tensor[]", qtn::Tensors, tensors)
QTN_VALUE(const std::string &, jbyteArray, "byte[]", std::string, text)
QTN_VALUE(const qtn::Strings &, jobjectArray, "byte[][]", qtn::Strings, texts)
#undef QTN_REFER

%typemap(out) qtn::Ints, qtn::Doubles "$result = qjava::array_of(jenv, $1);"
%typemap(javaout) qtn::Ints, qtn::Doubles {
    return $jnicall;
  }

%typemap(in) size_t {
  if ($input < 0) {
    qjava::refuse(jenv, "java/lang/IllegalArgumentException", "$1_name is %lld", static_cast<long long>($input));
    return $null;
  }
  $1 = static_cast<size_t>($input);
}

// Texts cross as bytes in UTF-8.
%typemap(jstype) const std::string & "String"
%typemap(javain) const std::string & "Text.bytes($javainput, \"$1_name\")"
%typemap(jstype) const qtn::Strings & "java.util.List<String>"
%typemap(javain) const qtn::Strings & "Text.bytes($javainput, \"$1_name\")"
%typemap(jni) std::string "jbyteArray"
%typemap(jtype) std::string "byte[]"
%typemap(jstype) std::string "String"
%typemap(out) std::string "$result = qjava::text_of(jenv, $1);"
%typemap(javaout) std::string {
    return Text.of($jnicall);
  }
// A long call makes many callbacks: their references must not wait for its end.
%typemap(directorin, descriptor="Ljava/lang/String;", noblock=1) const std::string & {
  $input = qjava::text_of(jenv, $1);
  Swig::LocalRefGuard $1_refguard(jenv, $input);
  if (!$input) throw qjava::Raised(jenv);
}
%typemap(javadirectorin) const std::string & "Text.of($jniinput)"

// Bytes, null for none.
%typemap(jni) qtn::Bytes, qtn::Blob "jbyteArray"
%typemap(jtype) qtn::Bytes, qtn::Blob "byte[]"
%typemap(jstype) qtn::Bytes, qtn::Blob "byte[]"
%typemap(javain) qtn::Bytes "$javainput"
%typemap(in) qtn::Bytes (qjava::Borrowed storage) {
  if (!storage.borrow(jenv, $input)) return $null;
  $1 = storage.bytes();
}
%typemap(out) qtn::Blob "$result = qjava::bytes_of(jenv, $1.data(), $1.size());"
%typemap(javaout) qtn::Blob {
    return $jnicall;
  }

%typemap(jni) qtn::Tensors "jlongArray"
%typemap(jtype) qtn::Tensors "long[]"
%typemap(jstype) qtn::Tensors "Tensor[]"
%typemap(out) qtn::Tensors "$result = qjava::boxes_of(jenv, std::move($1));"
%typemap(javaout) qtn::Tensors {
    return TensorBase.tensors($jnicall);
  }

// A callback's answer keeps its tensors reachable, which addresses would not.
%typemap(jni) qtn::Tensors sample, qtn::Tensors batch "jobjectArray"
%typemap(jtype) qtn::Tensors sample, qtn::Tensors batch "Tensor[]"
%typemap(out) qtn::Tensors sample, qtn::Tensors batch "(void)$1; $result = nullptr;"  // only Java implements them
%typemap(javaout) qtn::Tensors sample, qtn::Tensors batch {
    return $jnicall;
  }
%typemap(javadirectorout) qtn::Tensors sample, qtn::Tensors batch "$javacall"
%typemap(directorin, descriptor="[Lorg/qtensor/Tensor;") qtn::Tensors, jobjectArray ""
%typemap(directorout) qtn::Tensors sample, qtn::Tensors batch {
  Swig::LocalRefGuard guard(jenv, $input);
  qtn::Tensors given;
  if (!qjava::tensors(jenv, $input, "a sample or batch", given)) throw qjava::Raised(jenv);
  $result = std::move(given);
}

%typemap(jni) qtn::TrainingProgress::Answer "jint"
%typemap(jtype) qtn::TrainingProgress::Answer "int"
%typemap(jstype) qtn::TrainingProgress::Answer "int"
%typemap(javaout) qtn::TrainingProgress::Answer {
    return $jnicall;
  }
%typemap(javadirectorout) qtn::TrainingProgress::Answer "$javacall"
%typemap(directorin, descriptor="I") qtn::TrainingProgress::Answer ""
%typemap(directorout) qtn::TrainingProgress::Answer "$result = static_cast<qtn::TrainingProgress::Answer>($input);"

// The report of Model.quantize: the first element of an array.
%typemap(jni) std::string *report "jobjectArray"
%typemap(jtype) std::string *report "byte[][]"
%typemap(jstype) std::string *report "byte[][]"
%typemap(javain) std::string *report "$javainput"
%typemap(in) std::string *report (std::string storage) "$1 = &storage;"
%typemap(argout) std::string *report {
  const jbyteArray text = qjava::text_of(jenv, *$1);
  if (text) jenv->SetObjectArrayElement($input, 0, text);
}

// --- enumerations, with the numbers of C

%rename(DType) qdtype;
%rename(Scheme) qscheme;
%rename(Mode) qmode;
%rename(Status) qstatus;
%rename("%(regex:/^QTN_(.*)/\\1/)s", %$isenumitem) "";
%rename(FLOAT8_E4M3FN) QTN_FLOAT8E4M3FN;
%rename(FLOAT8_E5M2) QTN_FLOAT8E5M2;
%rename(FLOAT8_E4M3FNUZ) QTN_FLOAT8E4M3FNUZ;
%rename(FLOAT8_E5M2FNUZ) QTN_FLOAT8E5M2FNUZ;
%rename(FLOAT8_E8M0) QTN_FLOAT8E8M0;
%rename(FLOAT4_E2M1) QTN_FLOAT4E2M1;
%ignore QTN_STATUS_FORCE32;
%ignore QTN_DTYPE_FORCE32;
%ignore QTN_SCHEME_FORCE32;
%ignore QTN_MODE_FORCE32;
%javaconst(1);
%typemap(javain) enum SWIGTYPE "$javainput.value()"
%typemap(javaout) enum SWIGTYPE {
    return $javaclassname.of($jnicall);
  }
%typemap(javabody) enum SWIGTYPE %{
  private final int value;

  $javaclassname(int value) {
    this.value = value;
  }

  /** The number in C. */
  public int value() {
    return value;
  }

  /** The constant of a number in C. */
  public static $javaclassname of(int value) {
    for ($javaclassname constant : values()) {
      if (constant.value == value) {
        return constant;
      }
    }
    throw new IllegalArgumentException("no $javaclassname has the number " + value);
  }
%}
