#ifndef BOWLINE_TEST_SUPPORT_TEST_DRIVER_H_
#define BOWLINE_TEST_SUPPORT_TEST_DRIVER_H_

#include <cstdlib>
#include <string>

namespace bowline {

// The driver that executes the plans of tests, as SessionOptions has it, where the test names none: empty, that is the
// plan's own, or the value of BOWLINE_TEST_DRIVER. `make check-nightly` says discrete:seed=N, with all that a
// plan means in its events: the same results are expected of it.
inline std::string TestDriver(const std::string& named = "") {
  const char* const given = std::getenv("BOWLINE_TEST_DRIVER");
  return named.empty() && given != nullptr ? given : named;
}

}  // namespace bowline

#endif  // BOWLINE_TEST_SUPPORT_TEST_DRIVER_H_
