// SPDX-License-Identifier: Apache-2.0
#include "guard.hpp"

using namespace qtn;
using namespace qtn::capi;

qstatus qlayer_create(qlayer **out, const char *kind, const qtensor *weight, const qtensor *bias, const qconfig *config,
                      const qquantizer *x_quantizer, const qquantizer *out_quantizer, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, kind, "kind");
    need(entry, weight, "weight");
    quant::QuantizedLayer::Parts parts{kind, weight->value};
    if (const Tensor *t = value_or_null(bias, "bias")) parts.bias = *t;
    parts.config = value_or_null(config, "config");
    parts.x = quantizer_or_none(x_quantizer);
    parts.out = quantizer_or_none(out_quantizer);
    parts.attrs = attrs_or_none(attrs);
    *out = new qlayer(parts);
  });
}

qstatus qlayer_run(qtensor **out, const qlayer *layer, const qtensor *x) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, layer, "layer");
    need(entry, x, "x");
    *out = new qtensor(layer->value.run(x->value));
  });
}

qstatus qlayer_weight(qtensor **out, const qlayer *layer) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, layer, "layer");
    *out = new qtensor(layer->value.weight().clone());
  });
}

qstatus qlayer_bias(qtensor **out, const qlayer *layer) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, layer, "layer");
    if (layer->value.bias()) *out = new qtensor(layer->value.bias()->clone());
  });
}

void qlayer_free(qlayer *layer) { delete alive(layer); }
