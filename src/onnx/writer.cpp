// SPDX-License-Identifier: Apache-2.0
// A graph as a model file.
#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"
#include "graph/passes/passes.hpp"
#include "graph/tensors.hpp"
#include "graph/unique_names.hpp"
#include "onnx/bodies.hpp"
#include "onnx/data_file.hpp"
#include "onnx/dynamic_products.hpp"
#include "onnx/halves.hpp"
#include "onnx/onnx.hpp"
#include "onnx/opset_forms.hpp"
#include "onnx/own_functions.hpp"
#include "onnx/qdq.hpp"
#include "onnx/tensor_proto.hpp"
#include "ops/common/dynamic_quantizer.hpp"
#include "ops/custom.hpp"
#include "qtensor/version.h"

namespace qtn::onnx {

using graph::kNoValue;
using graph::ValueId;
using protozero::pbf_writer;

namespace {

/// The oldest format that knows the opset, so that the oldest readers can load the file.
int ir_version(int opset) {
  if (opset >= 28) return 14;
  if (opset >= 25) return 13;
  if (opset >= 23) return opset - 12;
  if (opset >= 21) return 10;
  if (opset >= 19) return 9;
  return opset >= 15 ? 8 : 7;
}

const AttrSpec *find_spec(const ops::OpDef &op, const std::string &name) {
  const auto spec = std::find_if(op.attrs.begin(), op.attrs.end(), [&](const AttrSpec &s) { return s.name == name; });
  return spec == op.attrs.end() ? nullptr : &*spec;
}

void write_attribute(pbf_writer message, const ops::OpDef &op, const std::string &name, const Attr &value) {
  namespace f = field::attribute;
  message.add_string(f::name, name);
  const auto set_type = [&](AttributeType type) { message.add_enum(f::type, static_cast<std::int32_t>(type)); };
  if (const auto *integer = std::get_if<std::int64_t>(&value)) {
    const AttrSpec *spec = find_spec(op, name);
    if (spec && spec->kind == AttrSpec::kFloat) {
      message.add_float(f::f, static_cast<float>(*integer));
      return set_type(AttributeType::f);
    }
    message.add_int64(f::i, *integer);
    set_type(AttributeType::i);
  } else if (const auto *number = std::get_if<double>(&value)) {
    message.add_float(f::f, static_cast<float>(*number));
    set_type(AttributeType::f);
  } else if (const AttrSpec *spec = find_spec(op, name); spec && spec->kind == AttrSpec::kStrings) {
    Attrs list;
    list.set(name, value);
    for (const std::string &item : list.get_strings(name)) message.add_bytes(f::strings, item);
    set_type(AttributeType::strings);
  } else if (const auto *text = std::get_if<std::string>(&value)) {
    message.add_bytes(f::s, *text);
    set_type(AttributeType::s);
  } else if (const auto *ints = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (const std::int64_t i : *ints) message.add_int64(f::ints, i);
    set_type(AttributeType::ints);
  } else if (const auto *floats = std::get_if<std::vector<double>>(&value)) {
    for (const double x : *floats) message.add_float(f::floats, static_cast<float>(x));
    set_type(AttributeType::floats);
  } else {
    write_tensor(pbf_writer(message, f::t), "", std::get<Tensor>(value));
    set_type(AttributeType::t);
  }
}

/// By value id.
using Names = std::vector<std::string>;

Names names_of(const graph::Graph &g) {
  Names names;
  for (const graph::Value &value : g.values) names.push_back(value.name);
  return names;
}

/// Visits the nodes of a graph and of those that its nodes run.
template <class Visit>
void visit_nodes(const graph::Graph &g, const Visit &visit) {
  for (const graph::Node &node : g.nodes) {
    visit(node);
    for (const auto &body : node.bodies) visit_nodes(*body, visit);
  }
}

struct WrittenModel {
  std::string bytes;
  std::vector<DataRegion> beside;  ///< what they name in the file of external data
};

class Writer {
 public:
  /// `data`: the file for external data, which the caller writes; nullptr: there is none.
  Writer(graph::Graph g, const SaveOptions &options, DataFile *data)
      : g_(std::move(g)), opset_(options.opset), data_(data) {
    find_missing_types();
    for (const graph::Value &value : g_.values) taken_.take(value.name);
    // Before anything large is allocated.
    const std::size_t size = constant_bytes();
    if (!options.external_data.value_or(size > kMostInside)) data_ = nullptr;
    if (!data_ && size > kMaxBytes) fail_size(size);
  }

