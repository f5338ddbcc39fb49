// SPDX-License-Identifier: Apache-2.0
// What the opaque handles hold: one core object each.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "base/error.hpp"
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
#include "tag.hpp"
#include "train/trainer.hpp"

struct qquantizer {
  qtn::QuantizerPtr value;
  static constexpr char kNoun[] = "qquantizer";
  [[no_unique_address]] qtn::capi::Tag tag{this, kNoun};
};

struct qtensor {
  explicit qtensor(qtn::Tensor t) : value(std::move(t)), quantizer{value.quantizer()} {}

  qtn::Tensor value;
  qquantizer quantizer;  ///< what qtensor_quantizer() lends out; follows `value`
  static constexpr char kNoun[] = "qtensor";
  [[no_unique_address]] qtn::capi::Tag tag{this, kNoun};
};

struct qattrs {
  qtn::Attrs value;
  static constexpr char kNoun[] = "qattrs";
  [[no_unique_address]] qtn::capi::Tag tag{this, kNoun};
};

struct qobserver {
  std::unique_ptr<qtn::quant::Observer> value;
  static constexpr char kNoun[] = "qobserver";
  [[no_unique_address]] qtn::capi::Tag tag{this, kNoun};
};

struct qconfig {
  qtn::quant::Config value;
  static constexpr char kNoun[] = "qconfig";
  [[no_unique_address]] qtn::capi::Tag tag{this, kNoun};
};

struct qmodel {
  explicit qmodel(qtn::graph::Graph g) : value(std::move(g)), constants(qtn::graph::used_constants(graph())) {}
  explicit qmodel(qtn::quant::PreparedModel p) : value(std::move(p)), constants(qtn::graph::used_constants(graph())) {}

  const qtn::quant::PreparedModel *prepared() const { return std::get_if<qtn::quant::PreparedModel>(&value); }
  const qtn::graph::Graph &graph() const {
    return prepared() ? prepared()->graph : *std::get_if<qtn::graph::Graph>(&value);
  }

  std::variant<qtn::graph::Graph, qtn::quant::PreparedModel> value;
  std::vector<qtn::graph::ValueId> constants;  ///< what qmodel_tensor_name() counts
  static constexpr char kNoun[] = "qmodel";
  [[no_unique_address]] qtn::capi::Tag tag{this, kNoun};
};

namespace qtn::capi {

/// The graph of a model that nothing was done to before.
inline const graph::Graph &unprepared(const char *entry, const qmodel *m) {
  if (m->prepared()) fail(QTN_ESTATE, entry, ": the model is prepared already");
  return m->graph();
}

/// The graph of a model that can be saved and run.
inline const graph::Graph &finished(const char *entry, const qmodel *m) {
  if (m->prepared()) fail(QTN_ESTATE, entry, ": the model is prepared, but not converted");
  return m->graph();
}

}  // namespace qtn::capi

struct qsession {
  qtn::runtime::Session value;
  static constexpr char kNoun[] = "qsession";
  [[no_unique_address]] qtn::capi::Tag tag{this, kNoun};
};

struct qtrainer {
  qtn::train::Trainer value;
  static constexpr char kNoun[] = "qtrainer";
  [[no_unique_address]] qtn::capi::Tag tag{this, kNoun};
};

struct qlayer {
  explicit qlayer(const qtn::quant::QuantizedLayer::Parts &parts) : value(parts) {}

  qtn::quant::QuantizedLayer value;
  static constexpr char kNoun[] = "qlayer";
  [[no_unique_address]] qtn::capi::Tag tag{this, kNoun};
};

struct qblob {
  std::string bytes;
  static constexpr char kNoun[] = "qblob";
  [[no_unique_address]] qtn::capi::Tag tag{this, kNoun};
};
