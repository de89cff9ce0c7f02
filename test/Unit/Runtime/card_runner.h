#ifndef BOWLINE_TEST_UNIT_RUNTIME_CARD_RUNNER_H_
#define BOWLINE_TEST_UNIT_RUNTIME_CARD_RUNNER_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/hal/device.h"

namespace bowline::testing {

// Whether the card is that of test/Support/cuda_stand_in.
bool IsStandIn();

// An environment variable that the stand-in reads, for as long as it is in scope.
class StandInIs {
 public:
  StandInIs(const char* name, const std::string& value);
  ~StandInIs();
  StandInIs(const StandInIs&) = delete;
  StandInIs& operator=(const StandInIs&) = delete;

 private:
  const char* name_;
};

// Runs kernels of the registry on a card, from and to memory of the host.
class CardRunner {
 public:
  // On the driver 'cuda' with these settings. kUnavailable where there is none, or no card.
  static absl::StatusOr<std::unique_ptr<CardRunner>> Create(std::map<std::string, std::string> settings = {});

  hal::Device& device() { return *device_; }

  // Twice, which must give the same bits. `arguments` are tensors in the host's memory, in the order of the signature.
  // Each lies between guards, as does scratch of exactly the declared size, all of 0xff: a write outside, or
  // into a read-only argument, is a failure of the test.
  void Run(const kernels::Signature& signature, const std::vector<void*>& arguments);

 private:
  CardRunner() = default;

  absl::Status RunOnce(const kernels::Signature& signature, const hal::Launchable& kernel,
                       const std::vector<size_t>& places, std::vector<uint8_t>& memory);

  std::unique_ptr<hal::Device> device_;
  std::unique_ptr<hal::Stream> stream_;
};

// Of the machine, with the driver's default settings, made once for all tests of a program. Null where there is none,
// with the reason.
CardRunner* TheCard(std::string* reason);

// Tests on that card. They are skipped where there is none, or fail with BOWLINE_REQUIRE_CARD in the environment.
class CardTest : public ::testing::Test {
 protected:
  void SetUp() override;

  CardRunner* card_ = nullptr;
};

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_RUNTIME_CARD_RUNNER_H_
