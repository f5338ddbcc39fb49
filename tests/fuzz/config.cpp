// SPDX-License-Identifier: Apache-2.0
// Configurations: the text, what it means for a network, and what is written of it again.
#include "network.hpp"
#include "oracle.hpp"

namespace fuzz {
namespace {

void test(const std::uint8_t *data, std::size_t size) {
  static const File file("x.json"), copy("copy.json");
  static const Model network = small_network();
  file.write({data, size});
  const Config config = make<Config>(qconfig_load, file.path());
  if (!config) return;
  must(qconfig_save(config.get(), copy.path()), "writing what was read");
  const std::vector<std::uint8_t> once = copy.read();
  const Config again = make<Config>(qconfig_load, copy.path());
  require(again != nullptr, std::string("reading what was written: ") + qerror_message());
  must(qconfig_save(again.get(), copy.path()), "writing it again");
  require(copy.read() == once, "written twice, it is another text");

  const Model prepared = make<Model>(qmodel_prepare, network.get(), config.get(), QTN_PTQ);
  if (!prepared) return;
  std::vector<Tensor> inputs;
  inputs.push_back(network_input(2, size));
  const qtensor *input = inputs[0].get();
  if (!good(qmodel_calibrate(prepared.get(), &input, 1))) return;
  const Model converted = make<Model>(qmodel_convert, prepared.get(), nullptr);
  Dice dice(size);
  if (converted) check_runs(converted.get(), inputs, dice);
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{512} << 20, fuzz::test)
