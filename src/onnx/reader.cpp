// SPDX-License-Identifier: Apache-2.0
// A model file as a graph.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/limits.hpp"
#include "graph/open_inputs.hpp"
#include "onnx/bodies.hpp"
#include "onnx/composed.hpp"
#include "onnx/doubles.hpp"
#include "onnx/functions.hpp"
#include "onnx/graph_reader.hpp"
#include "onnx/named_types.hpp"
#include "onnx/old_nearest.hpp"
#include "onnx/onnx.hpp"
#include "onnx/own_functions.hpp"
#include "onnx/qdq.hpp"
#include "onnx/settled_types.hpp"

namespace qtn::onnx {
namespace {

/// One line that names all of them.
[[noreturn]] void fail_unsupported(const std::map<std::string, std::vector<std::string>> &operators) {
  const auto &[first, nodes] = *operators.begin();
  if (operators.size() == 1 && nodes.size() == 1)
    fail(QTN_EUNSUPPORTED, "operator ", first, " of node \"", nodes[0], "\" is not supported");
  std::string list;
  for (const auto &[name, callers] : operators)
    list += cat(list.empty() ? "" : ", ", name, " of ", callers.size(), callers.size() == 1 ? " node" : " nodes");
  fail(QTN_EUNSUPPORTED, "operators are not supported: ", list);
}

/// Why nodes do not fit together for a batch of that size; nullopt where they do.
std::optional<Error> misfit(const graph::Graph &g, std::int64_t batch) {
  try {
    const std::vector<ops::TensorType> inputs = *graph::declared_input_types(g, batch);
    // One image also tells what of constants alone would make every run far longer.
    batch == 1 ? graph::infer_partly(g, inputs) : graph::try_types(g, inputs);
    return std::nullopt;
  } catch (const Error &e) {
    return e;
  }
}

/// Shapes that do not fit are found here rather than at the first run.
void check_shapes(const graph::Graph &g) {
  if (!graph::declared_input_types(g, 1)) return;
  const std::optional<Error> first = misfit(g, 1);
  if (!first) return;
  if (!graph::has_open_dimension(g)) throw *first;
  bool is_same = true;
  for (const std::int64_t batch : graph::kOtherBatches) {
    const std::optional<Error> other = misfit(g, batch);
    if (!other) return;
    is_same = is_same && std::string_view(first->what()) == other->what();
  }
  // Some other batch may fit, and a run will tell. None makes other types, or changes what does not follow from it.
  if (is_same || first->status() != QTN_ESHAPE) throw *first;
  graph::infer_closed(g);
}

graph::Graph read(protozero::data_view bytes, const std::string &folder) {
  const ModelProto model = read_model(bytes);
  if (!model.graph) fail(QTN_EFORMAT, "holds no graph");
  std::optional<std::int64_t> opset = default_opset(model.opsets);
  // Functions say which opsets they use, and a graph need not call ONNX's own operators.
  if (!opset && (!model.functions.empty() || !model.opsets.empty())) opset = kMaxOpset;
  if (!opset) fail(QTN_EFORMAT, "does not say which opset it uses");
  if (*opset < kMinOpset || *opset > kMaxOpset)
    fail(QTN_EUNSUPPORTED, "uses opset ", *opset, "; supported are ", kMinOpset, " to ", kMaxOpset);
  Numerics numerics = Numerics::onnx;
  for (const auto &[key, value] : model.metadata)
    if (key == kNumericsKey) numerics = parse_numerics(value);

  GraphProto proto = read_graph(*model.graph);
  inline_functions(proto, model.functions, is_known);
  FileContext file{DataFolder(folder), *opset, model.opsets, {}, {}, {}, {}, {}};
  rewrite_composed(proto, *opset, file.folder, bytes.size());
  file.kept_types = named_types(proto);
  GraphReader reader(file, nullptr);
  graph::Graph g = reader.read(proto);
  file.tensors.clear();  // what is replaced from here on is to be free
  if (!file.unsupported.empty()) fail_unsupported(file.unsupported);
  g.opsets = std::move(file.opsets);
  settle_nearest(g, file.node_names);
  settle_types(g);
  recognize_own_functions(g);
  narrow_doubles(g, reader.value_names(), file.node_names);
  finish(g, numerics);
  check_shapes(g);
  return g;
}

/// `who` begins every message: the path, or "model".
graph::Graph parse_as(std::span<const std::byte> bytes, const std::string &folder, const std::string &who) {
  if (bytes.empty()) fail(QTN_EFORMAT, who, " is not a valid ONNX file: it is empty");
  try {
    return read({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, folder);
  } catch (const protozero::end_of_buffer_exception &) {
    fail(QTN_EFORMAT, who, " is not a valid ONNX file: it is truncated (", bytes.size(), " bytes) or damaged");
  } catch (const protozero::exception &e) {
    fail(QTN_EFORMAT, who, " is not a valid ONNX file: ", e.what());
  } catch (const Error &e) {
    if (e.status() == QTN_EFORMAT || e.status() == QTN_EINVAL)
      fail(QTN_EFORMAT, who, " is not a valid ONNX file: ", e.what());
    fail(e.status(), who, ": ", e.what());
  }
}

}  // namespace

graph::Graph parse(std::span<const std::byte> bytes, const std::string &folder) {
  const Allowance memory(Limit::load_bytes);
  return parse_as(bytes, folder, "model");
}

graph::Graph load(const std::string &path) {
  const Allowance memory(Limit::load_bytes);
  const InputFile file(path);
  try {
    Allowance::take(static_cast<std::size_t>(file.size()));
  } catch (const Error &e) {
    fail(e.status(), path, ": ", e.what());
  }
  std::vector<char> bytes(static_cast<std::size_t>(file.size()));
  file.read(bytes.data(), 0, bytes.size());
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return parse_as(std::as_bytes(std::span(bytes)), folder.empty() ? "." : folder, path);
}

}  // namespace qtn::onnx
