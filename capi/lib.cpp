// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.hpp"
#include "base/parallel.hpp"
#include "guard.hpp"

using namespace qtn;
using namespace qtn::capi;

uint32_t qlib_version(void) { return QTN_VERSION_MAJOR << 16 | QTN_VERSION_MINOR << 8 | QTN_VERSION_PATCH; }

const char *qlib_isa(void) { return isa_name(isa()); }

qstatus qlib_set_isa(const char *isa) {
  return guard(__func__, [&](const char *entry) {
    need(entry, isa, "isa");
    set_isa(isa);
  });
}

qstatus qlib_set_threads(int32_t count) {
  return guard(__func__, [&](const char *entry) {
    if (count < 0 || count > 1024) fail(QTN_EINVAL, entry, ": count is ", count, ", not from 0 to 1024");
    set_default_threads(count);
  });
}

const char *qdtype_name(qdtype dtype) { return dtype_name(dtype); }
