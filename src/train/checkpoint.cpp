// SPDX-License-Identifier: Apache-2.0
// A checkpoint is a safetensors file of all that later steps depend on:
//
//   trainer              int64 [4]: version of this form, updates, batches, seed
//   parameter/NAME       float32
//   statistics/NODE/mean, statistics/NODE/variance
//   grid/NAME            float32 [5]: 1 where it is known, smallest and largest value, scale, zero point
//   range/NODE           float32 [2, grids]: moving averages of the smallest and the largest weights
//   optimizer/NAME       as the optimizer names them
#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "base/error.hpp"
#include "io/safetensors.hpp"
#include "train/trainer.hpp"

namespace qtn::train {
namespace {

constexpr std::int64_t kVersion = 1;

struct Named {
  std::string name;
  Tensor tensor;
};

Tensor tensor_of(const ActivationGrid::Range &r) {
  const float values[] = {r.seen ? 1.0f : 0.0f, r.min, r.max, r.scale, static_cast<float>(r.zero)};
  return Tensor::from<float>(QTN_FLOAT32, Shape{5}, std::span(values));
}

/// Throws QTN_EFORMAT where the numbers are those of no grid. `who` begins the message.
ActivationGrid::Range range_of(const Tensor &t, const std::string &who) {
  const float *v = t.as<const float>();
  for (std::size_t i = 0; i < 5; ++i)
    if (!std::isfinite(v[i])) fail(QTN_EFORMAT, who, ": holds a number that is not finite");
  constexpr float kFurthest = 1 << 16;  // of zero points of 8 and 16 bits
  if (!(v[1] <= v[2]) || !(v[3] > 0) || std::fabs(v[4]) > kFurthest || v[4] != std::nearbyint(v[4]))
    fail(QTN_EFORMAT, who, ": is no grid: from ", v[1], " to ", v[2], ", scale ", v[3], ", zero point ", v[4]);
  return {v[0] != 0, v[1], v[2], v[3], static_cast<std::int32_t>(v[4])};
}

/// Everything but grids, which are no tensors: views of what training writes to.
std::vector<Named> state_of(const Network &network, const Optimizer &optimizer) {
  std::vector<Named> state;
  for (const Parameter &p : network.parameters) state.push_back({"parameter/" + p.name, p.value});
  for (const Statistics &s : network.statistics) {
    const std::string name = "statistics/" + network.graph.nodes[s.uses.begin()->first].name;
    state.push_back({name + "/mean", s.mean});
    state.push_back({name + "/variance", s.variance});
  }
  if (network.quantization)
    for (const auto &[node, grid] : network.quantization->weights)
      if (grid.range) state.push_back({"range/" + network.graph.nodes[node].name, grid.range->running});
  optimizer.for_each_state([&](const std::string &name, const Tensor &t) {
    state.push_back({"optimizer/" + name, t});
  });
  return state;
}

std::string grid_name(const ActivationGrid &grid) { return "grid/" + grid.name(); }

/// A file, and what it has by name.
struct Checkpoint {
  explicit Checkpoint(const io::TensorFile &read) : file(read) {
    for (const io::StoredTensor &stored : file.tensors()) tensors.emplace(stored.name, &stored);
  }
  const io::TensorFile &file;
  std::unordered_map<std::string_view, const io::StoredTensor *> tensors;
};

Tensor read(const Checkpoint &from, const std::string &name, qdtype dtype, const Shape &shape) {
  const io::TensorFile &file = from.file;
  if (const auto found = from.tensors.find(name); found != from.tensors.end()) {
    const io::StoredTensor &stored = *found->second;
    if (stored.dtype != dtype || !(stored.shape == shape))
      fail(QTN_EINVAL, "trainer: ", file.path(), ": \"", name, "\" is ", dtype_name(stored.dtype), " ",
           to_string(stored.shape), ", here ", dtype_name(dtype), " ", to_string(shape));
    return file.read(stored).to_contiguous();
  }
  fail(QTN_EINVAL, "trainer: ", file.path(), ": has no \"", name, "\": another model or optimizer");
}

}  // namespace

void Trainer::save(const std::string &path) const {
  write([&](std::span<const io::NamedTensor> tensors) { io::save_safetensors(path, tensors); });
}

std::string Trainer::to_bytes() const {
  std::string bytes;
  write([&](std::span<const io::NamedTensor> tensors) { bytes = io::to_safetensors(tensors); });
  return bytes;
}

void Trainer::load(const std::string &path) { restore(io::open_safetensors(path)); }

void Trainer::load(std::span<const std::byte> bytes) { restore(io::read_safetensors(InputFile("data", bytes))); }

void Trainer::write(const std::function<void(std::span<const io::NamedTensor>)> &to) const {
  if (batches_ > 0) fail(QTN_ESTATE, "trainer: save between backward and update");
  std::vector<Named> state = state_of(*network_, *optimizer_);
  const Switches &switches = network_->switches;
  const std::int64_t numbers[] = {kVersion, static_cast<std::int64_t>(switches.step),
                                  static_cast<std::int64_t>(switches.batch), static_cast<std::int64_t>(switches.seed)};
  state.push_back({"trainer", Tensor::from_ints(numbers)});
  if (network_->quantization)
    for (const ActivationGrid &grid : network_->quantization->activations)
      state.push_back({grid_name(grid), tensor_of(grid.range())});
  std::vector<io::NamedTensor> tensors;
  for (const Named &named : state) tensors.push_back({named.name, &named.tensor});
  to(tensors);
}

void Trainer::restore(const io::TensorFile &file) {
  const Checkpoint checkpoint(file);
  const std::string &path = file.path();
  if (!checkpoint.tensors.contains("trainer")) fail(QTN_EFORMAT, "trainer: ", path, ": is no checkpoint");
  const Tensor numbers = read(checkpoint, "trainer", QTN_INT64, Shape{4});
  const std::int64_t version = numbers.as<const std::int64_t>()[0];
  if (version != kVersion)
    fail(QTN_EUNSUPPORTED, "trainer: ", path, ": is a checkpoint of version ", version, ", not ", kVersion);
  const std::vector<Named> state = state_of(*network_, *optimizer_);
  std::vector<Tensor> values;
  for (const Named &named : state)
    values.push_back(read(checkpoint, named.name, named.tensor.dtype(), named.tensor.shape()));
  std::vector<ActivationGrid::Range> ranges;
  std::size_t grids = 0;
  if (network_->quantization) {
    for (const ActivationGrid &grid : network_->quantization->activations)
      ranges.push_back(range_of(read(checkpoint, grid_name(grid), QTN_FLOAT32, Shape{5}),
                                cat("trainer: ", path, ": \"", grid_name(grid), "\"")));
    grids = ranges.size();
  }
  if (file.tensors().size() != state.size() + grids + 1)
    fail(QTN_EINVAL, "trainer: ", path, ": has ", file.tensors().size(), " tensors, here are ",
         state.size() + grids + 1, ": another model or optimizer");

  for (std::size_t i = 0; i < state.size(); ++i) copy_elements(state[i].tensor, values[i]);
  for (std::size_t i = 0; i < grids; ++i) network_->quantization->activations[i].restore(ranges[i]);
  network_->revert();
  for (Statistics &s : network_->statistics) s.batches = 0;
  const auto *n = numbers.as<const std::uint64_t>();
  network_->switches.step = n[1];
  network_->switches.batch = n[2];
  network_->switches.seed = n[3];
  batches_ = 0;
}

}  // namespace qtn::train
