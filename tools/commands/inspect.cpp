// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>

#include "commands/commands.hpp"
#include "data/array.hpp"
#include "shared/json.hpp"
#include "shared/model.hpp"

namespace tool {

namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions {
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
  if (int8 == 0) return;
  if (model.at("float_nodes").empty()) std::printf("left in float: none\n");
  for (const Json &node : model.at("nodes"))
    if (const std::string reason = text(node, "reason"); !reason.empty())
      std::printf("%s %s %s: %s\n",
                  text(node, "dtype") == "int8" ? "slow:" : "left in float:", text(node, "op").c_str(),
                  text(node, "name").c_str(), reason.c_str());
}

/// What helps where a file calls an operator of that domain which the library does not have.
const char *advice(const std::string &op, const std::string &domain) {
  if (op.starts_with("Sequence") || op.ends_with("Sequence"))
    return "sequences are supported where constants say the positions of their items: export without a loop over them";
  if (op.starts_with("String") || op.find("Tokenizer") != std::string::npos || op == "RegexFullMatch")
    return "works on text: do this before the model runs, and export the rest";
  if (op == "ImageDecoder") return "reads an image file: do this before the model runs, and export the rest";
  if (op == "Gradient") return "is for training by other programs: export the network alone";
  if (domain == "ai.onnx") return "export for an older opset, or write it with other operators in the network";
  if (domain == "com.microsoft.nchwc")
    return "is a layer laid out for one CPU by ONNX Runtime: save the file with at most its extended optimizations";
  if (domain == "com.microsoft")
    return "was fused by ONNX Runtime: take the file from before its optimizer, or export without optimization";
  if (domain == "ai.onnx.ml")
    return "belongs to a classical model: run it before or after the network, and export the rest";
  return "register it in the program (qop_register), or put its function (FunctionProto) into the file";
}

/// The operators that the message of a refused model names: the same table as for one that loads.
bool print_unsupported(const std::string &message, bool as_json) {
  static const std::regex kEntry(
      R"((\w+) \(domain ([^,()]+), (?:opset (-?\d+)|not imported)\) of (?:(\d+) nodes?|node "))");
  Json found = Json::array();
  for (auto at = std::sregex_iterator(message.begin(), message.end(), kEntry); at != std::sregex_iterator(); ++at) {
    const std::string op = (*at)[1], domain = (*at)[2];
    found.push_back({{"op", op},
                     {"domain", domain},
                     {"opset", (*at)[3].matched ? Json(std::stoll((*at)[3])) : Json()},
                     {"nodes", (*at)[4].matched ? std::stoi((*at)[4]) : 1},
                     {"advice", advice(op, domain)}});
  }
  if (found.empty()) return false;
  if (as_json) return print_json(stdout, {{"unsupported", found}}), true;
  std::printf("%-28s %-20s %5s  %s\n", "not supported", "domain", "nodes", "what to do");
  for (const Json &entry : found)
    std::printf("%-28s %-20s %5s  %s\n", text(entry, "op").c_str(), text(entry, "domain").c_str(),
                text(entry, "nodes").c_str(), text(entry, "advice").c_str());
  return true;
}

/// A model whose operators are not all supported is shown as far as it is known, and still refused.
Model load_shown(const InspectOptions &options) {
  Model model;
  qmodel *handle = nullptr;
  const qstatus status = qmodel_load(&handle, options.file.c_str());
  model.reset(handle);
  if (status == QTN_EUNSUPPORTED) {
    const std::string message = qerror_message();
    print_unsupported(message, options.json);
    throw Failure(message);
  }
  check(status);
  return model;
}

void inspect(const InspectOptions &options) {
  const bool arrays = options.file.ends_with(".npy") || options.file.ends_with(".safetensors");
  const Blob text = arrays ? make<Blob>(qtensor_inspect, options.file.c_str())
                           : make<Blob>(qmodel_inspect, load_shown(options).get());
  const Json json = Json::parse(text_of(text.get()));
  if (options.json)
    print_json(stdout, json);
  else if (json.contains("tensors"))
    print_values("tensor", json["tensors"]);
  else
    print_model(json);
}

}  // namespace

void add_inspect(CLI::App &app) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::App &command = *app.add_subcommand("inspect", "Show what is in a model, .npy or .safetensors file");
  command.add_option("FILE", options->file, "The file")->required();
  command.add_flag("--json", options->json, "Print one JSON object");
  command.callback([options] { inspect(*options); });
}

}  // namespace tool
