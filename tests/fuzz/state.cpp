// SPDX-License-Identifier: Apache-2.0
// Sessions that keep state: graphs that bytes describe, whose outputs become inputs of the next run. They answer what a
// session without state answers that is given the same tensors.
#include <algorithm>
#include <utility>

#include "growing.hpp"
#include "oracle.hpp"

namespace fuzz {
namespace {

struct Bound {
  std::size_t output, input;
};

Session session_of(const qmodel *m, const char *engine) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  must(qattrs_set_string(attrs.get(), "engine", engine), "engine");
  must(qattrs_set_int(attrs.get(), "threads", 1), "threads");
  return make<Session>(qsession_create, m, attrs.get());
}

Answer run_once(const qmodel *m, const qsession *s, const std::vector<const qtensor *> &inputs) {
  Answer answer;
  std::vector<qtensor *> outputs(qmodel_output_count(m));
  answer.status = qsession_run(outputs.data(), outputs.size(), s, inputs.data(), inputs.size());
  if (!good(answer.status)) answer.message = qerror_message();
  for (qtensor *output : outputs) {
    require((output != nullptr) == (answer.status == QTN_OK), "an output of a run that failed");
    if (output != nullptr) answer.outputs.emplace_back(output);
  }
  return answer;
}

void compare(const Answer &got, const Answer &want, int run) {
  const std::string what = "run " + std::to_string(run) + " with state, and without: ";
  stop_without_memory(got.status);
  stop_without_memory(want.status);
  require(got.status == want.status, what + qstatus_name(got.status) + " (" + got.message + ") and " +
                                         qstatus_name(want.status) + " (" + want.message + ")");
  std::string difference;
  for (std::size_t i = 0; i < got.outputs.size(); ++i)
    if (!same_bits(got.outputs[i].get(), want.outputs[i].get(), &difference))
      fail(what + "output " + std::to_string(i) + ": " + difference);
}

void check(const qmodel *m, const char *engine, const std::vector<Tensor> &inputs, Bytes &bytes) {
  const Session with = session_of(m, engine), without = session_of(m, engine);
  if (!with || !without) return;
  std::vector<Bound> bound;
  for (int tries = bytes.in(1, 6); tries > 0; --tries) {
    const std::size_t output = bytes.byte() % qmodel_output_count(m), input = bytes.byte() % inputs.size();
    if (!good(qsession_bind(with.get(), output, input))) continue;
    std::erase_if(bound, [&](const Bound &b) { return b.input == input; });
    bound.push_back({output, input});
  }
  if (bound.empty()) return;
  std::vector<Tensor> state(inputs.size());
  std::vector<std::pair<Tensor, Tensor>> held;  // outputs, and copies of what they were
  for (int run = 0; run < 5; ++run) {
    if (bytes.one_in(8)) {
      must(qsession_reset(with.get()), "resetting");
      for (Tensor &t : state) t.reset();
    }
    std::vector<const qtensor *> given, same;
    for (const Tensor &t : inputs) given.push_back(t.get()), same.push_back(t.get());
    for (const Bound &b : bound) {
      // The first tensor is given or zeros, which are those of the declared shape.
      const bool is_first = state[b.input] == nullptr;
      if (is_first ? bytes.one_in(2) : bytes.one_in(8)) continue;
      if (is_first) {
        const std::vector<std::int64_t> shape = shape_of(inputs[b.input].get());
        const qdtype dtype = qtensor_dtype(inputs[b.input].get());
        Tensor zeros =
            make<Tensor>(qtensor_create, dtype, shape.data(), shape.size(), nullptr, nullptr, std::size_t{0});
        void *data = nullptr;
        must(qtensor_data_mut(&data, zeros.get()), "zeros");
        std::fill_n(static_cast<char *>(data), qtensor_nbytes(zeros.get()), char{0});
        state[b.input] = std::move(zeros);
      }
      given[b.input] = nullptr;
      same[b.input] = state[b.input].get();
    }
    Answer got = run_once(m, with.get(), given);
    const Answer want = run_once(m, without.get(), same);
    // A state that the input does not take is refused at the end of the run that makes it, and zeros for an input of an
    // open shape before the run that fails without state.
    if (got.status != QTN_OK && (want.status == QTN_OK || got.status == QTN_ESTATE)) {
      require(
          got.status == QTN_ESHAPE || got.status == QTN_EDTYPE || got.status == QTN_ESTATE || got.status == QTN_ENOMEM,
          "a run with state: " + got.message);
      return;
    }
    compare(got, want, run);
    if (got.status != QTN_OK) return;
    for (const Bound &b : bound) {
      Tensor copy = make<Tensor>(qtensor_contiguous, want.outputs[b.output].get());
      state[b.input] = std::move(copy);
    }
    if (bytes.one_in(2))  // outputs that are held keep their values
      for (std::size_t i = 0; i < got.outputs.size(); ++i) {
        Tensor copy = make<Tensor>(qtensor_contiguous, want.outputs[i].get());
        held.emplace_back(std::move(got.outputs[i]), std::move(copy));
      }
    for (const auto &[output, copy] : held) {
      std::string difference;
      if (!same_bits(output.get(), copy.get(), &difference)) fail("an output that is held has changed: " + difference);
    }
  }
}

void test(const std::uint8_t *data, std::size_t size) {
  Bytes bytes(data, size);
  Growing growing(bytes);
  const Model model = growing.model();
  if (!model || qmodel_output_count(model.get()) == 0) return;
  check(model.get(), bytes.one_in(3) ? "reference" : "native", growing.inputs(), bytes);
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{256} << 20, fuzz::test)
