// SPDX-License-Identifier: Apache-2.0
// Values on their way between C# and the C++ header. Native.cs is the other side.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "qtensor/qtensor.hpp"

namespace qcs {

/// Memory of C#, pinned for a call.
struct Pinned {
  const void *data;
  int64_t size;  ///< elements
};

// --- exceptions

using Fail = void (*)(int32_t status, const char *message, int64_t size);
/// Keeps an exception for C# to throw when the call is back.
inline Fail fail = nullptr;

/// Takes no memory, since nothing catches what it would throw.
inline void fail_with(qtn::Status status, const char *message) {
  fail(status, message, static_cast<int64_t>(std::strlen(message)));
}

/// Tells C# of the C++ exception that is being handled.
inline void fail_with_current() {
  try {
    throw;
  } catch (const qtn::Error &e) {
    fail_with(e.status(), e.what());
  } catch (const std::bad_alloc &) {
    fail_with(QTN_ENOMEM, "out of memory");
  } catch (const std::exception &e) {
    fail_with(QTN_EINTERNAL, e.what());
  }
}

/// What `f` gives, or nothing and a failure: for what runs outside of %exception.
template <class F>
auto guarded(F &&f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    fail_with_current();
    return {};
  }
}

// --- out: a block, which C# frees, is the number of its elements with these behind it

inline void *block(size_t count, const void *elements, size_t nbytes) {
  auto *memory = static_cast<char *>(std::malloc(sizeof(int64_t) + nbytes));
  if (!memory) throw std::bad_alloc();
  const auto size = static_cast<int64_t>(count);
  std::memcpy(memory, &size, sizeof(size));
  if (nbytes > 0) std::memcpy(memory + sizeof(size), elements, nbytes);
  return memory;
}

inline void *block_of(const std::string &text) { return block(text.size(), text.data(), text.size()); }
inline void *block_of(const qtn::Blob &blob) { return block(blob.size(), blob.data(), blob.size()); }
inline void *block_of(qtn::Ints list) { return block(list.size, list.data, list.size * sizeof(int64_t)); }
inline void *block_of(qtn::Doubles list) { return block(list.size, list.data, list.size * sizeof(double)); }

/// An object for C#, NULL for one that is absent.
template <class T>
void *object_of(const T &object) {
  return object ? new T(object) : nullptr;
}

inline void *block_of(const qtn::Tensors &tensors) {
  std::vector<std::unique_ptr<qtn::Tensor>> made;
  std::vector<void *> objects;
  for (const qtn::Tensor &t : tensors) {
    made.push_back(std::make_unique<qtn::Tensor>(t));
    objects.push_back(t ? made.back().get() : nullptr);
  }
  void *out = block(objects.size(), objects.data(), objects.size() * sizeof(void *));
  for (size_t i = 0; i < made.size(); ++i)
    if (objects[i]) (void)made[i].release();
  return out;
}

/// Key, kind and value of each: what Block.Attributes reads in C#. A tensor is an object for C#.
inline void *block_of(const qtn::Attrs &attrs) {
  std::string bytes;
  const auto add = [&](const void *data, size_t nbytes) { bytes.append(static_cast<const char *>(data), nbytes); };
  const auto add_list = [&](const void *data, size_t count, size_t element) {
    const auto size = static_cast<int64_t>(count);
    add(&size, sizeof(size));
    add(data, count * element);
  };
  for (size_t i = 0; i < attrs.count(); ++i) {
    const std::string key = attrs.key(i), kind = attrs.kind(key);
    add_list(key.data(), key.size(), 1);
    add_list(kind.data(), kind.size(), 1);
    if (kind == "int") {
      const int64_t value = attrs.get_int(key);
      add(&value, sizeof(value));
    } else if (kind == "float") {
      const double value = attrs.get_float(key);
      add(&value, sizeof(value));
    } else if (kind == "string") {
      const std::string value = attrs.get_string(key);
      add_list(value.data(), value.size(), 1);
    } else if (kind == "ints") {
      const qtn::Ints values = attrs.get_ints(key);
      add_list(values.data, values.size, sizeof(int64_t));
    } else if (kind == "floats") {
      const qtn::Doubles values = attrs.get_floats(key);
      add_list(values.data, values.size, sizeof(double));
    } else {
      const void *tensor = object_of(attrs.get_tensor(key));
      add(&tensor, sizeof(tensor));
    }
  }
  return block_of(bytes);
}

// --- in

/// An object of C#, or an absent one.
template <class T>
const T *object_or_none(const void *object) {
  static const T none;
  return object ? static_cast<const T *>(object) : &none;
}

/// What Encoder has written in C#.
class Decoder {
 public:
  explicit Decoder(Pinned bytes) : at_(static_cast<const char *>(bytes.data)), end_(at_ + bytes.size) {}

  bool more() const { return at_ != end_; }

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }
  template <class T>
  std::vector<T> numbers() {
    std::vector<T> values(number<uint64_t>());
    for (T &value : values) value = number<T>();
    return values;
  }
  std::string text() {
    const auto size = number<uint64_t>();
    std::string value(at_, size);
    at_ += size;
    return value;
  }

 private:
  const char *at_, *end_;
};

inline bool read(Pinned bytes, std::string &out) {
  out.assign(static_cast<const char *>(bytes.data), static_cast<size_t>(bytes.size));
  return true;
}

inline bool read(Pinned bytes, qtn::Strings &out) {
  for (Decoder in(bytes); in.more();) out.push_back(in.text());
  return true;
}

inline bool read(Pinned objects, qtn::Tensors &out) {
  const auto *tensors = static_cast<const qtn::Tensor *const *>(objects.data);
  for (int64_t i = 0; i < objects.size; ++i) out.push_back(tensors[i] ? *tensors[i] : qtn::Tensor());
  return true;
}

/// Nothing where there are none, else a byte before them.
inline bool read(Pinned bytes, qtn::Attrs &out) {
  Decoder in(bytes);
  if (!in.more()) return true;
  in.number<char>();
  for (out = qtn::detail::some(out); in.more();) {
    const std::string key = in.text();
    switch (in.number<char>()) {
      case 'i':
        out.set_int(key, in.number<int64_t>());
        break;
      case 'f':
        out.set_float(key, in.number<double>());
        break;
      case 's':
        out.set_string(key, in.text());
        break;
      case 'I':
        out.set_ints(key, in.numbers<int64_t>());
        break;
      default:
        out.set_floats(key, in.numbers<double>());
    }
  }
  return true;
}

}  // namespace qcs
