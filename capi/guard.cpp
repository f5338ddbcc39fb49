// SPDX-License-Identifier: Apache-2.0
#include "guard.hpp"

#include <cxxabi.h>

#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "base/float_scope.hpp"

namespace qtn::capi {

qstatus guarded(const char *entry, void (*body)(void *context, const char *entry), void *context) {
  try {
    const FloatScope scope(FloatMode::standard);
    body(context, entry);
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

#ifdef QTN_CHECKS
void fail_handle(const char *found, const char *wanted, const char *name) {
  if (found) fail(QTN_EINVAL, name, " is a ", found, ", not a ", wanted);
  fail(QTN_EINVAL, name, " is no ", wanted, ", or one that was freed");
}
#endif

bool is_failure(qstatus status) { return status != QTN_OK && std::strcmp(qstatus_name(status), "QTN_?") != 0; }

void check_dtype(const char *entry, qdtype dtype) {
  if (dtype_name(dtype)[0] == '?') fail(QTN_EINVAL, entry, ": dtype ", static_cast<int>(dtype), " is unknown");
}

void check_scheme(const char *entry, qscheme scheme) {
  if (static_cast<unsigned>(scheme) > QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS)
    fail(QTN_EINVAL, entry, ": scheme ", static_cast<int>(scheme), " is unknown");
}

const Attrs &attrs_or_none(const qattrs *attrs) {
  static const Attrs none;
  check_live(attrs, "attrs");
  return attrs ? attrs->value : none;
}

const Attrs *attrs_or_null(const qattrs *attrs) { return attrs ? &attrs_or_none(attrs) : nullptr; }

const QuantizerPtr &quantizer_or_none(const qquantizer *quantizer) {
  static const QuantizerPtr none;
  check_live(quantizer, "the quantizer");
  return quantizer ? quantizer->value : none;
}

void get_tensors(std::span<const Tensor *> result, const char *entry, const qtensor *const *inputs, bool optional) {
  need_array(entry, inputs, result.size(), "inputs");
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!inputs[i] && !optional) fail(QTN_EINVAL, entry, ": inputs[", i, "] is NULL");
    check_live(inputs[i], "an element of inputs");
    result[i] = inputs[i] ? &inputs[i]->value : nullptr;
  }
}

std::vector<const Tensor *> tensors(const char *entry, const qtensor *const *inputs, std::size_t count, bool optional) {
  need_array(entry, inputs, count, "inputs");
  std::vector<const Tensor *> result(count);
  get_tensors(result, entry, inputs, optional);
  return result;
}

void hand_out(qtensor **outputs, std::span<Tensor> results) {
  std::size_t made = 0;
  try {
    for (; made < results.size(); ++made) outputs[made] = new qtensor(std::move(results[made]));
  } catch (...) {
    while (made-- > 0) delete std::exchange(outputs[made], nullptr);
    throw;
  }
}

}  // namespace qtn::capi
