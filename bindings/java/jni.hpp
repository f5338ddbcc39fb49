// SPDX-License-Identifier: Apache-2.0
// Exceptions of C++ and of Java, each as the other. Functions that can fail return false or NULL, with a Java exception
// pending.
#pragma once

#include <jni.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "qtensor/qtensor.hpp"

namespace qjava {

inline JavaVM *vm = nullptr;

/// The environment of a thread that the JVM knows; NULL for others.
inline JNIEnv *env() {
  void *found = nullptr;
  return vm->GetEnv(&found, JNI_VERSION_10) == JNI_OK ? static_cast<JNIEnv *>(found) : nullptr;
}

/// A reference that any thread may drop.
inline std::shared_ptr<_jobject> keep(JNIEnv *jenv, jobject object) {
  const jobject global = jenv->NewGlobalRef(object);
  if (!global) throw std::bad_alloc();
  return std::shared_ptr<_jobject>(global, [](jobject held) {
    JNIEnv *mine = env();
    const bool stranger = !mine;
    void *attached = nullptr;
    if (stranger && vm->AttachCurrentThreadAsDaemon(&attached, nullptr) != JNI_OK) return;  // the JVM is gone
    if (stranger) mine = static_cast<JNIEnv *>(attached);
    mine->DeleteGlobalRef(held);
    if (stranger) vm->DetachCurrentThread();
  });
}

/// What Java has thrown, on its way through C++.
class Raised : public std::exception {
 public:
  explicit Raised(JNIEnv *jenv) {
    const jthrowable thrown = jenv->ExceptionOccurred();
    jenv->ExceptionClear();
    held_ = keep(jenv, thrown);
    jenv->DeleteLocalRef(thrown);
  }

  void put_back(JNIEnv *jenv) const { jenv->Throw(static_cast<jthrowable>(held_.get())); }
  const char *what() const noexcept override { return "an exception of Java"; }

 private:
  std::shared_ptr<_jobject> held_;
};

/// Takes no memory, since nothing catches what it would throw. `value` is what the format has a place for.
template <class T>
bool refuse(JNIEnv *jenv, const char *type, const char *format, T value) {
  char message[160];
  std::snprintf(message, sizeof(message), format, value);
  if (const jclass found = jenv->FindClass(type)) jenv->ThrowNew(found, message);
  return false;
}

inline bool refuse_null(JNIEnv *jenv, const char *name) {
  return refuse(jenv, "java/lang/NullPointerException", "%s is null", name);
}

inline jbyteArray bytes_of(JNIEnv *jenv, const void *data, size_t size) {
  const jbyteArray bytes = size <= INT32_MAX ? jenv->NewByteArray(static_cast<jsize>(size)) : nullptr;
  if (bytes) jenv->SetByteArrayRegion(bytes, 0, static_cast<jsize>(size), static_cast<const jbyte *>(data));
  if (!bytes && !jenv->ExceptionCheck())
    refuse(jenv, "java/lang/OutOfMemoryError", "%zu bytes are more than an array holds", size);
  return bytes;
}

inline void raise(JNIEnv *jenv, qtn::Status status, const char *message) {
  const jclass type = jenv->FindClass("org/qtensor/QTensorException");
  const jmethodID make = type ? jenv->GetStaticMethodID(type, "of", "(I[B)Lorg/qtensor/QTensorException;") : nullptr;
  const jbyteArray text = make ? bytes_of(jenv, message, std::strlen(message)) : nullptr;
  if (!text) return;
  const jobject made = jenv->CallStaticObjectMethod(type, make, static_cast<jint>(status), text);
  if (!jenv->ExceptionCheck()) jenv->Throw(static_cast<jthrowable>(made));
}

/// Turns the C++ exception that is being handled into one of Java.
inline void raise_current(JNIEnv *jenv) {
  try {
    throw;
  } catch (const Raised &e) {
    e.put_back(jenv);
  } catch (const qtn::Error &e) {
    raise(jenv, e.status(), e.what());
  } catch (const std::bad_alloc &) {
    raise(jenv, QTN_ENOMEM, "out of memory");
  } catch (const std::exception &e) {
    raise(jenv, QTN_EINTERNAL, e.what());
  }
}

inline bool refuse_current(JNIEnv *jenv) {
  raise_current(jenv);
  return false;
}

}  // namespace qjava
