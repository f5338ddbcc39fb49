// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "commands/commands.hpp"
#include "data/data.hpp"
#include "data/outputs.hpp"
#include "shared/checks.hpp"
#include "shared/interrupt.hpp"
#include "shared/model.hpp"
#include "shared/progress.hpp"

namespace tool {

namespace {

struct RunOptions {
  std::string model, output, engine = "native", isa;
  size_t batch = 0;  // 0: what the model fixes, else 1
  int64_t threads = 0;
  DataOptions data;
  std::vector<std::string> states;  // OUTPUT=INPUT
};

struct State {
  size_t output, input;
};

// Names are looked for in the model, because they may hold '=' themselves.
State state_of(const std::string &text, const qmodel *model) {
  for (size_t o = 0; o < qmodel_output_count(model); ++o)
    for (size_t i = 0; i < qmodel_input_count(model); ++i)
      if (text == std::string(qmodel_output_name(model, o)) + "=" + qmodel_input_name(model, i)) return {o, i};
  throw Failure("--state " + text + ": is not OUTPUT=INPUT with names of the model");
}

// What the data give, else zeros. A model may leave the first dimension open, which is the number of samples in a run.
Tensor first_state(const qmodel *model, size_t input, const Samples &samples, int64_t count) {
  if (Tensor given = samples.first_state(input)) return given;
  const std::string name = qmodel_input_name(model, input);
  const int64_t *declared = qmodel_input_shape(model, input);
  Shape shape;
  if (declared != nullptr) shape.assign(declared, declared + qmodel_input_rank(model, input));
  if (!shape.empty() && shape[0] < 0 && !samples.unbatched()) shape[0] = count;
  if (declared == nullptr || std::count(shape.begin(), shape.end(), -1) != 0)
    throw Failure("the input '" + name + "' has " + (declared == nullptr ? "any shape" : "shape " + shape_text(shape)) +
                  ", so its first state has to be given: --data " + name + "=FILE.npy");
  return make<Tensor>(qtensor_create, qmodel_input_dtype(model, input), shape.data(), shape.size(), nullptr, nullptr,
                      size_t{0});
}

// What an output has come to so far.
struct Result {
  qdtype dtype = QTN_FLOAT32;
  Shape shape;
  std::vector<unsigned char> data;
};

// The elements of a row-major tensor.
Result result_of(const qtensor *tensor) {
  const auto *bytes = static_cast<const unsigned char *>(qtensor_data(tensor));
  return {qtensor_dtype(tensor), shape_of(tensor), {bytes, bytes + qtensor_nbytes(tensor)}};
}

// Joins the outputs of successive runs along their first axis. Outputs without one are stacked.
void append(Result &all, Result part, const char *name, bool stack) {
  if (stack || part.shape.empty()) part.shape.insert(part.shape.begin(), 1);
  if (all.shape.empty()) {
    all = std::move(part);
    return;
  }
  if (!std::equal(all.shape.begin() + 1, all.shape.end(), part.shape.begin() + 1, part.shape.end()))
    throw Failure("output '" + std::string(name) + "' changes its shape from sample to sample: " +
                  shape_text(all.shape) + ", then " + shape_text(part.shape));
  all.shape[0] += part.shape[0];
  all.data.insert(all.data.end(), part.data.begin(), part.data.end());
}

void run(const RunOptions &options) {
  const bool npy = options.output.ends_with(".npy");
  if (!npy && !options.output.ends_with(".safetensors"))
    throw UsageError("-o " + options.output + ": needs a name that ends in .npy or .safetensors");
  if (!options.isa.empty()) check_named(qlib_set_isa(options.isa.c_str()));
  const Model model = load_model(options.model);
  const size_t outputs = qmodel_output_count(model.get());
  if (npy && outputs != 1)
    throw Failure("the model has " + std::to_string(outputs) + " outputs; several go to a .safetensors file");
  std::vector<State> states;
  std::set<size_t> inputs_with_state;
  for (const std::string &text : options.states) {
    states.push_back(state_of(text, model.get()));
    if (!inputs_with_state.insert(states.back().input).second)
      throw UsageError("--state " + text + ": that input has been given already");
  }
  const std::unique_ptr<Samples> samples = open_data(options.data, model.get(), inputs_with_state);
  check_outputs({options.output}, samples->files(), options.model);
  const size_t batch = batch_size(model.get(), *samples, options.batch);
  const Session session = open_session(model.get(), options.engine, options.threads);
  for (const State &state : states) check(qsession_bind(session.get(), state.output, state.input));
  std::vector<Result> results(outputs);
  std::vector<const char *> names;
  for (size_t i = 0; i < outputs; ++i) names.push_back(qmodel_output_name(model.get(), i));
  Progress progress;
  for (size_t first = 0; first < samples->count(); first += batch) {
    const size_t count = std::min(batch, samples->count() - first);
    std::vector<Tensor> inputs = samples->read(first, count);
    if (first == 0)
      for (const size_t input : inputs_with_state)
        inputs[input] = first_state(model.get(), input, *samples, static_cast<int64_t>(count));
    const auto tensors = run_session(model.get(), session.get(), inputs);
    for (size_t i = 0; i < outputs; ++i)
      append(results[i], result_of(tensors[i].get()), names[i], samples->unbatched());
    progress.at("running", first + count, samples->count());
  }
  std::vector<Tensor> tensors;
  tensors.reserve(outputs);
  for (const Result &result : results)
    tensors.push_back(make<Tensor>(qtensor_create, result.dtype, result.shape.data(), result.shape.size(), nullptr,
                                   result.data.data(), result.data.size()));
  if (npy)
    write_whole([&] { return qtensor_save_npy(tensors.front().get(), options.output.c_str()); });
  else
    write_whole(
        [&] { return qtensor_save_all(options.output.c_str(), names.data(), borrow(tensors).data(), outputs); });
}

}  // namespace

void add_run(CLI::App &app) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App &command = *app.add_subcommand("run", "Run a model on data and write its outputs");
  command.add_option("MODEL.onnx", options->model, "Float or int8 model")->required();
  command.add_option("-o,--output", options->output, "One output: OUT.npy; several, by name: OUT.safetensors")
      ->type_name("OUT")
      ->required();
  add_data_options(command, options->data)->required();
  command
      .add_option("--state", options->states,
                  "This output of each run is that input of the next; the first one has zeros, or its --data")
      ->type_name("OUTPUT=INPUT")
      ->allow_extra_args(false);
  command.add_option("--batch", options->batch, "Samples in a run (default 1)")
      ->type_name("N")
      ->check(positive_count());
  command.add_option("--threads", options->threads, "Threads (default: as many as there are processors)")
      ->type_name("N")
      ->check(thread_count());
  command.add_option("--engine", options->engine, "native (default) or reference")
      ->check(CLI::IsMember({"native", "reference"}));
  command.add_option("--isa", options->isa, "At most this instruction set: scalar, avx2, ...")->type_name("NAME");
  command.callback([options] { run(*options); });
}

}  // namespace tool
