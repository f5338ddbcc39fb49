// SPDX-License-Identifier: Apache-2.0
#include "guard.hpp"

using namespace qtn;
using namespace qtn::capi;

namespace {

void set(const char *entry, qattrs *a, const char *key, Attr value) {
  if (*key == '\0') fail(QTN_EINVAL, entry, ": key is empty");
  a->value.set(key, std::move(value));
}

void check(const char *entry, const qattrs *a, const char *key) {
  need(entry, a, "a");
  need(entry, key, "key");
}

}  // namespace

qstatus qattrs_create(qattrs **out) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    *out = new qattrs;
  });
}

void qattrs_free(qattrs *a) { delete alive(a); }

qstatus qattrs_set_int(qattrs *a, const char *key, int64_t value) {
  return guard(__func__, [&](const char *entry) {
    check(entry, a, key);
    set(entry, a, key, value);
  });
}

qstatus qattrs_set_float(qattrs *a, const char *key, double value) {
  return guard(__func__, [&](const char *entry) {
    check(entry, a, key);
    set(entry, a, key, value);
  });
}

qstatus qattrs_set_string(qattrs *a, const char *key, const char *value) {
  return guard(__func__, [&](const char *entry) {
    check(entry, a, key);
    need(entry, value, "value");
    set(entry, a, key, std::string(value));
  });
}

qstatus qattrs_set_ints(qattrs *a, const char *key, const int64_t *values, size_t count) {
  return guard(__func__, [&](const char *entry) {
    check(entry, a, key);
    need_array(entry, values, count, "values");
    set(entry, a, key, std::vector<std::int64_t>(values, values + count));
  });
}

qstatus qattrs_set_floats(qattrs *a, const char *key, const double *values, size_t count) {
  return guard(__func__, [&](const char *entry) {
    check(entry, a, key);
    need_array(entry, values, count, "values");
    set(entry, a, key, std::vector<double>(values, values + count));
  });
}
