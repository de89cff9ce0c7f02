#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_LAUNCHABLE_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_LAUNCHABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/drivers/cuda/card/cuda_api.h"
#include "runtime/hal/executable.h"
#include "runtime/hal/memory.h"

namespace bowline {

// Room of a stream for the parameters of a launch, which CUDA copies before the launch returns.
class LaunchParameters {
 public:
  void Clear() { words_.clear(); }
  void Add(uint64_t word) { words_.push_back(word); }
  size_t size() const { return words_.size(); }
  // A pointer to each word; a parameter of 4 bytes is the low ones.
  void** Pointers() {
    pointers_.clear();
    for (uint64_t& word : words_) pointers_.push_back(&word);
    return pointers_.data();
  }

 private:
  std::vector<uint64_t> words_;
  std::vector<void*> pointers_;
};

// A kernel that the streams of a card can launch.
class CudaLaunchable : public hal::Launchable {
 public:
  // The name in messages.
  virtual const std::string& name() const = 0;

  // Submits the launch to CUDA. The card's context must be current.
  virtual absl::Status Submit(CUstream stream, const hal::Geometry& geometry,
                              absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch,
                              LaunchParameters& parameters) const = 0;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_LAUNCHABLE_H_
