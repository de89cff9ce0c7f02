#ifndef BOWLINE_TEST_UNIT_KERNELS_CUDA_EMULATION_H_
#define BOWLINE_TEST_UNIT_KERNELS_CUDA_EMULATION_H_

// Runs the program that a CUDA device would execute for a signature on the emulator.

#include "kernels/cuda/emulator/emulator.h"
#include "test/Unit/Kernels/stored_testing.h"

namespace bowline::kernels::testing {

// Bytes at a multiple of 256 and of no higher power of two, between guards that are checked at the end.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t bytes) : bytes_(bytes), memory_(bytes + 2 * kGuard + 1024, kPoison) {
    auto at = reinterpret_cast<uintptr_t>(memory_.data()) + kGuard;
    at += (512 - at % 512) % 512 + 256;
    data_ = reinterpret_cast<unsigned char*>(at);
  }
  void* data() { return data_; }
  bool Untouched() const {
    return std::all_of(data_ - kGuard, data_, [](unsigned char byte) { return byte == kPoison; }) &&
           std::all_of(data_ + bytes_, data_ + bytes_ + kGuard, [](unsigned char byte) { return byte == kPoison; });
  }

 private:
  static constexpr size_t kGuard = 512;
  static constexpr unsigned char kPoison = 0xFF;  // of which both types of numbers make NaN

  size_t bytes_;
  std::vector<unsigned char> memory_;
  unsigned char* data_;
};

// Once, with blocks and threads in the order of `seed`.
inline void EmulateOnce(const Signature& signature, const std::vector<void*>& arguments, uint64_t seed) {
  const absl::StatusOr<cuda::KernelProgram> program = cuda::ProgramOf(signature);
  ASSERT_TRUE(program.ok()) << program.status();
  DeviceBuffer scratch(program->scratch_bytes);
  std::vector<DeviceBuffer> buffers;
  std::vector<void*> addresses;
  buffers.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TensorSpec& spec = signature.arguments[i];
    addresses.push_back(buffers.emplace_back(spec.ByteCount()).data());
    if (spec.access != Access::kWrite) std::memcpy(addresses[i], arguments[i], spec.ByteCount());
  }
  const absl::Status status = emulator::Execute(*program, addresses, scratch.data(), seed);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(scratch.Untouched()) << "wrote beyond its scratch";
  for (size_t i = 0; i < arguments.size(); ++i) {
    EXPECT_TRUE(buffers[i].Untouched()) << "wrote beyond argument " << i;
    const size_t bytes = signature.arguments[i].ByteCount();
    if (signature.arguments[i].access != Access::kRead) {
      std::memcpy(arguments[i], addresses[i], bytes);
    } else {
      EXPECT_EQ(std::memcmp(arguments[i], addresses[i], bytes), 0) << "wrote to argument " << i;
    }
  }
}

// Twice, in different orders of blocks and threads, which may not change a bit.
inline void Emulate(const Signature& signature, const std::vector<void*>& arguments) {
  ASSERT_EQ(arguments.size(), signature.arguments.size());
  std::vector<std::vector<unsigned char>> first;
  EmulateOnce(signature, arguments, 1);
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* bytes = static_cast<const unsigned char*>(arguments[i]);
    first.emplace_back(bytes, bytes + signature.arguments[i].ByteCount());
  }
  EmulateOnce(signature, arguments, 2);
  for (size_t i = 0; i < arguments.size(); ++i) {
    EXPECT_EQ(std::memcmp(arguments[i], first[i].data(), first[i].size()), 0)
        << "argument " << i << " depends on the order of threads";
  }
}

}  // namespace bowline::kernels::testing

#endif  // BOWLINE_TEST_UNIT_KERNELS_CUDA_EMULATION_H_
