// SPDX-License-Identifier: Apache-2.0
#include "ops/custom.hpp"

#include <algorithm>
#include <mutex>

#include "base/error.hpp"
#include "base/fork_gate.hpp"

namespace qtn::ops {
namespace {

using Ops = std::vector<std::shared_ptr<const Custom>>;

constinit std::mutex mutex;
/// Made at the first registration and never freed: when a process ends, what the callbacks need may be gone before.
constinit Ops *registered = nullptr;

bool is_word(std::string_view text, std::string_view more) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || more.find(c) != more.npos;
  });
}

bool is_same(const Custom &op, std::string_view domain, std::string_view type, std::int64_t since_version) {
  return op.OpDef::domain == domain && op.type == type && op.since_version == since_version;
}

template <class Fits>
OpPtr newest(const Fits &fits) {
  const NoFork section;
  const std::lock_guard lock(mutex);
  const Custom *found = nullptr;
  if (registered)
    for (const auto &op : *registered)
      if (fits(*op) && (!found || found->since_version < op->since_version)) found = op.get();
  return found;
}

}  // namespace

CustomName::CustomName(const std::string &of_domain, const std::string &of_type)
    : domain(of_domain == "ai.onnx" ? "" : of_domain),
      type(of_type),
      full(domain.empty() ? type : domain + "::" + type) {
  if (!is_word(type, "_"))
    fail(QTN_EINVAL, "name \"", type, "\" is not one that an operator can have: letters, digits and _");
  if (!domain.empty() && !is_word(domain, "_.-"))
    fail(QTN_EINVAL, "domain \"", domain, "\" is not one that an operator can have: letters, digits, _, . and -");
}

Custom::Custom(const std::string &of_domain, const std::string &of_type, std::int64_t since)
    : CustomName(of_domain, of_type),
      OpDef{.name = full.c_str(),
            .domain = CustomName::domain.c_str(),
            .min_inputs = 0,
            .max_inputs = kVariadic,
            .max_outputs = kVariadic,
            .attrs = {},
            .any_type = true,
            .infer = nullptr,
            .run = nullptr},
      since_version(since) {
  if (since < 1) fail(QTN_EINVAL, "since_version of ", full, " is ", since, ", below 1");
}

const Custom *as_custom(const OpDef &op) { return op.infer ? nullptr : static_cast<const Custom *>(&op); }

void OpPtr::keep() { keeps_ = as_custom(*op_)->shared_from_this(); }

void register_op(std::shared_ptr<const Custom> op) {
  const NoFork section;
  const std::lock_guard lock(mutex);
  if (!registered) registered = new Ops;
  if (std::ranges::any_of(*registered, [&](const auto &other) {
        return is_same(*other, op->OpDef::domain, op->type, op->since_version);
      }))
    fail(QTN_EINVAL, "operator ", op->name, " is registered already since version ", op->since_version);
  registered->push_back(std::move(op));
}

void unregister_op(const std::string &domain, const std::string &type, std::int64_t since_version) {
  const std::string_view own = domain == "ai.onnx" ? std::string_view() : std::string_view(domain);
  std::shared_ptr<const Custom> removed;  // which may call the program when it goes: not under the lock
  const NoFork section;
  const std::lock_guard lock(mutex);
  if (registered) {
    const auto at =
        std::ranges::find_if(*registered, [&](const auto &op) { return is_same(*op, own, type, since_version); });
    if (at != registered->end()) {
      removed = std::move(*at);
      registered->erase(at);
    }
  }
  if (!removed)
    fail(QTN_EINVAL, "operator ", type, " (domain ", domain.empty() ? "ai.onnx" : domain,
         ") is not registered since version ", since_version);
}

OpPtr find_registered(std::string_view name) {
  return newest([&](const Custom &op) { return op.name == name; });
}

OpPtr find_registered(std::string_view domain, std::string_view type, std::int64_t version) {
  return newest(
      [&](const Custom &op) { return op.OpDef::domain == domain && op.type == type && op.since_version <= version; });
}

}  // namespace qtn::ops