  WrittenModel write(std::optional<Numerics> numerics) && {
    std::map<std::string, std::int64_t> domains;
    visit_nodes(g_, [&](const graph::Node &node) {
      const ops::Custom *custom = ops::as_custom(*node.op);
      if (const char *domain = domain_at(node, opset_); *domain) {
        std::int64_t &version = domains[domain];
        version = std::max(version, custom ? version_of(domain, *custom) : 1);
      }
    });
    std::string bytes;
    pbf_writer model(bytes);
    model.add_int64(field::model::ir_version, ir_version(opset_));
    model.add_string(field::model::producer_name, "qtensor");
    model.add_string(field::model::producer_version, QTN_VERSION_STRING);
    write_graph(pbf_writer(model, field::model::graph), g_, names_of(g_), 0);
    write_opset(pbf_writer(model, field::model::opset_import), "", opset_);
    for (const auto &[domain, version] : domains)
      write_opset(pbf_writer(model, field::model::opset_import), domain.c_str(), version);
    if (numerics) {
      pbf_writer entry(model, field::model::metadata_props);
      entry.add_string(field::entry::key, kNumericsKey);
      entry.add_string(field::entry::value, numerics_name(*numerics));
    }
    if (bytes.size() > kMaxBytes) fail_size(bytes.size());
    return {std::move(bytes), std::move(beside_)};
  }

 private:
  static constexpr std::size_t kMaxBytes = std::numeric_limits<std::int32_t>::max(),
                               kMostInside = kMaxBytes / 16 * 15;  // beside nodes and names

  [[noreturn]] static void fail_size(std::size_t size) {
    fail(QTN_EUNSUPPORTED, "model takes ", size, " bytes as ONNX, over protobuf's limit of ", kMaxBytes);
  }

  /// The version that the file had, in which the operator may mean what an older one does not.
  std::int64_t version_of(const std::string &domain, const ops::Custom &op) const {
    const auto at = g_.opsets.find(domain);
    return at == g_.opsets.end() ? op.since_version : at->second;
  }

  static void write_opset(pbf_writer message, const char *domain, std::int64_t version) {
    message.add_string(field::opset::domain, domain);
    message.add_int64(field::opset::version, version);
  }

  std::size_t constant_bytes() const {
    std::size_t size = 0;
    for (const ValueId v : graph::used_constants(g_)) size += g_.value(v).constant.nbytes();
    return size;
  }

  /// ONNX wants the element type of every output; passes may have left one without.
  void find_missing_types() {
    for (const ValueId v : g_.outputs)
      if (!g_.value(v).dtype)
        g_.value(v).dtype = g_.value(v).is_constant() ? g_.value(v).constant.dtype() : QTN_FLOAT32;
  }

  /// Large constants that are equal, as the weights of layers are that share them, get the name of the first. The others
  /// are returned.
  static std::vector<ValueId> share_constants(const graph::Graph &g, Names &names) {
    constexpr std::size_t kLarge = 4096;
    const auto bytes = [](const Tensor &t) {
      return std::string_view(static_cast<const char *>(t.data()), t.nbytes());
    };
    std::multimap<std::size_t, ValueId> large;  // by hash
    std::vector<ValueId> written;
    for (const ValueId v : graph::used_constants(g)) {
      const Tensor &t = g.value(v).constant;
      ValueId first = v;
      if (t.nbytes() >= kLarge && t.contiguous() && std::ranges::find(g.outputs, v) == g.outputs.end()) {
        const std::size_t hash = std::hash<std::string_view>()(bytes(t));
        const auto [begin, end] = large.equal_range(hash);
        const auto same = std::find_if(begin, end, [&](const auto &entry) {
          const Tensor &other = g.value(entry.second).constant;
          return other.dtype() == t.dtype() && other.shape() == t.shape() && bytes(other) == bytes(t);
        });
        same == end ? void(large.emplace(hash, v)) : void(first = same->second);
      }
      if (first == v) written.push_back(v);
      names[static_cast<std::size_t>(v)] = names[static_cast<std::size_t>(first)];
    }
    return written;
  }

  /// The last inputs, `captured` of them, are values of the graph around.
  void write_graph(pbf_writer message, const graph::Graph &g, Names names, std::size_t captured) {
    const std::vector<ValueId> written = share_constants(g, names);
    const auto name_of = [&](ValueId v) -> const std::string & { return names[static_cast<std::size_t>(v)]; };
    for (const graph::Node &node : g.nodes) write_node(pbf_writer(message, field::graph::node), names, node);
    message.add_string(field::graph::name, g.name.empty() ? "qtensor" : g.name);
    for (const ValueId v : written)
      write_constant(pbf_writer(message, field::graph::initializer), name_of(v), g.value(v).constant);
    const std::vector<ValueId> batched = batched_inputs(g);
    const auto write = [&](auto tag, ValueId v, bool is_input) {
      write_value_info(pbf_writer(message, tag), g, batched, v, name_of(v), is_input);
    };
    for (std::size_t i = 0; i + captured < g.inputs.size(); ++i) write(field::graph::input, g.inputs[i], true);
    for (const ValueId v : g.outputs) write(field::graph::output, v, false);
  }

