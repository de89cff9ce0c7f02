#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_LAUNCH_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_LAUNCH_H_

#include <string>

#include "absl/types/span.h"
#include "kernels/cuda/kernel_program.h"
#include "runtime/drivers/cuda/card/cuda_function.h"
#include "runtime/drivers/cuda/card/cuda_launchable.h"
#include "runtime/hal/memory.h"

namespace bowline {

// Returns the value of a parameter in a launch with these arguments and this workspace.
uint64_t ValueOf(const kernels::cuda::Parameter& parameter, absl::Span<const hal::DeviceAddress> arguments,
                 hal::DeviceAddress scratch);

// A launch of a function of the driver's image.
class CudaLaunch {
 public:
  // Makes a launch for `kernel`, which has so many arguments. Returns kInternal if function and launch do not fit.
  static absl::StatusOr<CudaLaunch> Create(CudaCard* card, const std::string& kernel,
                                           const kernels::cuda::DeviceLaunch& launch, size_t arguments);

  absl::Status Submit(CUstream stream, absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch,
                      LaunchParameters& parameters) const;

 private:
  CudaLaunch(CudaFunction function, kernels::cuda::DeviceLaunch launch)
      : function_(std::move(function)), launch_(std::move(launch)) {}

  CudaFunction function_;
  kernels::cuda::DeviceLaunch launch_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_LAUNCH_H_
