// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <vector>

#include "base/file.hpp"
#include "guard.hpp"
#include "io/checked.hpp"

using namespace qtn;
using namespace qtn::capi;

qstatus qobserver_create(qobserver **out, const char *kind, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, kind, "kind");
    *out = new qobserver{quant::make_observer(kind, attrs_or_none(attrs))};
  });
}

qstatus qobserver_observe(qobserver *o, const qtensor *x) {
  return guard(__func__, [&](const char *entry) {
    need(entry, o, "o");
    need(entry, x, "x");
    o->value->observe(x->value);
  });
}

qstatus qobserver_merge(qobserver *o, const qobserver *other) {
  return guard(__func__, [&](const char *entry) {
    need(entry, o, "o");
    need(entry, other, "other");
    o->value->merge(*other->value);
  });
}

qstatus qobserver_quantizer(qquantizer **out, const qobserver *o) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, o, "o");
    *out = new qquantizer{o->value->quantizer()};
  });
}

qstatus qobserver_save(qblob **out, const qobserver *o) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, o, "o");
    const std::vector<std::byte> bytes = o->value->save();
    *out = new qblob{std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size())};
  });
}

qstatus qobserver_load(qobserver **out, const void *data, size_t nbytes) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, data, "data");
    *out = new qobserver{quant::load_observer({static_cast<const std::byte *>(data), nbytes})};
  });
}

qstatus qobserver_save_file(const qobserver *o, const char *path) {
  return guard(__func__, [&](const char *entry) {
    need(entry, o, "o");
    need(entry, path, "path");
    const std::vector<std::byte> bytes = o->value->save();
    write_file(path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  });
}

qstatus qobserver_load_file(qobserver **out, const char *path) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, path, "path");
    const std::vector<char> bytes = read_file(path);
    *out = new qobserver{io::checked(path, [&] { return quant::load_observer(std::as_bytes(std::span(bytes))); })};
  });
}

void qobserver_free(qobserver *o) { delete alive(o); }
