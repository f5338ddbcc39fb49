// SPDX-License-Identifier: Apache-2.0
#include "io/dlpack.hpp"

#include "guard.hpp"

using namespace qtn;
using namespace qtn::capi;

namespace {

template <class Managed>
void hand_over(const char *entry, Managed **out, const qtensor *t) {
  need(entry, out, "out");
  need(entry, t, "t");
  *out = io::to_dlpack<Managed>(t->value);
}

template <class Managed>
void take_over(const char *entry, qtensor **out, Managed *managed) {
  need(entry, out, "out");
  need(entry, managed, "managed");
  // The handle first: once the storage is ours, nothing may fail.
  auto handle = std::make_unique<qtensor>(Tensor());
  handle->value = io::from_dlpack(managed);
  *out = handle.release();
}

}  // namespace

qstatus qtensor_to_dlpack(DLManagedTensor **out, const qtensor *t) {
  clear(out);
  return guard(__func__, [&](const char *entry) { hand_over(entry, out, t); });
}

qstatus qtensor_from_dlpack(qtensor **out, DLManagedTensor *managed) {
  clear(out);
  return guard(__func__, [&](const char *entry) { take_over(entry, out, managed); });
}

qstatus qtensor_to_dlpack_versioned(DLManagedTensorVersioned **out, const qtensor *t) {
  clear(out);
  return guard(__func__, [&](const char *entry) { hand_over(entry, out, t); });
}

qstatus qtensor_from_dlpack_versioned(qtensor **out, DLManagedTensorVersioned *managed) {
  clear(out);
  return guard(__func__, [&](const char *entry) { take_over(entry, out, managed); });
}
