// SPDX-License-Identifier: Apache-2.0
// Calibration files: any bytes, and files of a model at hand that were changed.
#include "edits.hpp"
#include "network.hpp"
#include "oracle.hpp"

namespace fuzz {
namespace {

constexpr const char *kObservers[] = {"minmax",         "histogram",      "entropy",    "percentile",        "mse",
                                      "moving_average", "nvidia_entropy", "nvidia_mse", "nvidia_percentile", "max"};

struct PreparedModel {
  Config config;
  std::vector<std::uint8_t> saved;
};

PreparedModel prepare(const qmodel *network, const char *observer, const File &file) {
  PreparedModel p;
  p.config = make<Config>(qconfig_create, "onnx");
  const Attrs attrs = make<Attrs>(qattrs_create);
  must(qattrs_set_string(attrs.get(), "observer", observer), "observer");
  must(qconfig_set(p.config.get(), "*", attrs.get()), "setting an observer");
  const Model prepared = make<Model>(qmodel_prepare, network, p.config.get(), QTN_PTQ);
  const Tensor x = network_input(2, 1);
  const qtensor *input = x.get();
  must(qmodel_calibrate(prepared.get(), &input, 1), "calibrating");
  must(qmodel_save_calibration(prepared.get(), file.path()), "saving");
  p.saved = file.read();
  return p;
}

void test(const std::uint8_t *data, std::size_t size) {
  static const File file("x.qcal"), merged("merged.qcal");
  static const Model network = small_network();
  static PreparedModel known[std::size(kObservers)];
  if (size == 0) return;
  const std::size_t kind = data[0] % std::size(kObservers);
  PreparedModel &p = known[kind];
  if (!p.config) p = prepare(network.get(), kObservers[kind], file);

  file.write(edited(p.saved, data + 1, size - 1));
  const Model prepared = make<Model>(qmodel_prepare, network.get(), p.config.get(), QTN_PTQ);
  const bool loaded = good(qmodel_load_calibration(prepared.get(), file.path()));
  const char *parts[] = {file.path(), file.path()};
  const bool both = good(qmodel_merge_calibrations(merged.path(), parts, 2));
  if (!loaded) return;
  std::vector<Tensor> inputs;
  inputs.push_back(network_input(1, 3));
  Dice dice(size);
  const Model converted = make<Model>(qmodel_convert, prepared.get(), nullptr);
  if (converted) check_runs(converted.get(), inputs, dice);
  if (both) {
    const Model twice = make<Model>(qmodel_prepare, network.get(), p.config.get(), QTN_PTQ);
    if (good(qmodel_load_calibration(twice.get(), merged.path()))) make<Model>(qmodel_convert, twice.get(), nullptr);
  }
  // It goes on with what was loaded.
  const qtensor *input = inputs[0].get();
  if (good(qmodel_calibrate(prepared.get(), &input, 1))) make<Model>(qmodel_convert, prepared.get(), nullptr);
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{512} << 20, fuzz::test)
