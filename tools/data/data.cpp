// SPDX-License-Identifier: Apache-2.0
#include "data/data.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>

#include "data/array.hpp"
#include "data/file.hpp"
#include "data/images.hpp"
#include "data/shards.hpp"

namespace tool {

namespace {

std::string input_names(const qmodel *model, const std::set<size_t> &without = {}) {
  std::string names;
  for (size_t i = 0; i < qmodel_input_count(model); ++i)
    if (without.count(i) == 0) names += (names.empty() ? "'" : ", '") + std::string(qmodel_input_name(model, i)) + "'";
  return names;
}

// An array for each input that has data.
using Arrays = std::vector<std::optional<Shards>>;

class ArraySamples : public Samples {
 public:
  ArraySamples(Arrays arrays, const qmodel *model, const std::set<size_t> &with_state)
      : arrays_(std::move(arrays)), first_states_(arrays_.size()) {
    for (const size_t input : with_state) std::swap(arrays_[input], first_states_[input]);
    while (!arrays_[first_]) ++first_;
    for (const std::optional<Shards> &array : arrays_)
      if (array && array->rows() != first().rows())
        throw Failure(array->path() + ": has " + std::to_string(array->rows()) + " samples, " + first().path() +
                      " has " + std::to_string(first().rows()));
    if (first().rows() == 0) throw Failure(first().path() + ": holds no samples");
    const size_t rank = qmodel_input_rank(model, first_);
    for (size_t i = 0; i < arrays_.size(); ++i) types_.push_back(qmodel_input_dtype(model, i));
    unbatched_ = qmodel_input_shape(model, first_) != nullptr && first().shape().size() == rank + 1;
  }

  size_t count() const override { return first().rows(); }
  bool unbatched() const override { return unbatched_; }

  std::vector<std::string> files() const override {
    std::vector<std::string> files;
    for (const Arrays *arrays : {&arrays_, &first_states_})
      for (const std::optional<Shards> &array : *arrays)
        if (array)
          for (std::string &path : array->paths()) files.push_back(std::move(path));
    return files;
  }

  std::vector<Tensor> read(size_t begin, size_t count) const override {
    std::vector<Tensor> tensors(arrays_.size());
    for (size_t i = 0; i < arrays_.size(); ++i) {
      if (!arrays_[i]) continue;
      Tensor rows = arrays_[i]->read(begin, count, types_[i]);
      tensors[i] = unbatched_ ? make<Tensor>(qtensor_select, rows.get(), 0, 0) : std::move(rows);
    }
    return tensors;
  }

  Tensor first_state(size_t input) const override {
    const std::optional<Shards> &state = first_states_[input];
    return state ? state->read(0, state->rows(), types_[input]) : nullptr;
  }

 private:
  const Shards &first() const { return *arrays_[first_]; }

  Arrays arrays_, first_states_;
  size_t first_ = 0;           // that has data
  std::vector<qdtype> types_;  // of the inputs
  bool unbatched_ = false;
};

// A word of --data: NAME=PATH where the model has an input of this name. All of any other word is a path, because paths
// and names may hold '=' themselves.
struct Source {
  std::optional<size_t> input;
  std::string path;
};

Source source_of(const std::string &word, const qmodel *model) {
  Source source{{}, word};
  for (size_t i = 0; i < qmodel_input_count(model); ++i) {
    const std::string start = std::string(qmodel_input_name(model, i)) + "=";
    if (word.starts_with(start) && word.size() - start.size() < source.path.size())  // the longest name
      source = {i, word.substr(start.size())};
  }
  if (source.input || word.find('=') == std::string::npos) return source;
  const std::vector<std::string> files = matches_of(word);
  if (files.empty() || !std::filesystem::exists(files.front()))
    throw Failure("--data " + word + ": is no file, and names no input of the model; these are " + input_names(model));
  return source;
}

// The array of each file, one behind the other.
Shards joined_arrays(const std::vector<std::string> &paths) {
  std::vector<Array> parts;
  for (const std::string &path : paths) parts.push_back(open_array(path));
  return Shards(std::move(parts));
}

Arrays named_arrays(const std::vector<Source> &sources, const qmodel *model, const std::set<size_t> &with_state) {
  Arrays found(qmodel_input_count(model));
  for (const auto &[input, path] : sources) {
    if (!input)
      throw Failure("--data " + path + ": needs the name of an input of the model in front, NAME=FILE; these are " +
                    input_names(model));
    if (found[*input])
      throw UsageError("--data " + path + ": the input '" + qmodel_input_name(model, *input) +
                       "' has been given already");
    found[*input] = joined_arrays(files_of(path));
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i] && with_state.count(i) == 0)
      throw Failure("--data has no file for the input '" + std::string(qmodel_input_name(model, i)) + "'");
  return found;
}

Arrays safetensors_arrays(const std::string &path, const qmodel *model, const std::set<size_t> &with_state) {
  const std::vector<Array> all = open_arrays(path);
  Arrays arrays(qmodel_input_count(model));
  for (size_t i = 0; i < arrays.size(); ++i) {
    const std::string name = qmodel_input_name(model, i);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Array &array) { return array.name == name; });
    if (found != all.end())
      arrays[i] = Shards({*found});
    else if (with_state.count(i) == 0)
      throw Failure(path + ": holds no tensor for the input '" + name + "'");
  }
  return arrays;
}

