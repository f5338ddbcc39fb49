// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/error.hpp"
#include "base/json_writer.hpp"
#include "graph/evaluate.hpp"
#include "graph/passes.hpp"
#include "runtime/plan.hpp"

namespace qtn::runtime {
namespace {

// Plans for this many sets of input shapes are kept; the least recently used goes first.
constexpr std::size_t kPlanLimit = 8;

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

/// A plan with the contexts that wait for its next run.
struct PlanEntry {
  std::vector<ops::TensorType> inputs;
  std::vector<Tensor> values;  ///< of inputs that shapes follow from; empty where they follow from shapes alone
  Plan plan;
  std::mutex mutex;
  std::vector<std::unique_ptr<Context>> idle;

  std::unique_ptr<Context> take(std::size_t lanes) {
    {
      const std::lock_guard lock(mutex);
      while (!idle.empty()) {
        std::unique_ptr<Context> c = std::move(idle.back());
        idle.pop_back();
        if (c->lanes >= lanes) return c;
      }
    }
    return make_context(plan, lanes);
  }
  void give_back(std::unique_ptr<Context> c) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(c));
  }
};

bool fits(const PlanEntry &entry, std::span<const Tensor *const> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ops::TensorType &type = entry.inputs[i];
    if (type.dtype != inputs[i]->dtype() || !(type.shape == inputs[i]->shape())) return false;
    if (i < entry.values.size() && entry.values[i].has_data() && !equal(entry.values[i], *inputs[i])) return false;
  }
  return true;
}

/// Copies of the inputs that may say shapes; tensors without data for the others.
std::vector<Tensor> saying_values(std::span<const ops::TensorType> types, std::span<const Tensor *const> inputs) {
  std::vector<Tensor> values(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (graph::may_say_shapes(types[i])) values[i] = inputs[i]->clone();
  return values;
}

using Clock = std::chrono::steady_clock;

}  // namespace

struct Session::Impl {
  graph::Graph graph;
  SessionOptions options;
  Isa isa;
  mutable Weights weights;
  mutable std::mutex mutex;
  mutable std::vector<std::shared_ptr<PlanEntry>> plans;  // most recently used last

  std::shared_ptr<PlanEntry> plan_for(std::span<const Tensor *const> inputs) const {
    {
      const std::lock_guard lock(mutex);
      for (std::size_t i = plans.size(); i-- > 0;) {
        if (!fits(*plans[i], inputs)) continue;
        std::rotate(plans.begin() + static_cast<std::ptrdiff_t>(i), plans.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    plans.end());
        return plans.back();
      }
    }
    std::vector<ops::TensorType> types;
    for (const Tensor *x : inputs) types.push_back({x->dtype(), x->shape()});
    try {
      return add_plan(types, {});
    } catch (const NotKnown &) {
      return add_plan(types, saying_values(types, inputs));
    }
  }

  std::shared_ptr<PlanEntry> add_plan(std::vector<ops::TensorType> types, std::vector<Tensor> values) const {
    auto entry = std::make_shared<PlanEntry>();
    entry->plan = lower(graph, types, values, isa, weights);
    entry->inputs = std::move(types);
    entry->values = std::move(values);
    const std::lock_guard lock(mutex);
    plans.push_back(entry);
    if (plans.size() > kPlanLimit) plans.erase(plans.begin());
    return entry;
  }

  void plan_declared(std::vector<ops::TensorType> types) const {
    const bool may_follow = std::any_of(types.begin(), types.end(), graph::may_say_shapes);
    try {
      add_plan(std::move(types), {});
    } catch (const NotKnown &) {
      if (!may_follow) throw;
    }
  }

  void check(std::span<const Tensor *const> inputs) const {
    if (inputs.size() != graph.inputs.size())
      fail(QTN_EINVAL, "session: model takes ", graph.inputs.size(), " inputs, not ", inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i]->quantized())
        fail(QTN_EDTYPE, "session: input \"", graph.value(graph.inputs[i]).name,
             "\" is quantized; the model quantizes it itself");
      graph::check_input(graph, i, inputs[i]->dtype(), inputs[i]->shape(), "session");
    }
  }

  /// Runs the plan; before_steps() is called once inputs are bound, after_step(i) after each step.
  template <class BeforeSteps, class AfterStep>
  std::vector<Tensor> run(std::span<const Tensor *const> inputs, BeforeSteps &&before_steps,
                          AfterStep &&after_step) const {
    const ThreadScope threads(options.threads);
    const std::shared_ptr<PlanEntry> entry = plan_for(inputs);
    const Plan &plan = entry->plan;
    std::unique_ptr<Context> c = entry->take(static_cast<std::size_t>(current_threads()));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      c->tensors[static_cast<std::size_t>(plan.inputs[i])] = inputs[i]->to_contiguous();
    before_steps();
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      plan.steps[i]->run(*c);
      after_step(i);
    }
    std::vector<Tensor> outputs;
    for (const SlotId s : plan.outputs) outputs.push_back(c->tensor(s).clone());
    for (const SlotId s : plan.inputs)
      c->tensors[static_cast<std::size_t>(s)] = Tensor();  // inputs are borrowed for the run only
    entry->give_back(std::move(c));
    return outputs;
  }
};

Session::Session(const graph::Graph &g, const SessionOptions &options) : impl_(std::make_unique<Impl>()) {
  if (options.threads < 0 || options.threads > 1024)
    fail(QTN_EINVAL, "session: threads ", options.threads, " is outside 0..1024");
  impl_->graph = g;
  graph::optimize(impl_->graph);
  impl_->options = options;
  impl_->isa = isa();
  // Shapes that the file declares are planned now, so that what does not fit is found and packed here, not at the first
  // run.
  if (options.engine == Engine::native)
    if (auto types = graph::declared_input_types(impl_->graph, 1)) impl_->plan_declared(std::move(*types));
}

Session::~Session() = default;

const graph::Graph &Session::graph() const { return impl_->graph; }

std::vector<Tensor> Session::run(std::span<const Tensor *const> inputs) const {
  impl_->check(inputs);
  if (impl_->options.engine == Engine::reference) {
    const ThreadScope threads(impl_->options.threads);
    std::vector<Tensor> copies;
    for (const Tensor *x : inputs) copies.push_back(*x);
    return graph::evaluate(impl_->graph, copies);
  }
  return impl_->run(
      inputs, [] {}, [](std::size_t) {});
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
  json.key("nodes");
  json.begin_list();
  if (native) {
    const std::shared_ptr<PlanEntry> entry = impl_->plan_for(inputs);
    std::vector<double> ms(entry->plan.steps.size());
    Clock::time_point last;
    impl_->run(
        inputs, [&] { last = Clock::now(); },
        [&](std::size_t i) {
          const Clock::time_point now = Clock::now();
          ms[i] = std::chrono::duration<double, std::milli>(now - last).count();
          last = now;
        });
    for (std::size_t i = 0; i < ms.size(); ++i) write_step(json, entry->plan, *entry->plan.steps[i], ms[i]);
  }
  json.end_list();
  json.end_object();
  return json.take();
}

}  // namespace qtn::runtime
