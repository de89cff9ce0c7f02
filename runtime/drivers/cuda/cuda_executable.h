#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_EXECUTABLE_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_EXECUTABLE_H_

#include <memory>
#include <string>

#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/hal/executable.h"

namespace bowline {

// An image of a plan: "cubin", machine code of a card, or "ptx", text that the driver compiles. Its functions take the
// arguments, an address each, and then the constants of the grid, each of at most 8 bytes.
class CudaExecutable : public hal::Executable {
 public:
  static bool KnowsFormat(absl::string_view format) { return format == "cubin" || format == "ptx"; }
  static absl::StatusOr<std::unique_ptr<hal::Executable>> Load(CudaCard* card, absl::string_view format,
                                                               absl::Span<const uint8_t> image);

  ~CudaExecutable() override;
  CudaExecutable(const CudaExecutable&) = delete;
  CudaExecutable& operator=(const CudaExecutable&) = delete;

  absl::StatusOr<std::unique_ptr<hal::Launchable>> Resolve(const std::string& symbol, hal::Work work) const override;
  absl::StatusOr<const void*> ResolveFunction(const std::string& symbol) const override;

 private:
  CudaExecutable(CudaCard* card, CUmodule module) : card_(card), module_(module) {}

  CudaCard* card_;
  CUmodule module_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_EXECUTABLE_H_
