// SPDX-License-Identifier: Apache-2.0
// Images, by the code with which the command reads them.
#include "data/images.hpp"
#include "fuzzing.hpp"
#include "shared/handles.hpp"

namespace fuzz {
namespace {

void test(const std::uint8_t *data, std::size_t size) {
  static const File file("image");
  file.write({data, size});
  try {
    const tool::Image image = tool::decode_image(file.path());
    require(image.rgb.size() == 3 * image.width * image.height && !image.rgb.empty(), "an image without its pixels");
  } catch (const tool::Failure &failure) {
    require(std::string(failure.what()).find('\n') == std::string::npos, "a message of several lines");
  }
}

}  // namespace
}  // namespace fuzz

FUZZ_TARGET(std::size_t{64} << 20, fuzz::test)
