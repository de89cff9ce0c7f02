#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_CARD_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_CARD_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/drivers/cuda/card/cuda_api.h"
#include "runtime/drivers/cuda/card/cuda_clock.h"

namespace bowline {

// A card, as all devices of this process that use it share it: its primary context, the image of the kernels, the
// handle of cuBLASLt. It lives until the process ends, because threads keep the context that they made current.
class CudaCard {
 public:
  // Opens card `number`, or the one that falls to the rank. Returns kInvalidArgument for a number that no card has.
  static absl::StatusOr<CudaCard*> Open(std::optional<uint64_t> number, int rank);

  const CudaApi& api() const { return *api_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  const std::string& name() const { return name_; }
  // The card's UUID, which differs from those of all other cards, on all machines.
  const std::array<uint8_t, 16>& identity() const { return identity_; }
  // The most shared memory that a block may ask for.
  int shared_bytes() const { return shared_bytes_; }
  // Lower numbers are more urgent.
  int lowest_priority() const { return lowest_priority_; }
  int highest_priority() const { return highest_priority_; }

  // Makes the context that of the calling thread. Every call of the HAL begins with it.
  absl::Status MakeCurrent() const;

  // A function of the image of kernels that this driver contains. Returns kNotFound naming it.
  absl::StatusOr<CUfunction> KernelFunction(const std::string& name);

  struct Blas {
    const CublasLtApi* api = nullptr;
    cublasLtHandle_t handle = nullptr;
  };
  // The handle of cuBLASLt. The first call looks for the library in `folders`.
  absl::StatusOr<Blas> OpenBlas(const std::vector<std::string>& folders);

  // The clock that converts times of this card into the host's.
  CudaClock& clock() { return *clock_; }

 private:
  explicit CudaCard(const CudaApi* api) : api_(api) {}

  absl::Status Initialise(int number);

  const CudaApi* api_;
  CUcontext context_ = nullptr;
  std::string name_;
  std::array<uint8_t, 16> identity_ = {};
  int major_ = 0, minor_ = 0, shared_bytes_ = 0, lowest_priority_ = 0, highest_priority_ = 0;
  std::unique_ptr<CudaClock> clock_;
  std::mutex mutex_;  // guards the members below
  CUmodule kernels_ = nullptr;
  std::map<std::string, CUfunction> functions_;
  Blas blas_;
};

// Loads a module from memory. Returns kInvalidArgument with the loader's message if that fails.
absl::StatusOr<CUmodule> LoadModule(const CudaApi& api, const void* image, absl::string_view what);

// Loads the function now, not at its first launch. Returns kNotFound, naming the function, if there is none.
absl::StatusOr<CUfunction> FindFunction(const CudaApi& api, CUmodule module, const std::string& name);

// The bytes of each parameter of a function.
absl::StatusOr<std::vector<size_t>> ParameterBytes(const CudaApi& api, CUfunction function);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_CARD_H_
