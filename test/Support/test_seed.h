#ifndef BOWLINE_TEST_SUPPORT_TEST_SEED_H_
#define BOWLINE_TEST_SUPPORT_TEST_SEED_H_

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace bowline {

// The seed of all random choices of a test, and their only source: equal in every run, so that `make check` says the
// same of equal code. `make check-nightly` draws another one and hands it over in BOWLINE_TEST_SEED.
inline uint32_t TestSeed() {
  const char* const given = std::getenv("BOWLINE_TEST_SEED");
  if (given == nullptr) return 1;
  const std::string_view text = given;
  uint32_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) {
    std::fprintf(stderr, "BOWLINE_TEST_SEED=%s is not a number below 2^32; unset it, or give what a run printed\n",
                 given);
    std::exit(1);
  }
  return seed;
}

}  // namespace bowline

#endif  // BOWLINE_TEST_SUPPORT_TEST_SEED_H_
