// SPDX-License-Identifier: Apache-2.0
#include "guard.hpp"
#include "quant/config_file.hpp"

using namespace qtn;
using namespace qtn::capi;

qstatus qconfig_create(qconfig **out, const char *name) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, name, "name");
    *out = new qconfig{quant::Config(name)};
  });
}

qstatus qconfig_set(qconfig *c, const char *selector, const qattrs *settings) {
  return guard(__func__, [&](const char *entry) {
    need(entry, c, "c");
    need(entry, selector, "selector");
    c->value.set(selector, attrs_or_null(settings));
  });
}

qstatus qconfig_save(const qconfig *c, const char *path) {
  return guard(__func__, [&](const char *entry) {
    need(entry, c, "c");
    need(entry, path, "path");
    quant::save_config(c->value, path);
  });
}

qstatus qconfig_load(qconfig **out, const char *path) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, path, "path");
    *out = new qconfig{quant::load_config(path)};
  });
}

void qconfig_free(qconfig *c) { delete alive(c); }