  void write_constant(pbf_writer message, const std::string &name, const Tensor &constant) {
    constexpr std::size_t kLeastBeside = 1024;  // as onnx.save_model has it
    if (!data_ || constant.nbytes() < kLeastBeside) return write_tensor(std::move(message), name, constant);
    const std::uint64_t offset = end_of(beside_);
    beside_.push_back({constant.to_contiguous(), offset});
    write_external_tensor(std::move(message), name, constant, data_->location(), offset);
  }

  void write_node(pbf_writer message, const Names &names, const graph::Node &node) {
    const auto name_of = [&](ValueId v) { return v == kNoValue ? std::string() : names[static_cast<std::size_t>(v)]; };
    for (std::size_t i = 0; i + node.captured < node.inputs.size(); ++i)
      message.add_string(field::node::input, name_of(node.inputs[i]));
    for (const ValueId v : node.outputs) message.add_string(field::node::output, name_of(v));
    message.add_string(field::node::name, node.name);
    const ops::Custom *custom = ops::as_custom(*node.op);
    message.add_string(field::node::op_type, custom ? custom->type : node.op->name);
    if (const char *domain = domain_at(node, opset_); *domain) message.add_string(field::node::domain, domain);
    for (const auto &[name, value] : node.attrs)
      if (custom || !ops::is_own_attr(name))
        write_attribute(pbf_writer(message, field::node::attribute), *node.op, name, value);
    for (std::size_t i = 0; i < node.bodies.size(); ++i)
      write_body(pbf_writer(message, field::node::attribute), names, node, i);
  }

  /// What a body captured has the name that it has outside, what it makes a name of its own.
  void write_body(pbf_writer message, const Names &outer, const graph::Node &node, std::size_t i) {
    const graph::Graph &body = *node.bodies[i];
    const std::size_t own = body.inputs.size() - node.captured, first = node.inputs.size() - node.captured;
    Names names(body.values.size());
    for (std::size_t c = 0; c < node.captured; ++c)
      names[static_cast<std::size_t>(body.inputs[own + c])] = outer[static_cast<std::size_t>(node.inputs[first + c])];
    for (std::size_t v = 0; v < names.size(); ++v)
      if (names[v].empty()) names[v] = taken_.make(body.values[v].name);
    message.add_string(field::attribute::name, body_name(*node.op, i));
    write_graph(pbf_writer(message, field::attribute::g), body, names, node.captured);
    message.add_enum(field::attribute::type, static_cast<std::int32_t>(AttributeType::g));
  }

  static void write_value_info(pbf_writer message, const graph::Graph &g, const std::vector<ValueId> &batched,
                               ValueId v, const std::string &name, bool is_input) {
    const graph::Value &value = g.value(v);
    message.add_string(field::value_info::name, name);
    pbf_writer type(message, field::value_info::type);
    pbf_writer tensor(type, field::type::tensor_type);
    const qdtype stored = value.is_constant() ? value.constant.dtype() : QTN_FLOAT32;
    tensor.add_int32(field::tensor_type::elem_type, value.dtype.value_or(stored));
    if (!value.shape) return;
    // An empty message that is written piece by piece is left out: a scalar would have no shape, and a shape none of the
    // dimensions of which nothing is known.
    if (value.shape->empty()) return tensor.add_message(field::tensor_type::shape, std::string());
    pbf_writer shape(tensor, field::tensor_type::shape);
    for (std::size_t d = 0; d < value.shape->size(); ++d) {
      const std::int64_t size = (*value.shape)[d];
      const std::string symbol = size < 0 ? symbol_of(g, batched, value, d, is_input) : "";
      if (size < 0 && symbol.empty()) {
        shape.add_message(field::shape::dim, std::string());
        continue;
      }
      pbf_writer dim(shape, field::shape::dim);
      if (size >= 0)
        dim.add_int64(field::dimension::dim_value, size);
      else
        dim.add_string(field::dimension::dim_param, symbol);
    }
  }

  /// The inputs whose first dimension is open.
  static std::vector<ValueId> batched_inputs(const graph::Graph &g) {
    std::vector<ValueId> batched;
    for (const ValueId v : g.inputs)
      if (const auto &shape = g.value(v).shape; shape && !shape->empty() && (*shape)[0] < 0) batched.push_back(v);
    return batched;
  }

  /// What the file has called an open dimension. Equal names promise equal sizes, so that others get one each, and of
  /// outputs only the batch of the only input that has one; "" otherwise.
  static std::string symbol_of(const graph::Graph &g, const std::vector<ValueId> &batched, const graph::Value &value,
                               std::size_t d, bool is_input) {
    if (d < value.symbols.size() && !value.symbols[d].empty()) return value.symbols[d];
    if (d == 0 && batched.size() == 1) {
      const graph::Value &batch = g.value(batched[0]);
      return is_input || batch.symbols.empty() || batch.symbols[0].empty() ? "N" : batch.symbols[0];
    }
    if (!is_input) return "";
    return g.inputs.size() == 1 ? cat("dim_", d) : cat(value.name, "_dim_", d);
  }

