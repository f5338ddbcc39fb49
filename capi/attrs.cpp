// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "guard.hpp"

using namespace qtn;
using namespace qtn::capi;

namespace {

void set(const char *entry, qattrs *a, const char *key, Attr value) {
  if (*key == '\0') fail(QTN_EINVAL, entry, ": key is empty");
  a->value.set(key, std::move(value));
}

constexpr const char *kKinds[] = {"int", "float", "string", "ints", "floats", "tensor"};

const Attr *attr_at(const qattrs *a, const char *key) {
  const auto at = std::ranges::find_if(a->value, [&](const auto &item) { return item.first == key; });
  return at == a->value.end() ? nullptr : &at->second;
}

/// The value of that kind; nullptr where the key is absent.
template <class T>
const T *find(const char *entry, const qattrs *a, const char *key) {
  const Attr *attr = attr_at(a, key);
  if (!attr) return nullptr;
  if (const T *value = std::get_if<T>(attr)) return value;
  const Attr wanted{T()};
  fail(QTN_EINVAL, entry, ": \"", key, "\" is of kind ", kKinds[attr->index()], ", not ", kKinds[wanted.index()]);
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

size_t qattrs_count(const qattrs *a) { return alive(a) ? a->value.size() : 0; }

const char *qattrs_key(const qattrs *a, size_t index) {
  return alive(a) && index < a->value.size()
             ? std::next(a->value.begin(), static_cast<std::ptrdiff_t>(index))->first.c_str()
             : nullptr;
}

const char *qattrs_kind(const qattrs *a, const char *key) {
  const Attr *attr = alive(a) && key ? attr_at(a, key) : nullptr;
  return attr ? kKinds[attr->index()] : nullptr;
}

qstatus qattrs_get_int(int64_t *out, const qattrs *a, const char *key, int64_t otherwise) {
  if (out) *out = 0;
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    check(entry, a, key);
    const auto *value = find<std::int64_t>(entry, a, key);
    *out = value ? *value : otherwise;
  });
}

qstatus qattrs_get_float(double *out, const qattrs *a, const char *key, double otherwise) {
  if (out) *out = 0;
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    check(entry, a, key);
    const Attr *attr = attr_at(a, key);
    if (const auto *integer = attr ? std::get_if<std::int64_t>(attr) : nullptr) {
      *out = static_cast<double>(*integer);
      return;
    }
    const auto *value = find<double>(entry, a, key);
    *out = value ? *value : otherwise;
  });
}

qstatus qattrs_get_string(const char **out, const qattrs *a, const char *key, const char *otherwise) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    check(entry, a, key);
    const auto *value = find<std::string>(entry, a, key);
    *out = value ? value->c_str() : otherwise;
  });
}

qstatus qattrs_get_ints(const int64_t **out, size_t *count, const qattrs *a, const char *key) {
  clear(out);
  if (count) *count = 0;
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, count, "count");
    check(entry, a, key);
    if (const auto *values = find<std::vector<std::int64_t>>(entry, a, key)) {
      *out = values->data();
      *count = values->size();
    }
  });
}

qstatus qattrs_get_floats(const double **out, size_t *count, const qattrs *a, const char *key) {
  clear(out);
  if (count) *count = 0;
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, count, "count");
    check(entry, a, key);
    if (const auto *values = find<std::vector<double>>(entry, a, key)) {
      *out = values->data();
      *count = values->size();
    }
  });
}

qstatus qattrs_get_tensor(qtensor **out, const qattrs *a, const char *key) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    check(entry, a, key);
    if (const auto *tensor = find<Tensor>(entry, a, key)) *out = new qtensor(*tensor);
  });
}
