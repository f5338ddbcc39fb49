// SPDX-License-Identifier: Apache-2.0
#include "shared/dataless.hpp"

#include <nlohmann/json.hpp>

#include "shared/checks.hpp"

namespace tool {

void add_dataless_options(CLI::App &command, DatalessOptions &options) {
  CLI::Option *dynamic = command.add_flag(
      "--dynamic", options.dynamic,
      "Without samples: Gemm and MatMul quantize their input at every run, LSTM, GRU and RNN get int8 weights");
  command.add_flag("--dynamic-conv", options.convolutions, "With --dynamic: Conv does so too")->needs(dynamic);
  command
      .add_option("--granularity", options.granularity,
                  "With --dynamic: what has a scale of its own, each row of an input (default) or the whole tensor")
      ->check(CLI::IsMember({"row", "tensor"}))
      ->needs(dynamic);
  CLI::Option *weights =
      command
          .add_option(
              "--weights-only", options.weights,
              "Store small weights, and compute in float; with --data int4 is rounded so that outputs stay near")
          ->type_name("int8|int4")
          ->check(CLI::IsMember({"int8", "int4"}))
          ->excludes(dynamic);
  command
      .add_option("--block", options.block, "With --weights-only: N weights share a scale (default: a whole channel)")
      ->type_name("N")
      ->check(positive_count())
      ->needs(weights);
  for (const char *name : {"--data", "--samples", "--plain", "--bias-correction", "--no-bias-correction", "--adaround",
                           "--target-sqnr", "--target-top1", "--report"})
    command.get_option(name)->excludes(dynamic);
  for (const char *name :
       {"--calibration", "--observer", "--equalize", "--no-equalize", "--absorb-bias", "--smooth", "--auto"})
    command.get_option(name)->excludes(dynamic)->excludes(weights);
  command.get_option("--config")->excludes(weights);
}

std::string what_is_dynamic(const qmodel *model) {
  const Blob blob = make<Blob>(qmodel_inspect, model);
  const auto *text = static_cast<const char *>(qblob_data(blob.get()));
  const auto graph = nlohmann::json::parse(text, text + qblob_size(blob.get()));
  size_t products = 0, convolutions = 0, others = 0;
  for (const auto &node : graph.at("nodes")) {
    const auto op = node.at("op").get<std::string>();
    products += op == "DynamicQuantizeMatMul";
    convolutions += op == "Conv";
    others += op == "LSTM" || op == "GRU" || op == "RNN" || op == "Gather";
  }
  if (products + others == 0)
    throw Failure(
        "the model has no MatMul, Gemm or recurrent layer with constant weights, which is all that is quantized "
        "without "
        "samples; --data gives some");
  std::string said = "no samples given, so " + std::to_string(products) +
                     (products == 1 ? " product quantizes its" : " products quantize their") + " input at every run";
  if (convolutions > 0)
    said += " and " + std::to_string(convolutions) + (convolutions == 1 ? " convolution stays" : " convolutions stay") +
            " in float, which --data changes";
  return said;
}

void set_weights_only(qconfig *config, const DatalessOptions &options) {
  const Attrs settings = make<Attrs>(qattrs_create);
  check(qattrs_set_string(settings.get(), "mode", "weights_only"));
  check(qattrs_set_string(settings.get(), "weight_dtype", options.weights.c_str()));
  if (options.block > 0) {
    check(qattrs_set_string(settings.get(), "weight_scheme", "per_block_symmetric"));
    check(qattrs_set_int(settings.get(), "block_size", options.block));
  }
  check(qconfig_set(config, "*", settings.get()));
}

Model quantize_without_data(const qmodel *model, const qconfig *config, const DatalessOptions &options) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  if (options.dynamic) {
    check(qattrs_set_int(attrs.get(), "conv", options.convolutions));
    if (!options.granularity.empty()) check(qattrs_set_string(attrs.get(), "granularity", options.granularity.c_str()));
    return make<Model>(qmodel_quantize_dynamic, model, config, attrs.get());
  }
  check(qattrs_set_string(attrs.get(), "dtype", options.weights.c_str()));
  check(qattrs_set_int(attrs.get(), "block_size", options.block));
  return make<Model>(qmodel_quantize_weights, model, attrs.get());
}

}  // namespace tool
