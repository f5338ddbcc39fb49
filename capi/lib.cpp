// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "base/cpu.hpp"
#include "base/find_named.hpp"
#include "base/limits.hpp"
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

qstatus qlib_set_limits(const qattrs *limits) {
  return guard(__func__, [&](const char *entry) {
    const std::span<const LimitInfo> infos = limit_infos();
    std::vector<AttrSpec> specs;
    for (const LimitInfo &info : infos) specs.push_back({info.name, AttrSpec::kInt});
    const Attrs &given = attrs_or_none(limits);
    given.check(specs, entry);
    for (const LimitInfo &info : infos)
      if (const std::int64_t value = given.get_int(info.name, 0); value < 0)
        fail(QTN_EINVAL, entry, ": ", info.name, " is ", value, ", which is negative");
    for (std::size_t i = 0; i < infos.size(); ++i)
      if (!limits || given.has(infos[i].name)) set_limit(static_cast<Limit>(i), given.get_int(infos[i].name, 0));
  });
}

qstatus qlib_limit(int64_t *out, const char *name) {
  if (out) *out = 0;
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, name, "name");
    const LimitInfo &info = find_named(limit_infos(), name, entry, "limit", &LimitInfo::name);
    *out = limit(static_cast<Limit>(&info - limit_infos().data()));
  });
}

const char *qdtype_name(qdtype dtype) { return dtype_name(dtype); }
