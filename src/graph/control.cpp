// SPDX-License-Identifier: Apache-2.0
#include "graph/control.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "graph/budget.hpp"

namespace qtn::graph {
namespace {

/// Iterations of the outermost loop that this thread is in, and of all within it.
class Iterations {
 public:
  Iterations() {
    if (depth_++ == 0) count_ = 0;
  }
  ~Iterations() { --depth_; }
  Iterations(const Iterations &) = delete;
  Iterations &operator=(const Iterations &) = delete;

  static void add() { check_limit(Limit::loop_iterations, ++count_); }

 private:
  static thread_local std::size_t depth_, count_;
};
thread_local std::size_t Iterations::depth_ = 0, Iterations::count_ = 0;

bool is_true(const Tensor &t, const char *what) {
  if (t.dtype() != QTN_BOOL || t.count() != 1)
    fail(QTN_EINVAL, what, " must be one bool, not ", dtype_name(t.dtype()), " ", to_string(t.shape()));
  return t.to_contiguous().as<const bool>()[0];
}

std::int64_t trip_count(const Tensor &t) {
  if (t.dtype() != QTN_INT64 || t.count() != 1)
    fail(QTN_EINVAL, "M must be one int64, not ", dtype_name(t.dtype()), " ", to_string(t.shape()));
  return t.to_contiguous().as<const std::int64_t>()[0];
}

Tensor plain(const Tensor &t) { return t.quantized() ? dequantize(t) : t.to_contiguous(); }

/// Runs a body that has the memory which these leave.
std::vector<Tensor> run_body(const RunBody &run, const Graph &body, std::span<const Tensor> inputs) {
  std::size_t held = 0;
  for (const Tensor &x : inputs) held += x.nbytes();
  const RunBound rest(RunBound::limit() - std::min(RunBound::limit(), held));
  return run(body, inputs);
}

/// What an iteration after the other gives, of one output.
class Stack {
 public:
  /// `of`: the body's output.
  explicit Stack(const Value &of) : of_(of) {}

  void push(const Tensor &t) {
    if (!parts_.empty() && (parts_[0].shape() != t.shape() || parts_[0].dtype() != t.dtype()))
      fail(QTN_ESHAPE, "iteration ", parts_.size(), " makes ", to_string(t.shape()), " of \"", of_.name,
           "\", the first one ", to_string(parts_[0].shape()));
    parts_.push_back(t.to_contiguous());
    bytes_ += t.nbytes();
    check_run(bytes_, RunBound::limit());
  }

  /// One after the other along a new first axis.
  Tensor stacked(bool backwards) const {
    const std::size_t count = parts_.size();
    Shape shape{static_cast<std::int64_t>(count)};
    if (parts_.empty()) {  // of which the body says what it can
      if (of_.shape)
        for (const std::int64_t dim : *of_.shape) shape.push_back(dim < 0 ? 0 : dim);
      return Tensor(of_.dtype.value_or(QTN_FLOAT32), shape);
    }
    for (const std::int64_t dim : parts_[0].shape()) shape.push_back(dim);
    const Tensor all(parts_[0].dtype(), shape);
    for (std::size_t i = 0; i < count; ++i) {
      const Tensor place = all.select(0, static_cast<std::int64_t>(backwards ? count - 1 - i : i));
      if (dtype_bits(all.dtype()) < 8)
        fail(QTN_EUNSUPPORTED, dtype_name(all.dtype()), " of \"", of_.name, "\" cannot be stacked");
      if (place.count() > 0) std::memcpy(place.data(), parts_[i].data(), parts_[i].nbytes());
    }
    return all;
  }

