// SPDX-License-Identifier: Apache-2.0
// ONNX files: opsets 1 to 28 in; QDQ and QOperator at opset 13 and later out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "graph/graph.hpp"

namespace qtn::onnx {

inline constexpr int kMinOpset = 1, kMaxOpset = 28;         ///< of files that are read
inline constexpr int kMinSaveOpset = 13, kUsualOpset = 21;  ///< of files that are written

/// Whether a node of that domain and name is one that this library reads without anything being registered.
bool is_reserved(const std::string &domain, const std::string &op);

/// Reads a model. `folder` is where external data lives; it may not point outside of it. QuantizeLinear followed by
/// DequantizeLinear, and DequantizeLinear of an initializer, become quantizers of values; other operators on integers
/// stay nodes, those of the domain com.microsoft (QLinearAdd ...) too. Throws QTN_EFORMAT, QTN_EUNSUPPORTED, QTN_ESHAPE
/// or QTN_EIO.
graph::Graph parse(std::span<const std::byte> bytes, const std::string &folder);
graph::Graph load(const std::string &path);

enum class Format {
  qdq,  ///< QuantizeLinear and DequantizeLinear around every quantized activation, clamps as Relu or Clip before it
  qoperator,  ///< QLinearConv, QLinearAdd ... between, wherever there is one; otherwise as qdq
};

struct SaveOptions {
  /// 0: kUsualOpset, or the first one after it that has all of the model's operators, or for activations of int8 the one
  /// before it.
  int opset = 0;
  Format format = Format::qdq;
  bool weight_pairs = false;  ///< weights of 8 bits as floats, with QuantizeLinear in front of DequantizeLinear
  std::optional<bool> external_data = {};  ///< large constants beside the file; unless given, where it cannot hold them
};

/// The model as ONNX bytes: a float graph as it is, a quantized one in this format, with integer weights and int32
/// bias. Throws QTN_EUNSUPPORTED where it takes more than one file holds, or external data is asked for.
std::string serialize(const graph::Graph &g, const SaveOptions &options);

/// Writes to a temporary name beside `path`, then renames; external data before that, as DataFile does. Throws QTN_EIO
/// and leaves `path` as it was.
void save(const graph::Graph &g, const std::string &path, const SaveOptions &options);

}  // namespace qtn::onnx
