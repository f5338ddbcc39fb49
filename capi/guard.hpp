// SPDX-License-Identifier: Apache-2.0
// The one exception barrier, and the checks of arguments that every shim makes.
//
// A shim sets its outputs, then does everything else inside guard(), whose body gets the name of the C function to
// begin its messages with.
#pragma once

#include <cxxabi.h>

#include <exception>
#include <new>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "handles.hpp"

namespace qtn::capi {

/// Stores "entry: text" for this thread, or the text alone where it already begins with who speaks ("Conv: ..."). Never
/// allocates.
void set_message(const char *entry, const char *text) noexcept;

template <class Body>
qstatus guard(const char *entry, Body &&body) {
  try {
    body(entry);
    return QTN_OK;
  } catch (const Error &error) {
    set_message(entry, error.what());
    return error.status();
  } catch (const std::bad_alloc &) {
    set_message(entry, "out of memory");
    return QTN_ENOMEM;
  } catch (const std::exception &error) {
    set_message(entry, error.what());
    return QTN_EINTERNAL;
  } catch (const abi::__forced_unwind &) {
    throw;  // a thread that is cancelled in a callback: glibc ends the process where that is held up
  } catch (...) {
    set_message(entry, "unknown exception");
    return QTN_EINTERNAL;
  }
}

/// Throws QTN_EINVAL "entry: name is NULL".
inline void need(const char *entry, const void *pointer, const char *name) {
  if (!pointer) fail(QTN_EINVAL, entry, ": ", name, " is NULL");
}

inline void need_array(const char *entry, const void *items, std::size_t count, const char *name) {
  if (count != 0) need(entry, items, name);
}

void check_dtype(const char *entry, qdtype dtype);
void check_scheme(const char *entry, qscheme scheme);

/// The attributes, an empty set for NULL.
const Attrs &attrs_or_none(const qattrs *attrs);
const QuantizerPtr &quantizer_or_none(const qquantizer *quantizer);

/// The tensors behind an array of handles. A NULL element is QTN_EINVAL unless `optional`, where it stays nullptr.
void get_tensors(std::span<const Tensor *> result, const char *entry, const qtensor *const *inputs,
                 bool optional = false);
std::vector<const Tensor *> tensors(const char *entry, const qtensor *const *inputs, std::size_t count,
                                    bool optional = false);

inline void clear_outputs(qtensor **outputs, std::size_t count) {
  if (outputs)
    for (std::size_t i = 0; i < count; ++i) outputs[i] = nullptr;
}

/// Hands out tensors as new handles: all of them, or none and an exception.
void hand_out(qtensor **outputs, std::span<Tensor> results);

/// Sets `*out` to NULL where there is an `out`, so that nobody frees what was not made.
template <class T>
void clear(T **out) {
  if (out) *out = nullptr;
}

}  // namespace qtn::capi