Arrays npy_array(const std::vector<Source> &sources, const qmodel *model, const std::set<size_t> &with_state) {
  std::vector<std::string> paths;
  for (const Source &source : sources)
    for (std::string &path : files_of(source.path)) paths.push_back(std::move(path));
  Arrays arrays(qmodel_input_count(model));
  if (arrays.size() - with_state.size() != 1)
    throw Failure(paths.front() + ": is data for one input, and the model has " +
                  std::to_string(arrays.size() - with_state.size()) + ": " + input_names(model, with_state) +
                  "; give NAME=FILE.npy for each");
  size_t input = 0;
  while (with_state.count(input) != 0) ++input;
  arrays[input] = joined_arrays(paths);
  return arrays;
}

Arrays arrays_of(const std::vector<Source> &sources, const qmodel *model, const std::set<size_t> &with_state) {
  const bool one = sources.size() == 1, one_input = qmodel_input_count(model) - with_state.size() == 1;
  const bool named = std::any_of(sources.begin(), sources.end(), [](const Source &s) { return s.input.has_value(); });
  // Files without names would not be told apart by several inputs.
  if (named || (!one && !one_input)) return named_arrays(sources, model, with_state);
  if (one && sources.front().path.ends_with(".safetensors"))
    return safetensors_arrays(sources.front().path, model, with_state);
  return npy_array(sources, model, with_state);
}

}  // namespace

CLI::Option *add_data_options(CLI::App &command, DataOptions &options) {
  CLI::Option *data =
      command
          .add_option("--data", options.sources,
                      "FILE.npy..., 'SHARD-*.npy', FILE.safetensors, NAME=FILE.npy (repeated) or a folder of images")
          ->type_name("DATA")
          ->allow_extra_args(false);
  command.add_option("--size", options.size, "Images: the size to which they are resized")->type_name("WxH");
  command.add_option("--mean", options.mean, "Images: subtracted from the pixels 0..255, by channel")
      ->type_name("A,B,C");
  command.add_option("--std", options.std, "Images: the divisor after that, by channel")->type_name("A,B,C");
  command.add_option("--layout", options.layout, "Images: nchw (default) or nhwc")
      ->check(CLI::IsMember({"nchw", "nhwc"}));
  command.add_option("--channels", options.channels, "Images: rgb (default) or bgr")
      ->check(CLI::IsMember({"rgb", "bgr"}));
  return data;
}

std::unique_ptr<Samples> open_data(const DataOptions &options, const qmodel *model,
                                   const std::set<size_t> &with_state) {
  if (qmodel_input_count(model) == with_state.size())
    throw Failure(with_state.empty() ? "the model has no inputs to feed" : "--state leaves no input for --data");
  std::vector<Source> sources;
  for (const std::string &word : options.sources) sources.push_back(source_of(word, model));
  const Source &first = sources.front();
  if (sources.size() == 1 && !first.input && std::filesystem::is_directory(first.path))
    return open_images(first.path, options, model);
  for (const auto &[name, value] : {std::pair<const char *, const std::string &>{"--size", options.size},
                                    {"--mean", options.mean},
                                    {"--std", options.std},
                                    {"--layout", options.layout},
                                    {"--channels", options.channels}})
    if (!value.empty()) throw UsageError(std::string(name) + " is for images, and " + first.path + " is not a folder");
  return std::make_unique<ArraySamples>(arrays_of(sources, model, with_state), model, with_state);
}

size_t fixed_batch(const qmodel *model) {
  const int64_t *shape = qmodel_input_rank(model, 0) > 0 ? qmodel_input_shape(model, 0) : nullptr;
  return shape != nullptr && shape[0] > 0 ? static_cast<size_t>(shape[0]) : 0;
}

size_t batch_size(const qmodel *model, const Samples &samples, size_t wanted) {
  if (samples.unbatched()) {
    if (wanted > 1) throw Failure("the model takes one sample at a time: its input has no batch axis for --batch");
    return 1;
  }
  const size_t fixed = fixed_batch(model);
  const size_t batch = wanted > 0 ? wanted : std::max<size_t>(fixed, 1);
  if (batch == fixed && samples.count() % batch != 0)
    throw Failure("the model fixes its batch at " + std::to_string(fixed) + ", of which " +
                  std::to_string(samples.count()) + " samples are not a multiple");
  return batch;
}

}  // namespace tool
