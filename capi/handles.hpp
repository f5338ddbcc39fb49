// SPDX-License-Identifier: Apache-2.0
// What the opaque handles hold: one core object each.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "core/attrs.hpp"
#include "core/quantizer.hpp"
#include "core/tensor.hpp"
#include "graph/graph.hpp"
#include "graph/tensors.hpp"
#include "qtensor/qtensor.h"
#include "quant/config.hpp"
#include "quant/observe/observer.hpp"
#include "quant/prepare.hpp"
#include "quant/quantized_layer.hpp"
#include "runtime/session.hpp"
#include "train/trainer.hpp"

struct qquantizer {
  qtn::QuantizerPtr value;
};

struct qtensor {
  explicit qtensor(qtn::Tensor t) : value(std::move(t)), quantizer{value.quantizer()} {}

  qtn::Tensor value;
  qquantizer quantizer;  ///< what qtensor_quantizer() lends out; follows `value`
};

struct qattrs {
  qtn::Attrs value;
};

struct qobserver {
  std::unique_ptr<qtn::quant::Observer> value;
};

struct qconfig {
  qtn::quant::Config value;
};

struct qmodel {
  explicit qmodel(qtn::graph::Graph g) : value(std::move(g)), constants(qtn::graph::used_constants(graph())) {}
  explicit qmodel(qtn::quant::Prepared p) : value(std::move(p)), constants(qtn::graph::used_constants(graph())) {}

  const qtn::quant::Prepared *prepared() const { return std::get_if<qtn::quant::Prepared>(&value); }
  const qtn::graph::Graph &graph() const {
    return prepared() ? prepared()->graph : *std::get_if<qtn::graph::Graph>(&value);
  }

  std::variant<qtn::graph::Graph, qtn::quant::Prepared> value;
  std::vector<qtn::graph::ValueId> constants;  ///< what qmodel_tensor_name() counts
};

struct qsession {
  qtn::runtime::Session value;
};

struct qtrainer {
  qtn::train::Trainer value;
};

struct qlayer {
  explicit qlayer(const qtn::quant::QuantizedLayer::Parts &parts) : value(parts) {}

  qtn::quant::QuantizedLayer value;
};

struct qblob {
  std::string bytes;
};
