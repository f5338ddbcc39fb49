// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.hpp"

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "base/json_writer.hpp"
#include "base/limits.hpp"
#include "graph/evaluate.hpp"
#include "graph/passes.hpp"
#include "runtime/plan_cache.hpp"
#include "runtime/run_pool.hpp"

namespace qtn::runtime {
namespace {

void write_step(JsonWriter &json, const Plan &plan, const Step &step, double ms) {
  std::size_t bytes = 0;
  for (const auto *list : {&step.reads, &step.writes})
    for (const SlotId s : *list) {
      const SlotForm &form = plan.slots[static_cast<std::size_t>(s)].form;
      bytes += storage_nbytes(form.dtype, element_count(form.shape));
    }
  json.begin_object();
  json.member("name", step.node);
  json.member("op", step.op);
  json.member("kernel", step.kernel);
  json.member("ms", ms);
  json.member("dtype", step.integer ? "int8" : "float32");
  json.member("macs", step.macs);
  json.member("bytes", bytes);
  json.end_object();
}

/// Equal for inputs of equal types.
std::uint64_t key_of(std::span<const Tensor *const> inputs) {
  std::uint64_t key = 14695981039346656037u;  // FNV-1a
  const auto mix = [&](std::int64_t value) { key = (key ^ static_cast<std::uint64_t>(value)) * 1099511628211u; };
  for (const Tensor *x : inputs) {
    mix(x->dtype());
    for (const std::int64_t dim : x->shape()) mix(dim);
  }
  return key;
}

using Clock = std::chrono::steady_clock;

}  // namespace

struct Session::Impl {
  Impl(graph::Graph g, const SessionOptions &session_options)
      : graph(optimized(std::move(g))), options(session_options), isa(qtn::isa()), plans(graph, isa) {}

  static graph::Graph optimized(graph::Graph g) {
    graph::optimize(g);
    return g;
  }

  graph::Graph graph;
  SessionOptions options;
  Isa isa;
  mutable PlanCache plans;
  mutable RunPool pool;

  /// A plan for these inputs, with memory for all threads of now.
  PreparedRunPtr prepared(std::span<const Tensor *const> inputs) const {
    const std::uint64_t key = key_of(inputs);
    PreparedRunPtr run = pool.take(key, [&](const PreparedRun &idle) { return idle.entry->fits(inputs); });
    if (!run) run = std::make_unique<PreparedRun>(PreparedRun{key, plans.plan_for(inputs), nullptr});
    // A new plan may have taken the place of an old one.
    if (run->entry->last_use == 0) pool.drop([](const PreparedRun &idle) { return idle.entry->dropped.load(); });
    run->entry->last_use.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    const auto lanes = static_cast<std::size_t>(current_threads());
    if (!run->context || run->context->lanes < lanes)
      run->context = make_context(run->entry->plan, lanes);
    else
      check_context(run->entry->plan, run->context->lanes);
    return run;
  }

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

  /// Runs the plan; before_steps(the plan) is called once inputs are bound, after_step(i) after each step.
  template <class BeforeSteps, class AfterStep>
  void run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs, BeforeSteps &&before_steps,
           AfterStep &&after_step) const {
    const ThreadScope threads(options.threads);
    PreparedRunPtr prepared_run = prepared(inputs);
    const Plan &plan = prepared_run->entry->plan;
    Context &c = *prepared_run->context;
    const Allowance memory(Limit::run_bytes, c.bytes());
    c.begin_run();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      c.tensors[static_cast<std::size_t>(plan.inputs[i])] = inputs[i]->to_contiguous();
    before_steps(prepared_run->entry);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      c.begin_step();
      plan.steps[i]->run(c);
      after_step(i);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = c.tensor(plan.outputs[i]).clone();
    for (const SlotId s : plan.inputs)
      c.tensors[static_cast<std::size_t>(s)] = Tensor();  // inputs are borrowed for the run only
    pool.give_back(std::move(prepared_run));
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
      impl_->plans.plan_declared(*types);
    }
}

Session::~Session() = default;

const graph::Graph &Session::graph() const { return impl_->graph; }

void Session::run(std::span<const Tensor *const> inputs, std::span<Tensor> outputs) const {
  impl_->check(inputs);
  if (impl_->options.engine == Engine::reference) {
    const ThreadScope threads(impl_->options.threads);
    std::vector<Tensor> copies;
    for (const Tensor *x : inputs) copies.push_back(*x);
    std::ranges::move(graph::evaluate(impl_->graph, copies), outputs.begin());
    return;
  }
  impl_->run(
      inputs, outputs, [](const PlanEntryPtr &) {}, [](std::size_t) {});
}

std::vector<Tensor> Session::run(std::span<const Tensor *const> inputs) const {
  std::vector<Tensor> outputs(impl_->graph.outputs.size());
  run(inputs, outputs);
  return outputs;
}

std::string Session::profile(std::span<const Tensor *const> inputs) const {
  impl_->check(inputs);
  const ThreadScope threads(impl_->options.threads);
  const bool native = impl_->options.engine == Engine::native;
  JsonWriter json;
  json.begin_object();
  json.member("engine", native ? "native" : "reference");
  json.member("isa", isa_name(impl_->isa));
  json.member("threads", current_threads());
  PlanEntryPtr entry;
  std::vector<double> ms;
  if (native) {
    Clock::time_point last;
    impl_->run(
        inputs, {},
        [&](const PlanEntryPtr &found) {
          entry = found;
          ms.resize(found->plan.steps.size());
          last = Clock::now();
        },
        [&](std::size_t i) {
          const Clock::time_point now = Clock::now();
          ms[i] = std::chrono::duration<double, std::milli>(now - last).count();
          last = now;
        });
    const auto lanes = static_cast<std::size_t>(current_threads());
    json.member("weights_bytes", impl_->plans.weights_bytes());
    json.member("plan_bytes", entry->plan.arena_bytes + lanes * entry->plan.lane_bytes);
  }
  json.key("nodes");
  json.begin_list();
  for (std::size_t i = 0; i < ms.size(); ++i) write_step(json, entry->plan, *entry->plan.steps[i], ms[i]);
  json.end_list();
  json.end_object();
  return json.take();
}

}  // namespace qtn::runtime
