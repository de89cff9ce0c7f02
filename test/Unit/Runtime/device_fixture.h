#ifndef BOWLINE_TEST_UNIT_RUNTIME_DEVICE_FIXTURE_H_
#define BOWLINE_TEST_UNIT_RUNTIME_DEVICE_FIXTURE_H_

// Code, kernels and memory for tests of any device.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/hal/device.h"
#include "test/Unit/Plan/fixture_image.h"
#include "test/Unit/Runtime/ptx_fixture.h"

namespace bowline::testing {

// Generated code for a device: fixture_increment adds 1 to each of `extent` floats.
struct Fixture {
  std::string format;
  std::vector<uint8_t> image;
  hal::Geometry over_extent;
  std::vector<hal::Geometry> refused;
};

inline Fixture FixtureOf(const hal::Device& device, int64_t extent) {
  if (device.name() == "cuda") {
    const hal::Grid good = {{3, 1, 1}, {64, 1, 1}, 0, {static_cast<uint64_t>(extent)}};
    const auto with = [&](auto change) {
      hal::Grid bad = good;
      change(bad);
      return hal::Geometry(bad);
    };
    return {"ptx",
            PtxFixture(),
            good,
            {hal::Geometry(), hal::Geometry(hal::Extent{extent}), with([](hal::Grid& g) { g.blocks[0] = 0; }),
             with([](hal::Grid& g) { g.blocks[1] = 65536; }), with([](hal::Grid& g) { g.threads[2] = 0; }),
             with([](hal::Grid& g) { g.threads = {1024, 2, 1}; }), with([](hal::Grid& g) { g.shared_bytes = 1 << 30; }),
             with([](hal::Grid& g) { g.constants.resize(3); })}};
  }
  return {"elf",
          FixtureImage(),
          hal::Extent{extent},
          {hal::Geometry(), hal::Geometry(hal::Extent{0}), hal::Geometry(hal::Extent{-1})}};
}

inline kernels::Signature Fill(double value, int64_t count) {
  kernels::Signature signature;
  signature.kernel = "fill";
  signature.attributes.push_back({"value", {}, {value}, ""});
  signature.arguments.push_back({kernels::Access::kWrite, kernels::DType::kF32, {count}});
  signature.threads = 2;
  return signature;
}

inline std::vector<float> Floats(const hal::Allocation& memory, size_t offset, size_t count) {
  std::vector<float> values(count);
  const absl::Status status = memory.Read(offset, {reinterpret_cast<uint8_t*>(values.data()), count * sizeof(float)});
  if (!status.ok()) values.assign(count, -12345);
  return values;
}

inline void WriteFloats(hal::Allocation& memory, size_t offset, const std::vector<float>& values) {
  memory.Write(offset, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)}).IgnoreError();
}

inline constexpr hal::MemorySpace kSpaces[] = {hal::MemorySpace::kDevice, hal::MemorySpace::kPinnedHost};

// Fresh memory is undefined.
inline std::unique_ptr<hal::Allocation> AllocateZeros(hal::Device& device, size_t bytes,
                                                      hal::MemorySpace space = hal::MemorySpace::kDevice) {
  absl::StatusOr<std::unique_ptr<hal::Allocation>> memory = device.Allocate(bytes, space);
  if (!memory.ok() || !(*memory)->Write(0, std::vector<uint8_t>(bytes, 0)).ok()) return nullptr;
  return *std::move(memory);
}

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_RUNTIME_DEVICE_FIXTURE_H_
