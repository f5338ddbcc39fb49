// SPDX-License-Identifier: Apache-2.0
// The one exception barrier, and the checks of arguments that every shim makes.
//
// A shim sets its outputs, then does everything else inside guard(), whose body gets the name of the C function to
// begin its messages with.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "handles.hpp"

namespace qtn::capi {

/// Items of arrays are numbers of 64 bits and pointers; names and samples take more.
inline constexpr std::size_t kMostItems = PTRDIFF_MAX / 64;

/// Stores "entry: text" for this thread, or the text alone where it already begins with who speaks ("Conv: ..."). Never
/// allocates.
void set_message(const char *entry, const char *text) noexcept;

/// How many messages this thread has had.
unsigned message_count() noexcept;

/// The status of body(context, entry), on floats as IEEE 754 has them.
qstatus guarded(const char *entry, void (*body)(void *context, const char *entry), void *context);

template <class Body>
qstatus guard(const char *entry, Body &&body) {
  using Plain = std::remove_reference_t<Body>;
  return guarded(
      entry, [](void *context, const char *name) { (*static_cast<Plain *>(context))(name); }, &body);
}

#ifdef QTN_CHECKS
[[noreturn]] void fail_handle(const char *found, const char *wanted, const char *name);
#endif

/// Throws QTN_EINVAL unless the handle is NULL or lives, in builds that check.
template <class Handle>
void check_live(const Handle *handle, const char *name) {
#ifdef QTN_CHECKS
  if (!handle) return;
  const char *found = Tag::noun_at(handle, Handle::kNoun);
  if (found != Handle::kNoun) fail_handle(found, Handle::kNoun, name);
#else
  static_cast<void>(handle), static_cast<void>(name);
#endif
}

/// The handle, or NULL where it does not live: for functions that have no status to say so.
template <class Handle>
Handle *alive(Handle *handle) {
#ifdef QTN_CHECKS
  if (handle && Tag::noun_at(handle, Handle::kNoun) != Handle::kNoun) return nullptr;
#endif
  return handle;
}

/// Throws QTN_EINVAL "entry: name is NULL".
inline void need_pointer(const char *entry, const void *pointer, const char *name) {
  if (!pointer) fail(QTN_EINVAL, entry, ": ", name, " is NULL");
}

/// And, of a handle, that it lives.
template <class T>
void need(const char *entry, const T *pointer, const char *name) {
  need_pointer(entry, pointer, name);
  if constexpr (requires { T::kNoun; }) check_live(pointer, name);
}

/// What an optional handle holds.
template <class Handle>
auto value_or_null(Handle *handle, const char *name) {
  check_live(handle, name);
  return handle ? &handle->value : nullptr;
}

/// Throws QTN_EINVAL where no memory holds so many items: sizes in bytes that follow do not wrap.
inline void check_count(const char *entry, std::size_t count, const char *name) {
  if (count > kMostItems)
    fail(QTN_EINVAL, entry, ": the count of ", name, " is ", count, ", more than memory can hold");
}

template <class T>
void need_array(const char *entry, const T *items, std::size_t count, const char *name) {
  if (count == 0) return;
  need_pointer(entry, items, name);
  check_count(entry, count, name);
}

/// Whether this is the number of a status other than QTN_OK: callbacks may return any.
bool is_failure(qstatus status);

void check_dtype(const char *entry, qdtype dtype);
void check_scheme(const char *entry, qscheme scheme);

/// The attributes, an empty set for NULL. These throw where a handle does not live.
const Attrs &attrs_or_none(const qattrs *attrs);
const Attrs *attrs_or_null(const qattrs *attrs);
const QuantizerPtr &quantizer_or_none(const qquantizer *quantizer);

/// The tensors behind an array of handles. A NULL element is QTN_EINVAL unless `optional`, where it stays nullptr.
void get_tensors(std::span<const Tensor *> result, const char *entry, const qtensor *const *inputs,
                 bool optional = false);
std::vector<const Tensor *> tensors(const char *entry, const qtensor *const *inputs, std::size_t count,
                                    bool optional = false);

inline void clear_outputs(qtensor **outputs, std::size_t count) {
  if (outputs && count <= kMostItems)
    for (std::size_t i = 0; i < count; ++i) outputs[i] = nullptr;
}

/// Hands out tensors as new handles: all of them, or none and an exception.
void hand_out(qtensor **outputs, std::span<Tensor> results);

/// Sets `*out` to NULL where there is an `out`, so that no caller frees what was not made.
template <class T>
void clear(T **out) {
  if (out) *out = nullptr;
}

}  // namespace qtn::capi
