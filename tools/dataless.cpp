// SPDX-License-Identifier: Apache-2.0
#include "dataless.hpp"

#include "checks.hpp"

namespace tool {

void add_dataless_options(CLI::App &command, DatalessOptions &options) {
  CLI::Option *dynamic = command.add_flag("--dynamic", options.dynamic,
                                          "Without samples: Gemm and MatMul quantize their input at every run");
  command.add_flag("--dynamic-conv", options.convolutions, "With --dynamic: Conv does so too")->needs(dynamic);
  CLI::Option *weights =
      command.add_option("--weights-only", options.weights, "Without samples: store small weights, and compute in float")
          ->type_name("int8|int4")
          ->check(CLI::IsMember({"int8", "int4"}))
          ->excludes(dynamic);
  command.add_option("--block", options.block, "With --weights-only: N weights share a scale (default: a whole channel)")
      ->type_name("N")
      ->check(positive_count())
      ->needs(weights);
  for (const char *name :
       {"--data", "--calibration", "--observer", "--samples", "--equalize", "--no-equalize", "--plain",
        "--absorb-bias", "--bias-correction", "--no-bias-correction", "--adaround", "--smooth", "--auto", "--target-sqnr", "--report"})
    command.get_option(name)->excludes(dynamic)->excludes(weights);
  command.get_option("--config")->excludes(weights);
}

Model quantize_without_data(const qmodel *model, const qconfig *config, const DatalessOptions &options) {
  const Attrs attrs = make<Attrs>(qattrs_create);
  if (options.dynamic) {
    check(qattrs_set_int(attrs.get(), "conv", options.convolutions));
    return make<Model>(qmodel_quantize_dynamic, model, config, attrs.get());
  }
  check(qattrs_set_string(attrs.get(), "dtype", options.weights.c_str()));
  check(qattrs_set_int(attrs.get(), "block_size", options.block));
  return make<Model>(qmodel_quantize_weights, model, attrs.get());
}

}  // namespace tool
