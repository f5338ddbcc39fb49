// SPDX-License-Identifier: Apache-2.0
// Operators that a program registers: any names, callbacks that say and do what bytes describe, within graphs and alone.
// What goes wrong in a callback ends the call with a status and a line; what goes well is the same on both engines.
#include <algorithm>
#include <cstring>

#include "onnx_writer.hpp"
#include "oracle.hpp"

namespace fuzz {
namespace {

/// What the callbacks of an operator do. They follow from this and from the call, and remember nothing.
struct Behaviour {
  std::string domain, name;
  std::int64_t since = 1;
  std::size_t like = 0;                ///< the input that output 0 is like
  std::vector<std::int64_t> appended;  ///< dimensions behind those
  std::vector<std::uint8_t> others;    ///< for outputs after the first: which dtype
  bool wants_value = false, quantized = false, asks_library = false;
  int fails_in = -1;  ///< 0 infer, 1 run, 2 run_quantized
  qstatus status = QTN_OK;
  std::string message;
  unsigned destroyed = 0;
};

/// Calls of the functions that callbacks have, for what they must stand.
void look_around(qcall *call) {
  for (std::size_t i = 0; i < qcall_input_count(call) + 1; ++i) {
    const std::int64_t *shape = qcall_input_shape(call, i);
    const std::size_t rank = qcall_input_rank(call, i);
    require((qcall_input_dtype(call, i) == 0) == (shape == nullptr) || rank == 0, "an input that is half there");
    for (std::size_t axis = 0; shape != nullptr && axis < rank; ++axis)
      require(shape[axis] >= 0, "a negative dimension");
    if (const qtensor *t = qcall_input(call, i)) require(qtensor_rank(t) == rank, "an input of two ranks");
  }
  const qattrs *attrs = qcall_attrs(call);
  for (std::size_t i = 0; attrs != nullptr && i < qattrs_count(attrs); ++i)
    require(qattrs_key(attrs, i) != nullptr, "an attribute without a name");
}

qstatus fail_as_told(const Behaviour &b, qcall *call) {
  if (b.status == QTN_OK) return qcall_fail(call, QTN_ESHAPE, b.message.c_str());
  if (b.message.empty()) return b.status;
  return qcall_fail(call, b.status, b.message.c_str());
}

qstatus infer(qcall *call, void *ctx) {
  const auto &b = *static_cast<const Behaviour *>(ctx);
  look_around(call);
  if (b.fails_in == 0) return fail_as_told(b, call);
  if (b.wants_value && qcall_input(call, b.like) == nullptr) return QTN_ESTATE;
  constexpr qdtype kTypes[] = {QTN_FLOAT32, QTN_INT64, QTN_BOOL, QTN_UINT8, QTN_FLOAT16, QTN_FLOAT64, QTN_UINT4};
  const std::int64_t *from = qcall_input_shape(call, b.like);
  std::vector<std::int64_t> shape(from, from + qcall_input_rank(call, b.like));
  shape.insert(shape.end(), b.appended.begin(), b.appended.end());
  for (std::size_t i = 0; i < qcall_output_count(call); ++i) {
    const qdtype dtype = i == 0 || i > b.others.size() ? QTN_FLOAT32 : kTypes[b.others[i - 1] % std::size(kTypes)];
    if (const qstatus status = qcall_set_output_type(call, i, dtype, shape.data(), shape.size())) return status;
  }
  return QTN_OK;
}

/// Every byte of every output follows from the bytes of the inputs.
qstatus compute(const Behaviour &b, qcall *call) {
  look_around(call);
  std::uint32_t sum = 1;
  for (std::size_t i = 0; i < qcall_input_count(call); ++i) {
    const qtensor *t = qcall_input(call, i);
    if (t == nullptr) continue;
    const auto *bytes = static_cast<const std::uint8_t *>(qtensor_data(t));
    for (std::size_t k = 0; k < qtensor_nbytes(t); ++k) sum = sum * 31 + bytes[k];
  }
  for (std::size_t i = 0; i < qcall_output_count(call); ++i) {
    qtensor *output = qcall_output(call, i);
    if (output == nullptr) continue;
    void *data = nullptr;
    if (const qstatus status = qtensor_data_mut(&data, output)) return status;
    if (qtensor_dtype(output) == QTN_FLOAT32) {
      for (std::int64_t k = 0; k < qtensor_numel(output); ++k)
        static_cast<float *>(data)[k] = static_cast<float>((sum + static_cast<std::uint32_t>(k) * 7) % 64) / 16 - 2;
    } else {
      std::memset(data, static_cast<int>(sum % 2), qtensor_nbytes(output));
    }
  }
  const qtensor *x = qcall_input(call, b.like);
  if (b.asks_library && x != nullptr && qcall_output(call, 0) != nullptr && b.appended.empty()) {
    qtensor *y = nullptr;
    if (const qstatus status = qop_run(&y, 1, "Neg", &x, 1, nullptr)) return status;
    const Tensor owned(y);
    return qtensor_copy(qcall_output(call, 0), y);
  }
  return QTN_OK;
}

qstatus run_floats(qcall *call, void *ctx) {
  const auto &b = *static_cast<const Behaviour *>(ctx);
  return b.fails_in == 1 ? fail_as_told(b, call) : compute(b, call);
}

qstatus run_integers(qcall *call, void *ctx) {
  const auto &b = *static_cast<const Behaviour *>(ctx);
  if (b.fails_in == 2) return fail_as_told(b, call);
  return QTN_EUNSUPPORTED;
}

void destroy(void *ctx) { ++static_cast<Behaviour *>(ctx)->destroyed; }

std::string word(Bytes &bytes, bool dotted) {
  constexpr const char *kWords[] = {"Op",  "Conv", "com.example", "ai.onnx",      "",
                                    "a b", "x-y",  "_",           "Grid::Sample", "\xff"};
  if (bytes.one_in(8)) return bytes.one_of(kWords);
  std::string text = dotted ? "org." : "O";
  for (int i = bytes.in(1, 6); i > 0; --i) text += static_cast<char>('a' + bytes.byte() % 26);
  return text;
}

Behaviour some_behaviour(Bytes &bytes) {
  constexpr const char *kMessages[] = {"", "x has 3 channels, not 4", "two\nlines", "\x01\xff%s%n", "a \"quote\""};
  constexpr qstatus kStatuses[] = {QTN_OK,           QTN_EINVAL, QTN_ESHAPE,   QTN_EDTYPE,
                                   QTN_EUNSUPPORTED, QTN_ENOMEM, QTN_ECANCELED};
  Behaviour b;
  b.domain = word(bytes, true);
  b.name = word(bytes, false);
  b.since = bytes.one_in(8) ? awkward_int(bytes) : bytes.in(1, 2);
  b.like = bytes.one_in(16) ? bytes.in(0, 3) : 0;
  if (bytes.one_in(4))
    for (int i = bytes.in(1, 3); i > 0; --i)
      b.appended.push_back(bytes.one_in(16) ? awkward_int(bytes) : bytes.in(0, 3));
  for (int i = bytes.in(0, 2); i > 0; --i) b.others.push_back(bytes.byte());
  b.wants_value = bytes.one_in(8);
  b.quantized = bytes.one_in(2);
  b.asks_library = bytes.one_in(3);
  if (bytes.one_in(4)) b.fails_in = bytes.in(0, 2);
  b.status = bytes.one_of(kStatuses);
  b.message = bytes.one_of(kMessages);
  return b;
}

std::string full_name(const Behaviour &b) {
  return b.domain.empty() || b.domain == "ai.onnx" ? b.name : b.domain + "::" + b.name;
}

class Registered {
 public:
  explicit Registered(Behaviour of) : behaviour(std::move(of)) {
    is_there_ = good(qop_register(behaviour.domain.c_str(), behaviour.name.c_str(), behaviour.since, infer, run_floats,
                                  behaviour.quantized ? run_integers : nullptr, destroy, &behaviour));
  }
  ~Registered() { leave(); }
  Registered(const Registered &) = delete;
  Registered &operator=(const Registered &) = delete;

