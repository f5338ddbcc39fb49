// SPDX-License-Identifier: Apache-2.0
// Values of Java as what the C++ header takes, and back. Functions that can fail return false or NULL, with a Java
// exception pending.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jni.hpp"

namespace qjava {

inline bool integers(JNIEnv *jenv, jlongArray from, const char *name, std::vector<int64_t> &out) try {
  if (!from) return refuse_null(jenv, name);
  out.resize(static_cast<size_t>(jenv->GetArrayLength(from)));
  jenv->GetLongArrayRegion(from, 0, static_cast<jsize>(out.size()), reinterpret_cast<jlong *>(out.data()));
  return true;
} catch (...) {
  return refuse_current(jenv);
}

inline bool reals(JNIEnv *jenv, jdoubleArray from, const char *name, std::vector<double> &out) try {
  if (!from) return refuse_null(jenv, name);
  out.resize(static_cast<size_t>(jenv->GetArrayLength(from)));
  jenv->GetDoubleArrayRegion(from, 0, static_cast<jsize>(out.size()), out.data());
  return true;
} catch (...) {
  return refuse_current(jenv);
}

/// UTF-8, which JNI's own functions for strings do not speak.
inline bool text(JNIEnv *jenv, jbyteArray from, const char *name, std::string &out) try {
  if (!from) return refuse_null(jenv, name);
  out.resize(static_cast<size_t>(jenv->GetArrayLength(from)));
  jenv->GetByteArrayRegion(from, 0, static_cast<jsize>(out.size()), reinterpret_cast<jbyte *>(out.data()));
  return true;
} catch (...) {
  return refuse_current(jenv);
}

inline bool texts(JNIEnv *jenv, jobjectArray from, const char *name, qtn::Strings &out) try {
  if (!from) return refuse_null(jenv, name);
  const jsize count = jenv->GetArrayLength(from);
  out.resize(static_cast<size_t>(count));
  for (jsize i = 0; i < count; ++i) {
    const jobject item = jenv->GetObjectArrayElement(from, i);
    const bool good = text(jenv, static_cast<jbyteArray>(item), name, out[static_cast<size_t>(i)]);
    jenv->DeleteLocalRef(item);
    if (!good) return false;
  }
  return true;
} catch (...) {
  return refuse_current(jenv);
}

inline jbyteArray text_of(JNIEnv *jenv, const std::string &text) { return bytes_of(jenv, text.data(), text.size()); }

inline jlongArray array_of(JNIEnv *jenv, qtn::Ints list) {
  const jlongArray array = jenv->NewLongArray(static_cast<jsize>(list.size));
  if (array)
    jenv->SetLongArrayRegion(array, 0, static_cast<jsize>(list.size), reinterpret_cast<const jlong *>(list.data));
  return array;
}

inline jdoubleArray array_of(JNIEnv *jenv, qtn::Doubles list) {
  const jdoubleArray array = jenv->NewDoubleArray(static_cast<jsize>(list.size));
  if (array) jenv->SetDoubleArrayRegion(array, 0, static_cast<jsize>(list.size), list.data);
  return array;
}

/// The bytes of an array, for the time of a call; none for null.
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(const Borrowed &) = delete;
  Borrowed &operator=(const Borrowed &) = delete;
  ~Borrowed() {
    if (elements_) jenv_->ReleaseByteArrayElements(array_, elements_, JNI_ABORT);
  }

  bool borrow(JNIEnv *jenv, jbyteArray array) {
    if (!array) return true;
    jenv_ = jenv;
    array_ = array;
    elements_ = jenv->GetByteArrayElements(array, nullptr);
    return elements_ != nullptr;
  }

  qtn::Bytes bytes() const { return {elements_, elements_ ? static_cast<size_t>(jenv_->GetArrayLength(array_)) : 0}; }

 private:
  JNIEnv *jenv_ = nullptr;
  jbyteArray array_ = nullptr;
  jbyte *elements_ = nullptr;
};

}  // namespace qjava
