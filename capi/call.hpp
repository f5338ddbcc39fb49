// SPDX-License-Identifier: Apache-2.0
// Operators whose callbacks a program gave, and their calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "handles.hpp"
#include "ops/custom.hpp"

/// What a callback sees: on the stack of the thread that calls it.
struct qcall {
  explicit qcall(const qtn::ops::Call &of, const char *operator_name);

  const qtn::ops::Call &call;
  const char *name;
  std::vector<std::optional<qtensor>> inputs;   ///< none where one is absent, or where its values are not known
  std::vector<std::optional<qtensor>> outputs;  ///< of run
  std::vector<std::optional<qtn::ops::TensorType>> types;  ///< of infer: what it has said
  std::optional<qattrs> attrs;                             ///< made when it is asked for
  std::optional<qtn::Error> failure;                       ///< the first
  bool out_of_memory = false;  ///< there were no attributes, whatever the callback made of that
  static constexpr char kNoun[] = "qcall";
  [[no_unique_address]] qtn::capi::Tag tag{this, kNoun};
};

namespace qtn::capi {

struct OpCallbacks {
  qop_call_cb infer, run, run_quantized;
  qop_destroy_cb destroy;
  void *ctx;
};

class CallbackOp final : public ops::Custom {
 public:
  CallbackOp(const char *of_domain, const char *of_type, std::int64_t since, const OpCallbacks &callbacks)
      : Custom(of_domain, of_type, since), callbacks_(callbacks) {}
  ~CallbackOp() override;

  /// From now on it is this one that calls `destroy`.
  void own() { owns_ = true; }

  std::vector<ops::TensorType> infer_types(const ops::Call &call) const override;
  void compute(const ops::Call &call, std::span<const Tensor> outputs) const override;
  bool has_quantized() const override { return callbacks_.run_quantized; }
  bool compute_quantized(const ops::Call &call, std::span<const Tensor> outputs) const override;

 private:
  qstatus ask(qop_call_cb callback, qcall &call, const char *what, qstatus answered) const;
  qstatus write(qop_call_cb callback, const ops::Call &call, std::span<const Tensor> outputs, const char *what,
                qstatus answered) const;

  const OpCallbacks callbacks_;
  bool owns_ = false;
};

}  // namespace qtn::capi