 private:
  const Value &of_;
  std::vector<Tensor> parts_;
  std::size_t bytes_ = 0;
};

std::vector<Tensor> run_if(const Node &node, std::span<const Tensor> operands, const RunBody &run) {
  return run_body(run, *node.bodies.at(branch_of(operands[0])), operands.subspan(1));
}

std::vector<Tensor> run_loop(const Node &node, std::span<const Tensor> operands, const RunBody &run) {
  const Graph &body = *node.bodies.at(0);
  const std::size_t states = operands.size() - 2 - node.captured;
  const std::optional<std::int64_t> most =
      operands[0].has_data() ? std::optional(trip_count(operands[0])) : std::nullopt;
  bool go_on = !operands[1].has_data() || is_true(operands[1], "condition");
  std::vector<Tensor> inputs(operands.begin(), operands.end());
  std::vector<Stack> stacks;
  for (std::size_t o = 1 + states; o < body.outputs.size(); ++o) stacks.emplace_back(body.value(body.outputs[o]));
  const Iterations counted;
  for (std::int64_t i = 0; go_on && (!most || i < *most); ++i) {
    Iterations::add();
    inputs[0] = Tensor::from<std::int64_t>(QTN_INT64, Shape{}, std::span(&i, 1));
    inputs[1] = Tensor::from<bool>(QTN_BOOL, Shape{}, std::span(&go_on, 1));
    std::vector<Tensor> made = run_body(run, body, inputs);
    go_on = is_true(made[0], "condition");
    for (std::size_t s = 0; s < states; ++s) inputs[2 + s] = made[1 + s];
    for (std::size_t s = 0; s < stacks.size(); ++s) stacks[s].push(made[1 + states + s]);
  }
  const auto first = inputs.begin() + 2;
  std::vector<Tensor> outputs(first, first + static_cast<std::ptrdiff_t>(states));
  for (const Stack &stack : stacks) outputs.push_back(stack.stacked(false));
  return outputs;
}

/// A list of one number for each of `count`, or none.
std::int64_t item(const Attrs &attrs, const char *key, std::size_t i, std::size_t count) {
  const std::vector<std::int64_t> list = attrs.get_ints(key);
  if (list.empty()) return 0;
  if (list.size() != count) fail(QTN_EINVAL, key, " holds ", list.size(), " values, not ", count);
  return list[i];
}

/// The first axis becomes the one of that number.
Tensor move_first(const Tensor &t, std::size_t axis) {
  std::vector<std::int32_t> axes;
  for (std::size_t i = 1; i < t.rank(); ++i) axes.push_back(static_cast<std::int32_t>(i));
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  return t.permute(axes).to_contiguous();
}

std::vector<Tensor> run_scan(const Node &node, std::span<const Tensor> operands, const RunBody &run) {
  const Graph &body = *node.bodies.at(0);
  const std::size_t own = operands.size() - node.captured;
  const std::int64_t said = node.attrs.get_int("num_scan_inputs", 0);
  if (said < 1 || static_cast<std::size_t>(said) > own)
    fail(QTN_EINVAL, "num_scan_inputs is ", said, ", of ", own, " inputs");
  const auto scanned = static_cast<std::size_t>(said);
  const std::size_t states = own - scanned;
  std::vector<std::int64_t> axes;
  std::vector<bool> backwards;
  std::int64_t length = -1;
  for (std::size_t s = 0; s < scanned; ++s) {
    const Tensor &x = operands[states + s];
    const std::int64_t wanted = item(node.attrs, "scan_input_axes", s, scanned);
    axes.push_back(static_cast<std::int64_t>(normalize_axis(wanted, x.rank(), "Scan")));
    backwards.push_back(item(node.attrs, "scan_input_directions", s, scanned) != 0);
    const std::int64_t steps = x.dim(static_cast<std::size_t>(axes[s]));
    if (length >= 0 && steps != length) fail(QTN_ESHAPE, "scanned inputs have ", length, " and ", steps, " elements");
    length = steps;
  }
  if (body.outputs.size() < states) fail(QTN_EINVAL, "the body has fewer outputs than states");
  std::vector<Stack> stacks;
  for (std::size_t o = states; o < body.outputs.size(); ++o) stacks.emplace_back(body.value(body.outputs[o]));
  std::vector<Tensor> inputs(operands.begin(), operands.end());
  const Iterations counted;
  for (std::int64_t i = 0; i < length; ++i) {
    Iterations::add();
    for (std::size_t s = 0; s < scanned; ++s)
      inputs[states + s] = operands[states + s].select(axes[s], backwards[s] ? length - 1 - i : i).to_contiguous();
    std::vector<Tensor> made = run_body(run, body, inputs);
    for (std::size_t s = 0; s < states; ++s) inputs[s] = made[s];
    for (std::size_t s = 0; s < stacks.size(); ++s) stacks[s].push(made[states + s]);
  }
  std::vector<Tensor> outputs(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(states));
  for (std::size_t s = 0; s < stacks.size(); ++s) {
    const Tensor all = stacks[s].stacked(item(node.attrs, "scan_output_directions", s, stacks.size()) != 0);
    const std::int64_t axis = item(node.attrs, "scan_output_axes", s, stacks.size());
    outputs.push_back(move_first(all, normalize_axis(axis, all.rank(), "Scan")));
  }
  return outputs;
}

}  // namespace

std::size_t branch_of(const Tensor &condition) { return is_true(condition, "condition") ? 0 : 1; }

std::vector<Tensor> run_control(const Node &node, std::span<const Tensor *const> operands, const RunBody &run) {
  std::vector<Tensor> plains;
  for (const Tensor *t : operands) plains.push_back(t ? plain(*t) : Tensor());
  if (node.op == &ops::kIf) return run_if(node, plains, run);
  return node.op == &ops::kLoop ? run_loop(node, plains, run) : run_scan(node, plains, run);
}

}  // namespace qtn::graph