  graph::Graph g_;
  const int opset_;
  DataFile *data_;
  std::vector<DataRegion> beside_;
  graph::UniqueNames taken_;
};

/// The rounding rule of the activations where it is not ONNX's own.
std::optional<Numerics> numerics_of(const graph::Graph &g) {
  std::optional<Numerics> numerics;
  for (const graph::Value &value : g.values) {
    if (!value.quantizer || value.is_constant()) continue;
    if (numerics && *numerics != value.quantizer->numerics())
      fail(QTN_EUNSUPPORTED, "value \"", value.name, "\" is quantized under ",
           numerics_name(value.quantizer->numerics()), " numerics, others under ", numerics_name(*numerics),
           "; a file holds one rule");
    numerics = value.quantizer->numerics();
  }
  return numerics == Numerics::onnx ? std::nullopt : numerics;
}

}  // namespace

namespace {

/// The graph in operators of the file, without quantizers.
graph::Graph written_out(const graph::Graph &g, const SaveOptions &options) {
  graph::Graph plain = g;
  write_out_flattened_softmax(plain, options.opset);
  write_out_formulas(plain, options.opset);
  export_dynamic(plain);
  widen_constants(plain, options.opset);
  if (options.format == Format::qoperator) graph::fuse_clamps(plain);
  graph::Graph expanded = export_qdq(plain, options.weight_pairs);
  if (options.format == Format::qoperator) export_qoperators(expanded);
  graph::separate_clamps(expanded);
  inline_own_functions(expanded);
  to_opset(expanded, options.opset);
  store_in_halves(expanded);
  for (graph::Node &node : expanded.nodes)
    for (auto &body : node.bodies) body = std::make_shared<const graph::Graph>(written_out(*body, options));
  return expanded;
}

bool has_value(const graph::Graph &g, bool (*is)(const graph::Value &)) {
  return std::ranges::any_of(g.values, is) || std::ranges::any_of(g.nodes, [is](const graph::Node &node) {
           return std::ranges::any_of(node.bodies, [is](const auto &body) { return has_value(*body, is); });
         });
}

/// Where a file that may have any opset begins to look for one. Activations of int8 begin before the usual one, unless
/// that would widen constants of fewer bits: ONNX Runtime 1.31 takes no file of the usual one or a later one in which an
/// operator moves what DequantizeLinear makes from int8: https://github.com/microsoft/onnxruntime/issues/25526
int first_choice(const graph::Graph &g) {
  const bool has_int8 = has_value(g, [](const graph::Value &v) {
    return !v.is_constant() && (v.quantizer ? v.quantizer->dtype() : v.dtype) == QTN_INT8;
  });
  const bool has_fewer_bits = has_value(g, [](const graph::Value &v) { return is_packed(v.constant.dtype()); });
  return has_int8 && !has_fewer_bits ? kUsualOpset - 1 : kUsualOpset;
}

WrittenModel write_model(const graph::Graph &g, const SaveOptions &options, DataFile *data) {
  const std::optional<Numerics> numerics = numerics_of(g);
  SaveOptions now = options;
  const auto written = [&](int opset) {
    now.opset = opset;
    return Writer(written_out(g, now), now, data).write(numerics);
  };
  if (options.opset != 0) {
    if (options.opset < kMinSaveOpset || options.opset > kMaxOpset)
      fail(QTN_EUNSUPPORTED, "models are written at opset ", kMinSaveOpset, " to ", kMaxOpset, ", not ", options.opset);
    return written(options.opset);
  }
  std::exception_ptr lacks;  // what the usual one does, if none has all
  for (int opset = first_choice(g); opset <= kMaxOpset; ++opset) try {
      return written(opset);
    } catch (const Error &e) {
      if (e.status() != QTN_EUNSUPPORTED) throw;
      if (opset <= kUsualOpset) lacks = std::current_exception();
    }
  std::rethrow_exception(lacks);
}

}  // namespace

std::string serialize(const graph::Graph &g, const SaveOptions &options) {
  if (options.external_data.value_or(false))
    fail(QTN_EUNSUPPORTED, "external data lies beside a file, and bytes in memory have none");
  return write_model(g, options, nullptr).bytes;
}

void save(const graph::Graph &g, const std::string &path, const SaveOptions &options) {
  DataFile data(path);
  const WrittenModel model = write_model(g, options, &data);
  if (!model.beside.empty()) data.write(model.beside);
  write_file(path, model.bytes);
  if (!model.beside.empty()) data.keep();
}

}  // namespace qtn::onnx
