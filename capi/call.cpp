// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <algorithm>
#include <cstring>

#include "guard.hpp"

using namespace qtn;
using namespace qtn::capi;

qcall::qcall(const ops::Call &of, const char *operator_name)
    : call(of), name(operator_name), inputs(of.inputs.size()), types(of.output_count) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (const Tensor *t = of.inputs[i]; t && t->has_data()) inputs[i].emplace(*t);
}

namespace qtn::capi {
namespace {

void check_unchanged(const qcall &call, std::size_t i, const Tensor &given) {
  const Tensor &t = call.outputs[i]->value;
  if (t.data() != given.data() || t.dtype() != given.dtype() || t.shape() != given.shape() ||
      t.strides() != given.strides() || t.quantizer() != given.quantizer())
    fail(QTN_EINVAL, call.name, ": output ", i, " is not the tensor any more that it was to be written into");
}

}  // namespace

CallbackOp::~CallbackOp() {
  if (owns_ && callbacks_.destroy) callbacks_.destroy(callbacks_.ctx);
}

/// QTN_OK or the one failure that the library has an answer to; any other is thrown.
qstatus CallbackOp::ask(qop_call_cb callback, qcall &call, const char *what, qstatus answered) const {
  const unsigned before = message_count();
  const qstatus status = callback(&call, callbacks_.ctx);
  if (call.out_of_memory) throw std::bad_alloc();
  if (call.failure) throw Error(*call.failure);
  if (status == QTN_OK || status == answered) return status;
  // What it has called may have said why.
  if (message_count() != before) fail(is_failure(status) ? status : QTN_EINVAL, call.name, ": ", qerror_message());
  if (is_failure(status)) fail(status, call.name, ": ", what, " returned ", qstatus_name(status));
  fail(QTN_EINVAL, call.name, ": ", what, " returned ", static_cast<int>(status), ", which is no status");
}

std::vector<ops::TensorType> CallbackOp::infer_types(const ops::Call &of) const {
  qcall call(of, name);
  if (ask(callbacks_.infer, call, "infer", QTN_ESTATE) == QTN_ESTATE) {
    const bool all_known = std::ranges::all_of(of.inputs, [](const Tensor *t) { return !t || t->has_data(); });
    if (!all_known) throw NotKnown(cat(name, ": its outputs follow from values that are not known before a run"));
    fail(QTN_ESTATE, name, ": infer wants values that are not known, and all are");
  }
  std::vector<ops::TensorType> types;
  for (std::size_t i = 0; i < call.types.size(); ++i) {
    if (!call.types[i]) fail(QTN_EINVAL, name, ": infer said nothing of output ", i);
    types.push_back(*call.types[i]);
  }
  return types;
}

qstatus CallbackOp::write(qop_call_cb callback, const ops::Call &of, std::span<const Tensor> outputs, const char *what,
                          qstatus answered) const {
  qcall call(of, name);
  call.outputs.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].has_data()) call.outputs[i].emplace(outputs[i]);
  const qstatus status = ask(callback, call, what, answered);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (call.outputs[i]) check_unchanged(call, i, outputs[i]);
  return status;
}

void CallbackOp::compute(const ops::Call &call, std::span<const Tensor> outputs) const {
  write(callbacks_.run, call, outputs, "run", QTN_OK);
}

bool CallbackOp::compute_quantized(const ops::Call &call, std::span<const Tensor> outputs) const {
  return write(callbacks_.run_quantized, call, outputs, "run_quantized", QTN_EUNSUPPORTED) == QTN_OK;
}

}  // namespace qtn::capi

size_t qcall_input_count(const qcall *c) { return alive(c) ? c->inputs.size() : 0; }

qdtype qcall_input_dtype(const qcall *c, size_t index) {
  const Tensor *t = alive(c) ? c->call.in(index) : nullptr;
  return t ? t->dtype() : static_cast<qdtype>(0);
}

size_t qcall_input_rank(const qcall *c, size_t index) {
  const Tensor *t = alive(c) ? c->call.in(index) : nullptr;
  return t ? t->rank() : 0;
}

const int64_t *qcall_input_shape(const qcall *c, size_t index) {
  const Tensor *t = alive(c) ? c->call.in(index) : nullptr;
  return t ? t->shape().data() : nullptr;
}

const qtensor *qcall_input(const qcall *c, size_t index) {
  return alive(c) && index < c->inputs.size() && c->inputs[index] ? &*c->inputs[index] : nullptr;
}

const qattrs *qcall_attrs(qcall *c) {
  if (!alive(c)) return nullptr;
  const qattrs *attrs = nullptr;
  const qstatus status = guard(__func__, [&](const char *) {
    if (!c->attrs) c->attrs.emplace(qattrs{c->call.attrs});
    attrs = &*c->attrs;
  });
  if (status != QTN_OK) c->out_of_memory = true;
  return attrs;
}

size_t qcall_output_count(const qcall *c) { return alive(c) ? c->types.size() : 0; }

qstatus qcall_set_output_type(qcall *c, size_t index, qdtype dtype, const int64_t *shape, size_t rank) {
  return guard(__func__, [&](const char *entry) {
    need(entry, c, "c");
    need_array(entry, shape, rank, "shape");
    try {
      if (!c->outputs.empty()) fail(QTN_ESTATE, c->name, ": types of outputs are for infer to say");
      if (index >= c->types.size())
        fail(QTN_EINVAL, c->name, ": infer spoke of output ", index, " of ", c->types.size());
      if (dtype_name(dtype)[0] == '?')
        fail(QTN_EDTYPE, c->name, ": infer gave output ", index, " the dtype ", static_cast<int>(dtype),
             ", which is unknown");
      if (rank > kMaxRank)
        fail(QTN_ESHAPE, c->name, ": infer gave output ", index, " rank ", rank, ", over the limit of ", kMaxRank);
      const Shape dims(std::span<const std::int64_t>(shape, rank));
      for (const std::int64_t dim : dims)
        if (dim < 0) fail(QTN_ESHAPE, c->name, ": infer gave output ", index, " a dimension of ", dim);
      c->types[index] = ops::TensorType{dtype, dims};
    } catch (const Error &e) {
      if (!c->failure) c->failure.emplace(e);  // also where the callback takes no notice
      throw;
    }
  });
}

qtensor *qcall_output(qcall *c, size_t index) {
  return alive(c) && index < c->outputs.size() && c->outputs[index] ? &*c->outputs[index] : nullptr;
}

qstatus qcall_fail(qcall *c, qstatus status, const char *message) {
  return guard(__func__, [&](const char *entry) {
    need(entry, c, "c");
    need(entry, message, "message");
    const Error failure(is_failure(status) ? status : QTN_EINVAL, cat(c->name, ": ", message));
    if (!c->failure) c->failure.emplace(failure);
    throw failure;
  });
}
