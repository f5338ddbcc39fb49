// SPDX-License-Identifier: Apache-2.0
// One layer with weights in integers, outside of any network: sessions of a graph with one node, one for each grid that
// x comes on.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "quant/config.hpp"
#include "runtime/session.hpp"

namespace qtn::quant {

enum class LayerKind { linear, convolution, embedding, embedding_bag };

class QuantizedLayer {
 public:
  struct Parts {
    std::string kind;  ///< as qlayer_create lists them
    Tensor weight;
    std::optional<Tensor> bias = {};
    const Config *config = nullptr;  ///< for a weight of floats
    QuantizerPtr x = nullptr, out = nullptr;
    Attrs attrs = {};
  };

  /// What belongs to the caller is copied. Throws what qlayer_create says.
  explicit QuantizedLayer(const Parts &parts);

  Tensor run(const Tensor &x) const;

  const Tensor &weight() const { return weight_; }
  const std::optional<Tensor> &bias() const { return bias_; }

 private:
  using SessionPtr = std::shared_ptr<const runtime::Session>;
  struct OnGrid {
    QuantizerPtr grid;  ///< of x; nullptr: x is float
    SessionPtr session;
  };

  void check_parts(const Parts &parts, std::size_t rank) const;
  Tensor quantized_weight(const Tensor &weight, const Config *config) const;
  graph::Node node() const;
  graph::Graph graph_for(const QuantizerPtr &grid) const;
  graph::Graph dynamic_graph() const;
  SessionPtr make_session(const QuantizerPtr &grid) const;
  SessionPtr session_for(const QuantizerPtr &grid) const;
  void check_x(const Tensor &x) const;
  Tensor run_product(const Tensor &x) const;
  Tensor rows(const Tensor &x) const;

  LayerKind kind_;
  std::string name_;
  Tensor weight_;
  Tensor running_;  ///< the weights in a type of 8 bits
  std::optional<Tensor> bias_;
  QuantizerPtr x_, out_;
  Attrs attrs_;
  bool dynamic_ = false;  ///< a float x gets its grid at each run
  bool mean_ = false;     ///< of embedding_bag
  OnGrid first_;          ///< what runs without a lock
  mutable std::mutex mutex_;
  mutable std::vector<OnGrid> others_;  ///< the last used last
};

}  // namespace qtn::quant
