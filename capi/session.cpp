// SPDX-License-Identifier: Apache-2.0
#include "base/find_named.hpp"
#include "base/stack_memory.hpp"
#include "guard.hpp"

using namespace qtn;
using namespace qtn::capi;

namespace {

constexpr AttrSpec kOptions[] = {{"engine", AttrSpec::kString}, {"threads", AttrSpec::kInt}};

runtime::SessionOptions options_of(const char *entry, const Attrs &attrs) {
  attrs.check(kOptions, entry);
  runtime::SessionOptions options;
  constexpr std::string_view kEngines[] = {"native", "reference"};
  const std::string_view engine = find_named(kEngines, attrs.get_string("engine", "native"), entry, "engine");
  options.engine = engine == "reference" ? runtime::Engine::reference : runtime::Engine::native;
  const std::int64_t threads = attrs.get_int("threads", 0);
  if (threads < 0 || threads > 1024) fail(QTN_EINVAL, entry, ": threads is ", threads, ", not from 0 to 1024");
  options.threads = static_cast<int>(threads);
  return options;
}

void check_input_count(const char *entry, const qsession &s, std::size_t count) {
  const std::size_t wanted = s.value.graph().inputs.size();
  if (count != wanted) fail(QTN_EINVAL, entry, ": input_count is ", count, ", the model has ", wanted, " inputs");
}

/// NULL stays nullptr where the session has state.
void get_operands(std::span<const Tensor *> operands, const char *entry, const qsession &s,
                  const qtensor *const *inputs) {
  get_tensors(operands, entry, inputs, true);
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!operands[i] && !s.value.holds_state(i)) fail(QTN_EINVAL, entry, ": inputs[", i, "] is NULL");
}

}  // namespace

qstatus qsession_create(qsession **out, const qmodel *m, const qattrs *attrs) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, m, "m");
    const runtime::SessionOptions options = options_of(entry, attrs_or_none(attrs));
    *out = new qsession{runtime::Session(finished(entry, m), options)};
  });
}

qstatus qsession_run(qtensor **outputs, size_t output_count, const qsession *s, const qtensor *const *inputs,
                     size_t input_count) {
  clear_outputs(outputs, output_count);
  return guard(__func__, [&](const char *entry) {
    need_array(entry, outputs, output_count, "outputs");
    need(entry, s, "s");
    const std::size_t wanted = s->value.graph().outputs.size();
    if (output_count != wanted)
      fail(QTN_EINVAL, entry, ": output_count is ", output_count, ", the model has ", wanted, " outputs");
    check_input_count(entry, *s, input_count);
    StackMemory memory;
    auto operands = memory.list<const Tensor *>(input_count);
    auto results = memory.list<Tensor>(output_count);
    get_operands(operands, entry, *s, inputs);
    s->value.run(operands, results, [=](std::span<Tensor> made) { hand_out(outputs, made); });
  });
}

qstatus qsession_profile(qblob **out, const qsession *s, const qtensor *const *inputs, size_t input_count) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, s, "s");
    check_input_count(entry, *s, input_count);
    std::vector<const Tensor *> operands(input_count);
    get_operands(operands, entry, *s, inputs);
    *out = new qblob{s->value.profile(operands)};
  });
}

qstatus qsession_bind(qsession *s, size_t output, size_t input) {
  return guard(__func__, [&](const char *entry) {
    need(entry, s, "s");
    s->value.bind(output, input);
  });
}

qstatus qsession_reset(qsession *s) {
  return guard(__func__, [&](const char *entry) {
    need(entry, s, "s");
    s->value.reset();
  });
}

void qsession_free(qsession *s) { delete alive(s); }
