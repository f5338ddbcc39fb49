// SPDX-License-Identifier: Apache-2.0
#include "base/stack_memory.hpp"
#include "guard.hpp"

using namespace qtn;
using namespace qtn::capi;

namespace {

const train::Parameter &parameter_at(const char *entry, const qtrainer *t, std::size_t index) {
  need(entry, t, "t");
  const auto &parameters = t->value.parameters();
  if (index >= parameters.size())
    fail(QTN_EINVAL, entry, ": index is ", index, ", the trainer has ", parameters.size(), " parameters");
  return parameters[index];
}

/// backward(), with the handles of inputs and targets turned into tensors.
double backward(const char *entry, qtrainer &t, const qtensor *const *inputs, std::size_t input_count,
                const qtensor *const *targets, std::size_t target_count) {
  need_array(entry, inputs, input_count, "inputs");
  need_array(entry, targets, target_count, "targets");
  StackMemory memory;
  auto xs = memory.list<const Tensor *>(input_count);
  auto wanted = memory.list<const Tensor *>(target_count);
  get_tensors(xs, entry, inputs);
  get_tensors(wanted, entry, targets);
  return t.value.backward(xs, wanted);
}

}  // namespace

qstatus qtrainer_create(qtrainer **out, const qmodel *m, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, m, "m");
    const Attrs &options = attrs_or_none(attrs);
    if (m->prepared())
      *out = new qtrainer{train::Trainer(*m->prepared(), options)};
    else
      *out = new qtrainer{train::Trainer(m->graph(), options)};
  });
}

qstatus qtrainer_step(double *out_loss, qtrainer *t, const qtensor *const *inputs, size_t input_count,
                      const qtensor *const *targets, size_t target_count) {
  if (out_loss) *out_loss = 0;
  return guard(__func__, [&](const char *entry) {
    need(entry, out_loss, "out_loss");
    need(entry, t, "t");
    *out_loss = backward(entry, *t, inputs, input_count, targets, target_count);
    t->value.update();
  });
}

qstatus qtrainer_backward(double *out_loss, qtrainer *t, const qtensor *const *inputs, size_t input_count,
                          const qtensor *const *targets, size_t target_count) {
  if (out_loss) *out_loss = 0;
  return guard(__func__, [&](const char *entry) {
    need(entry, out_loss, "out_loss");
    need(entry, t, "t");
    *out_loss = backward(entry, *t, inputs, input_count, targets, target_count);
  });
}

qstatus qtrainer_update(qtrainer *t) {
  return guard(__func__, [&](const char *entry) {
    need(entry, t, "t");
    t->value.update();
  });
}

qstatus qtrainer_evaluate(qtensor **outputs, size_t output_count, qtrainer *t, const qtensor *const *inputs,
                          size_t input_count) {
  clear_outputs(outputs, output_count);
  return guard(__func__, [&](const char *entry) {
    need_array(entry, outputs, output_count, "outputs");
    need(entry, t, "t");
    need_array(entry, inputs, input_count, "inputs");
    const std::size_t wanted = t->value.graph().outputs.size();
    if (output_count != wanted)
      fail(QTN_EINVAL, entry, ": output_count is ", output_count, ", the model has ", wanted, " outputs");
    const std::vector<const Tensor *> operands = tensors(entry, inputs, input_count);
    std::vector<Tensor> results = t->value.evaluate(operands);
    hand_out(outputs, results);
  });
}

qstatus qtrainer_set(qtrainer *t, const qattrs *attrs) {
  return guard(__func__, [&](const char *entry) {
    need(entry, t, "t");
    need(entry, attrs, "attrs");
    t->value.set(attrs->value);
  });
}

qstatus qtrainer_set_group(qtrainer *t, const char *selector, const qattrs *settings) {
  return guard(__func__, [&](const char *entry) {
    need(entry, t, "t");
    need(entry, selector, "selector");
    need(entry, settings, "settings");
    t->value.set_group(selector, settings->value);
  });
}

size_t qtrainer_parameter_count(const qtrainer *t) { return alive(t) ? t->value.parameters().size() : 0; }

const char *qtrainer_parameter_name(const qtrainer *t, size_t index) {
  return alive(t) && index < t->value.parameters().size() ? t->value.parameters()[index].name.c_str() : nullptr;
}

qstatus qtrainer_parameter(qtensor **out, qtrainer *t, size_t index) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    *out = new qtensor(parameter_at(entry, t, index).value);
  });
}

qstatus qtrainer_gradient(qtensor **out, qtrainer *t, size_t index) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    *out = new qtensor(parameter_at(entry, t, index).gradient);
  });
}

size_t qtrainer_buffer_count(const qtrainer *t) { return alive(t) ? t->value.buffers().size() : 0; }

const char *qtrainer_buffer_name(const qtrainer *t, size_t index) {
  return alive(t) && index < t->value.buffers().size() ? t->value.buffers()[index].name.c_str() : nullptr;
}

qstatus qtrainer_buffer(qtensor **out, qtrainer *t, size_t index) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    const auto &buffers = t->value.buffers();
    if (index >= buffers.size())
      fail(QTN_EINVAL, entry, ": index is ", index, ", the trainer has ", buffers.size(), " buffers");
    *out = new qtensor(buffers[index].value);
  });
}

qstatus qtrainer_model(qmodel **out, const qtrainer *t) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    if (std::optional<quant::PreparedModel> prepared = t->value.prepared())
      *out = new qmodel(*std::move(prepared));
    else
      *out = new qmodel(t->value.snapshot());
  });
}

qstatus qtrainer_save(const qtrainer *t, const char *path) {
  return guard(__func__, [&](const char *entry) {
    need(entry, t, "t");
    need(entry, path, "path");
    t->value.save(path);
  });
}

qstatus qtrainer_load(qtrainer *t, const char *path) {
  return guard(__func__, [&](const char *entry) {
    need(entry, t, "t");
    need(entry, path, "path");
    t->value.load(path);
  });
}

qstatus qtrainer_save_bytes(qblob **out, const qtrainer *t) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, t, "t");
    *out = new qblob{t->value.to_bytes()};
  });
}

qstatus qtrainer_load_bytes(qtrainer *t, const void *data, size_t nbytes) {
  return guard(__func__, [&](const char *entry) {
    need(entry, t, "t");
    need(entry, data, "data");
    t->value.load(std::span(static_cast<const std::byte *>(data), nbytes));
  });
}

void qtrainer_free(qtrainer *t) { delete alive(t); }
