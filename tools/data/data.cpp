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
  ArraySamples(Arrays arrays, const qmodel *model) : arrays_(std::move(arrays)) {
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

  std::vector<Tensor> read(size_t begin, size_t count) const override {
    std::vector<Tensor> tensors(arrays_.size());
    for (size_t i = 0; i < arrays_.size(); ++i) {
      if (!arrays_[i]) continue;
      Tensor rows = arrays_[i]->read(begin, count, types_[i]);
      tensors[i] = unbatched_ ? make<Tensor>(qtensor_select, rows.get(), 0, 0) : std::move(rows);
    }
    return tensors;
  }

 private:
  const Shards &first() const { return *arrays_[first_]; }

  Arrays arrays_;
  size_t first_ = 0;           // that has data
  std::vector<qdtype> types_;  // of the inputs
  bool unbatched_ = false;
};

// The input that "NAME=FILE" names. Names are looked for in the model, because they and paths may hold '=' themselves.
std::optional<size_t> named_input(const std::string &source, const qmodel *model) {
  for (size_t i = 0; i < qmodel_input_count(model); ++i)
    if (source.starts_with(std::string(qmodel_input_name(model, i)) + "=")) return i;
  return std::nullopt;
}

// The array of each file, one behind the other.
Shards joined_arrays(const std::vector<std::string> &paths) {
  std::vector<Array> parts;
  for (const std::string &path : paths) parts.push_back(open_array(path));
  return Shards(std::move(parts));
}

Arrays named_arrays(const std::vector<std::string> &sources, const qmodel *model,
                    const std::set<size_t> &from_elsewhere) {
  Arrays found(qmodel_input_count(model));
  for (const std::string &source : sources) {
    const std::optional<size_t> input = named_input(source, model);
    if (!input) throw Failure("--data " + source + ": is not an input of the model; these are " + input_names(model));
    if (found[*input]) throw UsageError("--data " + source + ": that input has been given already");
    if (from_elsewhere.count(*input) != 0) throw UsageError("--data " + source + ": that input is given by --state");
    found[*input] = joined_arrays(files_of(source.substr(std::string(qmodel_input_name(model, *input)).size() + 1)));
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i] && from_elsewhere.count(i) == 0)
      throw Failure("--data has no file for the input '" + std::string(qmodel_input_name(model, i)) + "'");
  return found;
}

Arrays safetensors_arrays(const std::string &path, const qmodel *model, const std::set<size_t> &from_elsewhere) {
  const std::vector<Array> all = open_arrays(path);
  Arrays arrays(qmodel_input_count(model));
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (from_elsewhere.count(i) != 0) continue;
    const std::string name = qmodel_input_name(model, i);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Array &array) { return array.name == name; });
    if (found == all.end()) throw Failure(path + ": holds no tensor for the input '" + name + "'");
    arrays[i] = Shards({*found});
  }
  return arrays;
}

Arrays npy_array(const std::vector<std::string> &paths, const qmodel *model, const std::set<size_t> &from_elsewhere) {
  Arrays arrays(qmodel_input_count(model));
  if (arrays.size() - from_elsewhere.size() != 1)
    throw Failure(paths.front() + ": is data for one input, and the model has " +
                  std::to_string(arrays.size() - from_elsewhere.size()) + ": " + input_names(model, from_elsewhere) +
                  "; give NAME=FILE.npy for each");
  size_t input = 0;
  while (from_elsewhere.count(input) != 0) ++input;
  arrays[input] = joined_arrays(paths);
  return arrays;
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
                                   const std::set<size_t> &from_elsewhere) {
  if (qmodel_input_count(model) == from_elsewhere.size())
    throw Failure(from_elsewhere.empty() ? "the model has no inputs to feed" : "--state leaves no input for --data");
  const std::string &source = options.sources.front();
  const bool one = options.sources.size() == 1;
  if (one && std::filesystem::is_directory(source)) return open_images(source, options, model);
  for (const auto &[name, value] : {std::pair<const char *, const std::string &>{"--size", options.size},
                                    {"--mean", options.mean},
                                    {"--std", options.std},
                                    {"--layout", options.layout},
                                    {"--channels", options.channels}})
    if (!value.empty()) throw UsageError(std::string(name) + " is for images, and " + source + " is not a folder");
  const auto has_name = [](const std::string &text) {
    return !std::filesystem::exists(text) && text.find('=') != std::string::npos;
  };
  // Files without names would not be told apart by several inputs.
  const bool files = one || qmodel_input_count(model) - from_elsewhere.size() == 1;
  if (!files || std::any_of(options.sources.begin(), options.sources.end(), has_name))
    return std::make_unique<ArraySamples>(named_arrays(options.sources, model, from_elsewhere), model);
  if (one && source.ends_with(".safetensors"))
    return std::make_unique<ArraySamples>(safetensors_arrays(source, model, from_elsewhere), model);
  std::vector<std::string> paths;
  for (const std::string &text : options.sources)
    for (std::string &path : files_of(text)) paths.push_back(std::move(path));
  return std::make_unique<ArraySamples>(npy_array(paths, model, from_elsewhere), model);
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
