#include "test/Unit/Runtime/card_runner.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/drivers/builtin_drivers.h"

namespace bowline::testing {
namespace {

constexpr size_t kUnit = 256;  // alignment of arguments, and bytes of a guard
constexpr uint8_t kGuard = 0xff;

size_t Aligned(size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

}  // namespace

absl::StatusOr<std::unique_ptr<CardRunner>> CardRunner::Create(std::map<std::string, std::string> settings) {
  std::unique_ptr<CardRunner> runner(new CardRunner());
  hal::DeviceOptions options;
  options.settings = std::move(settings);
  BOWLINE_ASSIGN_OR_RETURN(runner->device_, AllDrivers("").CreateDevice("cuda", options));
  BOWLINE_ASSIGN_OR_RETURN(runner->stream_, runner->device_->CreateStream(hal::StreamMode::kInline));
  return runner;
}

absl::Status CardRunner::RunOnce(const kernels::Signature& signature, const hal::Launchable& kernel,
                                 const std::vector<size_t>& places, std::vector<uint8_t>& memory) {
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<hal::Allocation> allocation, device_->Allocate(memory.size()));
  BOWLINE_RETURN_IF_ERROR(allocation->Write(0, memory));
  std::vector<hal::DeviceAddress> addresses;
  for (const size_t place : places) addresses.push_back(allocation->address() + place);
  const hal::DeviceAddress scratch = addresses.back();
  addresses.pop_back();
  const hal::Geometry geometry;
  BOWLINE_RETURN_IF_ERROR(stream_->Launch(kernel, geometry, addresses, scratch));
  BOWLINE_RETURN_IF_ERROR(stream_->Synchronize());
  return allocation->Read(0, absl::MakeSpan(memory));
}

void CardRunner::Run(const kernels::Signature& signature, const std::vector<void*>& arguments) {
  const auto kernel = device_->CreateKernel(signature);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  ASSERT_EQ(arguments.size(), signature.arguments.size());
  std::vector<size_t> places, sizes;
  size_t end = kUnit;
  const auto take = [&](size_t bytes) {
    places.push_back(end);
    sizes.push_back(bytes);
    end += Aligned(bytes) + kUnit;
  };
  for (const kernels::TensorSpec& spec : signature.arguments) take(spec.ByteCount());
  take((*kernel)->ScratchBytes());
  std::vector<uint8_t> before(end, kGuard);
  for (size_t i = 0; i < arguments.size(); ++i) std::memcpy(before.data() + places[i], arguments[i], sizes[i]);
  std::vector<uint8_t> once = before, twice = before;
  const absl::Status first = RunOnce(signature, **kernel, places, once);
  ASSERT_TRUE(first.ok()) << first;
  const absl::Status second = RunOnce(signature, **kernel, places, twice);
  ASSERT_TRUE(second.ok()) << second;
  size_t checked = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    ASSERT_TRUE(std::equal(once.begin() + checked, once.begin() + places[i], before.begin() + checked))
        << "wrote before argument " << i << " (the last one is the scratch)";
    checked = places[i] + sizes[i];
    if (i == arguments.size()) break;
    if (signature.arguments[i].access == kernels::Access::kRead) {
      ASSERT_EQ(std::memcmp(once.data() + places[i], before.data() + places[i], sizes[i]), 0)
          << "wrote into argument " << i << ", which is read";
    }
    ASSERT_EQ(std::memcmp(once.data() + places[i], twice.data() + places[i], sizes[i]), 0)
        << "argument " << i << " has other bits in a second launch";
    std::memcpy(arguments[i], once.data() + places[i], sizes[i]);
  }
  ASSERT_TRUE(std::equal(once.begin() + checked, once.end(), before.begin() + checked)) << "wrote behind its scratch";
}

CardRunner* TheCard(std::string* reason) {
  static const auto* const made =
      new absl::StatusOr<std::unique_ptr<CardRunner>>(CardRunner::Create({{"attention", "own"}}));
  if (made->ok()) return (*made)->get();
  *reason = std::string(made->status().message());
  return nullptr;
}

void CardTest::SetUp() {
  std::string reason;
  card_ = TheCard(&reason);
  if (card_ != nullptr) return;
  if (std::getenv("BOWLINE_REQUIRE_CARD") != nullptr) FAIL() << reason;
  GTEST_SKIP() << reason;
}

}  // namespace bowline::testing
