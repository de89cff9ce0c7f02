#ifndef BOWLINE_TEST_UNIT_PLAN_FIXTURE_IMAGE_H_
#define BOWLINE_TEST_UNIT_PLAN_FIXTURE_IMAGE_H_

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

namespace bowline::testing {

// The ELF image with the fixture's generated kernels (fixture_kernels.cc). Link bowline_fixture_image. Where the build
// folder is not, BOWLINE_FIXTURE_IMAGE in the environment names the file.
inline const std::vector<uint8_t>& FixtureImage() {
  static const std::vector<uint8_t> image = [] {
    const char* elsewhere = std::getenv("BOWLINE_FIXTURE_IMAGE");
    std::ifstream file(elsewhere != nullptr ? elsewhere : BOWLINE_FIXTURE_IMAGE, std::ios::binary);
    return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
  }();
  return image;
}

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_PLAN_FIXTURE_IMAGE_H_
