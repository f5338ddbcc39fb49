// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/json_writer.hpp"
#include "base/limits.hpp"
#include "base/stack_memory.hpp"
#include "graph/evaluate.hpp"
#include "graph/pipelines.hpp"
#include "runtime/runner.hpp"
#include "runtime/state.hpp"

namespace qtn::runtime {
namespace {

void write_time(JsonWriter &json, const StepTime &time) {
  json.begin_object();
  json.member("name", time.node);
  json.member("op", time.op);
  json.member("kernel", time.kernel);
  json.member("ms", time.ms);
  json.member("dtype", time.integer ? "int8" : "float32");
  json.member("macs", time.macs);
  json.member("bytes", time.bytes);
  json.end_object();
}

graph::Graph optimized(graph::Graph g) {
  graph::run_passes(g, graph::Pipeline::execution);
  return g;
}

}  // namespace

struct Session::Impl {
  Impl(const graph::Graph &g, const SessionOptions &session_options)
      : options(session_options), isa(qtn::isa()), runner(optimized(g), {}), graph(runner.graph()), state(graph) {}

  SessionOptions options;
  Isa isa;
  Runner runner;
  const graph::Graph &graph;
  State state;

  void check(std::span<const Tensor *const> inputs) const {
    if (inputs.size() != graph.inputs.size())
      fail(QTN_EINVAL, "session: model takes ", graph.inputs.size(), " inputs, not ", inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const graph::Value &value = graph.value(graph.inputs[i]);
      if (options.integers && value.quantizer) {
        if (!inputs[i]->quantized() || !same_grid(*inputs[i]->quantizer(), *value.quantizer))
          fail(QTN_EDTYPE, "session: input \"", value.name, "\" is not on its grid");
        graph::check_input(graph, i, QTN_FLOAT32, inputs[i]->shape(), "session");
        continue;
      }
      if (inputs[i]->quantized())
        fail(QTN_EDTYPE, "session: input \"", value.name, "\" is quantized; the model quantizes it itself");
      graph::check_input(graph, i, inputs[i]->dtype(), inputs[i]->shape(), "session");
    }
  }

  /// `places`: memory for outputs, as for Runner::run.
  void run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, std::span<const Tensor> places) const {
    check(inputs);
    const ThreadScope threads(options.threads);
    if (options.engine == Engine::native) return runner.run(inputs, outputs, {}, places);
    std::vector<Tensor> copies;
    for (const Tensor *x : inputs) copies.push_back(*x);
    std::ranges::move(graph::evaluate(graph, copies), outputs.begin());
  }
};

Session::Session(const graph::Graph &g, const SessionOptions &options) : impl_(nullptr) {
  if (options.threads < 0 || options.threads > 1024)
    fail(QTN_EINVAL, "session: threads ", options.threads, " is outside 0..1024");
  const Allowance memory(Limit::plan_bytes);
  impl_ = std::make_unique<Impl>(g, options);
  // Shapes that the file declares are planned now, so that what does not fit is found and packed here, not at the first
  // run.
  if (options.engine == Engine::native)
    if (auto types = graph::declared_input_types(impl_->graph, 1)) {
      for (std::size_t i = 0; i < types->size() && options.integers; ++i)
        if (const QuantizerPtr &grid = impl_->graph.value(impl_->graph.inputs[i]).quantizer)
          (*types)[i].dtype = grid->dtype();
      impl_->runner.plan_declared(*types);
    }
}

Session::~Session() = default;

const graph::Graph &Session::graph() const { return impl_->graph; }

void Session::run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs) const {
  impl_->run(inputs, outputs, {});
}

void Session::run(std::span<const Tensor *> inputs, std::span<Tensor> outputs, const Deliver &deliver) const {
  if (impl_->state.empty()) {
    run(inputs, outputs);
    return deliver(outputs);
  }
  StackMemory memory;
  auto places = memory.list<Tensor>(outputs.size());
  auto made = memory.list<Tensor>(outputs.size());
  State::Turn turn(impl_->state);
  {
    const Allowance limited(Limit::run_bytes);
    turn.fill(inputs);
    turn.offer(inputs, places);
  }
  impl_->run(inputs, outputs, places);
  turn.check(outputs);
  std::ranges::copy(outputs, made.begin());
  deliver(outputs);
  turn.commit(made);
}

void Session::bind(std::size_t output, std::size_t input) {
  const State::Turn alone(impl_->state);
  impl_->state.bind(output, input);
}

void Session::reset() {
  const State::Turn alone(impl_->state);
  impl_->state.reset();
}

bool Session::holds_state(std::size_t input) const { return impl_->state.holds(input); }

std::vector<Tensor> Session::run(std::span<const Tensor *const> inputs) const {
  std::vector<Tensor> outputs(impl_->graph.outputs.size());
  run(inputs, outputs);
  return outputs;
}

std::string Session::profile(std::span<const Tensor *const> given) const {
  std::vector<const Tensor *> inputs(given.begin(), given.end());
  std::optional<State::Turn> turn;
  if (!impl_->state.empty()) turn.emplace(impl_->state).fill(inputs);
  impl_->check(inputs);
  const ThreadScope threads(impl_->options.threads);
  const bool native = impl_->options.engine == Engine::native;
  JsonWriter json;
  json.begin_object();
  json.member("engine", native ? "native" : "reference");
  json.member("isa", isa_name(impl_->isa));
  json.member("threads", current_threads());
  std::vector<StepTime> times;
  if (native) {
    std::size_t plan_bytes = 0;
    impl_->runner.run(inputs, {}, {nullptr, &times, &plan_bytes});
    json.member("weights_bytes", impl_->runner.weights_bytes());
    json.member("plan_bytes", plan_bytes);
  }
  json.key("nodes");
  json.begin_list();
  for (const StepTime &time : times) write_time(json, time);
  json.end_list();
  json.end_object();
  return json.take();
}

}  // namespace qtn::runtime