  bool is_there() const { return is_there_; }
  void leave() {
    if (!is_there_) return;
    must(qop_unregister(behaviour.domain.c_str(), behaviour.name.c_str(), behaviour.since), "unregistering");
    is_there_ = false;
  }

  Behaviour behaviour;

 private:
  bool is_there_;
};

/// x, y -> Relu of each -> the operator, once or twice -> Relu. Outputs are the last values.
Model network(const Behaviour &b, const std::vector<Tensor> &inputs, std::size_t outputs,
              const std::vector<Attribute> &attrs, Bytes &bytes) {
  OnnxGraph g;
  g.imports.push_back({b.domain, bytes.in(1, 2)});
  g.open_batch = bytes.one_in(3);
  Node node{b.name, b.domain, {}, {}, attrs};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string x = "x" + std::to_string(i), r = "r" + std::to_string(i);
    g.inputs.push_back({x, inputs[i].get()});
    if (qtensor_dtype(inputs[i].get()) == QTN_FLOAT32) g.nodes.push_back({"Relu", "", {x}, {r}, {}});
    node.inputs.push_back(bytes.one_in(8) ? "" : qtensor_dtype(inputs[i].get()) == QTN_FLOAT32 ? r : x);
  }
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back("y" + std::to_string(i));
  g.nodes.push_back(node);
  g.nodes.push_back({"Relu", "", {"y0"}, {"z"}, {}});
  if (bytes.one_in(3)) {
    Node again = node;
    again.inputs[0] = "z";
    for (std::string &name : again.outputs) name = "again_" + name;
    g.nodes.push_back(again);
    g.outputs.push_back({"again_y0", nullptr});
  }
  g.outputs.push_back({"z", nullptr});
  if (bytes.one_in(2)) g.outputs.push_back({node.outputs.back(), nullptr});
  const std::string file = onnx_file(g);
  return make<Model>(qmodel_load_bytes, file.data(), file.size());
}

void test(const std::uint8_t *data, std::size_t size) {
  Bytes bytes(data, size);
  Registered op(some_behaviour(bytes)), other(some_behaviour(bytes));
  const Behaviour &b = op.behaviour;
  if (!op.is_there()) return;
  require(!good(qop_register(b.domain.c_str(), b.name.c_str(), b.since, infer, run_floats, nullptr, nullptr, nullptr)),
          "an operator is registered twice");

  std::vector<Tensor> inputs;
  std::vector<const qtensor *> items;
  for (int i = bytes.in(1, 3); i > 0; --i) {
    std::vector<std::int64_t> shape;
    for (int rank = bytes.in(0, 4); rank > 0; --rank) shape.push_back(bytes.one_in(12) ? 0 : bytes.in(1, 5));
    const qdtype dtype = bytes.one_in(6) ? QTN_INT64 : QTN_FLOAT32;
    inputs.push_back(filled(dtype, shape, bytes.byte()));
    items.push_back(inputs.back().get());
  }
  std::vector<Attribute> attrs;
  for (int i = bytes.in(0, 3); i > 0; --i) {
    Attribute attr;
    attr.name = bytes.one_in(8) ? "axis" : "a" + std::to_string(i);
    attr.kind = "ifsIF"[bytes.byte() % 5];
    attr.i = awkward_int(bytes);
    attr.f = awkward_float(bytes);
    attr.s = bytes.one_in(2) ? "text" : std::string("\0\xff", 2);
    attr.ints = {awkward_int(bytes), 1};
    attr.floats = {awkward_float(bytes)};
    attrs.push_back(std::move(attr));
  }
  const std::size_t output_count = bytes.one_in(4) ? bytes.in(2, 4) : 1;

  const std::string full = full_name(b);
  std::vector<qtensor *> outputs(output_count);
  const Attrs given = attrs_of(attrs);
  const bool ran = good(qop_run(outputs.data(), outputs.size(), full.c_str(), items.data(), items.size(), given.get()));
  for (qtensor *output : outputs) {
    require(ran == (output != nullptr), full + ": outputs and a status that do not go together");
    qtensor_free(output);
  }

  Model model = network(b, inputs, output_count, attrs, bytes);
  if (!model) return;
  Dice dice(seed_of(data, size));
  // The model holds one of two versions of an operator, that of its opset.
  if (bytes.one_in(4) && full_name(other.behaviour) != full) {
    op.leave();  // what holds it still runs it
    require(op.behaviour.destroyed == 0, "an operator ends while a model holds it");
    for (const char *engine : {"native", "reference"}) run(model.get(), engine, inputs);
    model.reset();
    require(op.behaviour.destroyed == 1, "an operator that nothing holds does not end, or ends twice");
    return;
  }
  check_model(model.get(), dice);
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{256} << 20, fuzz::test)
