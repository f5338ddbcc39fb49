// SPDX-License-Identifier: Apache-2.0
// Operators that the program registers while it runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/op.hpp"

namespace qtn::ops {

/// The strings that the OpDef of a registered operator refers to.
struct CustomName {
  /// Throws QTN_EINVAL on a name or a domain that no file could have.
  CustomName(const std::string &of_domain, const std::string &of_type);

  std::string domain, type;  ///< "" for ONNX's own domain; what nodes of files call it
  std::string full;          ///< "domain::type", as no two domains share a name here; of ONNX's own domain "type"
};

/// An OpDef without infer(), whose functions are these. It judges counts and attributes itself. Called from many threads
/// at once.
class Custom : CustomName, public OpDef, public std::enable_shared_from_this<Custom> {
 public:
  /// Throws QTN_EINVAL as CustomName does, and on a version below 1.
  Custom(const std::string &domain, const std::string &type, std::int64_t since_version);
  virtual ~Custom() = default;

  virtual std::vector<TensorType> infer_types(const Call &call) const = 0;
  virtual void compute(const Call &call, std::span<const Tensor> outputs) const = 0;

  /// Whether it computes on integers, too.
  virtual bool has_quantized() const = 0;
  /// compute() where some operands and outputs carry quantizers. False: these have the generic meaning only.
  virtual bool compute_quantized(const Call &call, std::span<const Tensor> outputs) const = 0;

  using CustomName::type;
  const std::int64_t since_version;
};

/// The same operator, or nullptr for one of ops.inc.
const Custom *as_custom(const OpDef &op);

/// An operator that stays as long as this does, even if it was registered and is not any more.
class OpPtr {
 public:
  OpPtr(const OpDef *op = nullptr) : op_(op) {
    if (op && !op->infer) keep();
  }
  operator const OpDef *() const { return op_; }
  const OpDef *operator->() const { return op_; }
  const OpDef &operator*() const { return *op_; }

 private:
  void keep();

  const OpDef *op_;
  std::shared_ptr<const Custom> keeps_;
};

/// Throws QTN_EINVAL where an operator of that domain, name and version is registered already. What a reader of files
/// knows must not be registered: see onnx::is_reserved().
void register_op(std::shared_ptr<const Custom> op);

/// Files that are loaded from now on do not know it any more; what holds it still runs it. Throws QTN_EINVAL where it is
/// not registered.
void unregister_op(const std::string &domain, const std::string &type, std::int64_t since_version);

/// The newest of that name (OpDef::name) that is registered, or nullptr.
OpPtr find_registered(std::string_view name);

/// The newest of a domain that is not newer than `version`, or nullptr.
OpPtr find_registered(std::string_view domain, std::string_view type, std::int64_t version);

}  // namespace qtn::ops
