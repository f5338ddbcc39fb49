// SPDX-License-Identifier: Apache-2.0
#include "quant/fingerprint.hpp"

#include <cstring>

namespace qtn::quant {
namespace {

class Hash {
 public:
  void number(std::uint64_t v) {
    value_ = (value_ ^ v) * 0x9e3779b97f4a7c15u;
    value_ ^= value_ >> 32;
  }
  void real(double v) { number(std::bit_cast<std::uint64_t>(v)); }
  void bytes(const void *data, std::size_t size) {
    number(size);
    const auto *from = static_cast<const char *>(data);
    for (; size >= 8; from += 8, size -= 8) {
      std::uint64_t word;
      std::memcpy(&word, from, 8);
      number(word);
    }
    if (size == 0) return;
    std::uint64_t last = 0;
    std::memcpy(&last, from, size);
    number(last);
  }
  void text(std::string_view s) { bytes(s.data(), s.size()); }
  void tensor(const Tensor &t) {
    number(t.dtype());
    number(t.rank());
    for (const std::int64_t dim : t.shape()) number(static_cast<std::uint64_t>(dim));
    const Tensor flat = t.to_contiguous();
    bytes(flat.data(), flat.nbytes());
  }
  void attrs(const Attrs &attrs) {
    number(attrs.size());
    for (const auto &[key, value] : attrs) {
      text(key);
      number(value.index());
      std::visit([this](const auto &v) { attr(v); }, value);
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  void attr(std::int64_t v) { number(static_cast<std::uint64_t>(v)); }
  void attr(double v) { real(v); }
  void attr(const std::string &v) { text(v); }
  void attr(const Tensor &v) { tensor(v); }
  template <class T>
  void attr(const std::vector<T> &list) {
    number(list.size());
    for (const T v : list) attr(v);
  }

  std::uint64_t value_ = 0;
};

}  // namespace

std::uint64_t fingerprint(const graph::Graph &g) {
  Hash hash;
  const auto names = [&](const std::vector<graph::ValueId> &ids) {
    hash.number(ids.size());
    for (const graph::ValueId v : ids) hash.text(v == graph::kNoValue ? std::string_view() : g.value(v).name);
  };
  names(g.inputs);
  names(g.outputs);
  for (const graph::Node &node : g.nodes) {
    hash.text(node.op->domain);
    hash.text(node.op->name);
    hash.attrs(node.attrs);
    names(node.inputs);
    names(node.outputs);
    hash.number(node.clamp.has_value());
    if (node.clamp) hash.real(node.clamp->lo), hash.real(node.clamp->hi);
  }
  for (const graph::Value &value : g.values) {
    if (!value.is_constant()) continue;
    hash.text(value.name);
    hash.tensor(value.constant);
  }
  return hash.value();
}

std::uint64_t fingerprint(const Placement &placement) {
  Hash hash;
  const auto settings = [&](const Settings &s) {
    hash.text(s.activation_observer);
    hash.text(s.weight_observer);
    hash.attrs(s.activation);
    hash.attrs(s.weight);
    hash.number(s.fixed_outputs);
    hash.number(s.equalize);
    hash.number(s.replace_relu6);
    hash.number(s.float_bias);
  };
  for (const NodePlan &node : placement.nodes) {
    hash.number(node.settings.has_value());
    if (node.settings) settings(*node.settings);
  }
  for (const Group &group : placement.groups) settings(group.settings);
  return hash.value();
}

}  // namespace qtn::quant
