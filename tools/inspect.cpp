// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "array.hpp"
#include "commands.hpp"
#include "model.hpp"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string file;
  bool json = false;
};

std::string text(const Json &object, const char *key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string dimensions(const Json &value) {
  if (!value.contains("shape") || !value["shape"].is_array()) return "any shape";
  Shape shape;
  for (const Json &extent : value["shape"]) shape.push_back(extent.is_number_integer() ? extent.get<int64_t>() : -1);
  return shape_text(shape);
}

void print_values(const char *what, const Json &values) {
  for (const Json &value : values)
    std::printf("%-9s %-32s %-9s %s\n", what, text(value, "name").c_str(), text(value, "dtype").c_str(),
                dimensions(value).c_str());
}

void print_model(const Json &model) {
  print_values("input", model.at("inputs"));
  print_values("output", model.at("outputs"));
  size_t int8 = 0;
  std::printf("\n%-9s %-8s %-20s %12s %6s  %s\n", "runs in", "weights", "op", "scale", "zero", "node");
  for (const Json &node : model.at("nodes")) {
    int8 += text(node, "dtype") == "int8";
    std::printf("%-9s %-8s %-20s %12.12s %6s  %s\n", text(node, "dtype").c_str(), text(node, "weight_dtype").c_str(),
                text(node, "op").c_str(), text(node, "output_scale").c_str(), text(node, "output_zero_point").c_str(),
                text(node, "name").c_str());
  }
  std::printf("\n%zu nodes, %zu in int8; %s parameters, %s bytes\n", model.at("nodes").size(), int8,
              text(model, "parameters").c_str(), text(model, "parameter_bytes").c_str());
  if (int8 == 0 || !model.contains("float_nodes")) return;
  const Json &left = model["float_nodes"];
  std::printf("left in float: %s", left.empty() ? "none" : "");
  for (size_t i = 0; i < left.size(); ++i)
    std::printf("%s%s", i ? ", " : "",
                left[i].is_string() ? left[i].get<std::string>().c_str() : left[i].dump().c_str());
  std::printf("\n");
}

void inspect(const Options &options) {
  const bool arrays = options.file.ends_with(".npy") || options.file.ends_with(".safetensors");
  const Blob text = arrays ? make<Blob>(qtensor_inspect, options.file.c_str())
                           : make<Blob>(qmodel_inspect, load_model(options.file).get());
  const Json json = Json::parse(text_of(text.get()));
  if (options.json)
    std::printf("%s\n", json.dump().c_str());
  else if (json.contains("tensors"))
    print_values("tensor", json["tensors"]);
  else
    print_model(json);
}

}  // namespace

void add_inspect(CLI::App &app) {
  const auto options = std::make_shared<Options>();
  CLI::App &command = *app.add_subcommand("inspect", "Show what is in a model, .npy or .safetensors file");
  command.add_option("FILE", options->file, "The file")->required();
  command.add_flag("--json", options->json, "Print one JSON object");
  command.callback([options] { inspect(*options); });
}

}  // namespace tool
