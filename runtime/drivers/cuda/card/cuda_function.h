#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_FUNCTION_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_FUNCTION_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/drivers/cuda/card/cuda_card.h"

namespace bowline {

// A function of an image with the limits of its launches.
class CudaFunction {
 public:
  static absl::StatusOr<CudaFunction> Create(CudaCard* card, CUfunction function, std::string name);

  const std::string& name() const { return name_; }
  // The size of each parameter in bytes.
  const std::vector<size_t>& parameters() const { return parameters_; }

  // Returns kInvalidArgument, naming the function and the limit, if it cannot be launched so. Reserves shared memory
  // beyond the amount that every launch may have.
  absl::Status Prepare(const std::array<uint32_t, 3>& blocks, const std::array<uint32_t, 3>& threads,
                       uint32_t shared_bytes) const;

  // `parameters` points to one value for each parameter of the function.
  absl::Status Launch(CUstream stream, const std::array<uint32_t, 3>& blocks, const std::array<uint32_t, 3>& threads,
                      uint32_t shared_bytes, void** parameters) const;

 private:
  CudaFunction(CudaCard* card, CUfunction function, std::string name)
      : card_(card), function_(function), name_(std::move(name)) {}

  CudaCard* card_;
  CUfunction function_;
  std::string name_;
  std::vector<size_t> parameters_;
  int most_threads_ = 0;
  int static_shared_bytes_ = 0;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_FUNCTION_H_
