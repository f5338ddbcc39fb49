// SPDX-License-Identifier: Apache-2.0
// Objects of the wrapped classes: the `long` of a Java object is the address of a Box.
#pragma once

#include <mutex>
#include <type_traits>
#include <utility>

#include "jni.hpp"

namespace qjava {

/// Lives as long as the Java object: close() only empties it, since other threads may be about to ask it.
class Box {
 public:
  virtual ~Box() = default;
  virtual void empty() = 0;
};

template <class T>
class BoxOf final : public Box {
 public:
  explicit BoxOf(T object) : object_(std::move(object)) {}

  /// Another name for the object, which stays even if another thread closes this.
  T get() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return object_;
  }

  void empty() override {
    T last;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(last, object_);
  }

 private:
  std::mutex mutex_;
  T object_;
};

inline Box *box_at(jlong address) { return reinterpret_cast<Box *>(address); }

template <class T>
jlong boxed(T object) {
  return reinterpret_cast<jlong>(static_cast<Box *>(new BoxOf<T>(std::move(object))));
}

/// Attributes have no handle before the first is set.
inline bool is_open(const qtn::Attrs &) { return true; }

template <class T>
bool is_open(const T &object) {
  return static_cast<bool>(object);
}

/// 0, which is null, for an object without a handle.
template <class T>
jlong boxed_or_null(JNIEnv *jenv, T object) try {
  return is_open(object) ? boxed(std::move(object)) : 0;
} catch (...) {
  raise_current(jenv);
  return 0;
}

/// A closed object is an error, and so is null.
template <class T>
bool object(JNIEnv *jenv, jlong address, const char *type, const char *name, T &out) {
  if (!address) return refuse_null(jenv, name);
  out = static_cast<BoxOf<T> *>(box_at(address))->get();
  return is_open(out) || refuse(jenv, "java/lang/IllegalStateException", "%s is closed", type);
}

/// Null is an absent argument where C knows one.
template <class T>
bool argument(JNIEnv *jenv, jlong address, const char *type, const char *name, T &out) {
  constexpr bool may_be_absent =
      std::is_same_v<T, qtn::Tensor> || std::is_same_v<T, qtn::Quantizer> || std::is_same_v<T, qtn::Attrs>;
  return (may_be_absent && !address) || object(jenv, address, type, name, out);
}

/// NativeObject.swigCPtr.
inline jfieldID box_field = nullptr;

inline bool tensors(JNIEnv *jenv, jobjectArray from, const char *name, qtn::Tensors &out) try {
  if (!from) return refuse_null(jenv, name);
  const jsize count = jenv->GetArrayLength(from);
  out.resize(static_cast<size_t>(count));
  for (jsize i = 0; i < count; ++i) {
    const jobject item = jenv->GetObjectArrayElement(from, i);
    const jlong address = item ? jenv->GetLongField(item, box_field) : 0;
    const bool open = argument(jenv, address, "Tensor", name, out[static_cast<size_t>(i)]);
    jenv->DeleteLocalRef(item);
    if (!open) return false;
  }
  return true;
} catch (...) {
  return refuse_current(jenv);
}

/// NULL with a Java exception pending.
inline jlongArray boxes_of(JNIEnv *jenv, qtn::Tensors tensors) try {
  const auto count = static_cast<jsize>(tensors.size());
  const jlongArray array = jenv->NewLongArray(count);
  for (jsize i = 0; array && i < count; ++i) {
    const jlong address = boxed_or_null(jenv, std::move(tensors[static_cast<size_t>(i)]));
    jenv->SetLongArrayRegion(array, i, 1, &address);
  }
  return array;
} catch (...) {
  raise_current(jenv);
  return nullptr;
}

// --- memory that Java and tensors share

/// A tensor over the memory of a direct buffer, which it keeps.
inline qtn::Tensor tensor_of_buffer(qtn::DType dtype, qtn::Ints shape, const qtn::Quantizer &quantizer, jobject buffer,
                                    int64_t offset, int64_t nbytes) {
  JNIEnv *const jenv = env();
  using Kept = std::shared_ptr<_jobject>;
  auto kept = std::make_unique<Kept>(keep(jenv, buffer));
  auto *const data = static_cast<char *>(jenv->GetDirectBufferAddress(buffer)) + offset;
  const qtn::Tensor tensor = qtn::Tensor::wrap(
      dtype, shape, data, static_cast<size_t>(nbytes), [](void *, void *ctx) { delete static_cast<Kept *>(ctx); },
      kept.get(), quantizer);
  (void)kept.release();
  return tensor;
}

/// A direct buffer over the memory of a tensor, which must outlive it.
inline jobject buffer_of(qtn::Tensor tensor) {
  static char nothing = 0;
  const size_t nbytes = tensor.nbytes();
  return env()->NewDirectByteBuffer(nbytes ? tensor.data_mut() : &nothing, static_cast<jlong>(nbytes));
}

}  // namespace qjava
