#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_SEPARATE_EPILOGUE_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_SEPARATE_EPILOGUE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/epilogue_program.h"
#include "runtime/drivers/cuda/card/cuda_launch.h"
#include "runtime/drivers/cuda/products/gemm.h"

namespace bowline {

// A product whose epilogue cuBLASLt has no algorithm for: the library's plain product, and functions of the driver's
// image for the rest.
class SeparateEpilogue {
 public:
  // Makes the epilogue of the kernel of that name, which has so many arguments and so much workspace.
  static absl::StatusOr<std::unique_ptr<SeparateEpilogue>> Create(CudaCard* card, const std::string& kernel,
                                                                  const kernels::cuda::LibraryProduct& product,
                                                                  size_t arguments, size_t scratch_bytes,
                                                                  const GemmOptions& options);

  absl::Status Submit(CUstream stream, absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch,
                      LaunchParameters& parameters) const;

 private:
  struct Step {
    const Gemm* product;
    std::array<kernels::cuda::Parameter, 3> addresses;
    CudaLaunch launch;
  };

  SeparateEpilogue() = default;

  std::map<std::pair<int64_t, int64_t>, std::unique_ptr<Gemm>> products_;  // by rows and columns of their tiles
  std::vector<Step> steps_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_SEPARATE_EPILOGUE_H_
