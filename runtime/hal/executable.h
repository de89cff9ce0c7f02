#ifndef BOWLINE_RUNTIME_HAL_EXECUTABLE_H_
#define BOWLINE_RUNTIME_HAL_EXECUTABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/status.h"

namespace bowline::hal {

// Something that a stream can launch: a symbol of an image, or a kernel of the registry.
class Launchable {
 public:
  virtual ~Launchable() = default;

  // Workspace that every launch needs, 64-byte aligned. 0 for generated code.
  virtual size_t ScratchBytes() const { return 0; }
};

// An estimate of one launch: floating-point operations, and bytes read and written.
struct Work {
  double flops = 0, bytes = 0;
};

// Machine code that was loaded into a device.
class Executable {
 public:
  virtual ~Executable() = default;

  // The symbol, to be called over [0, parallel_extent) in pieces that together cover each index once. `work` is what
  // one launch does, by which a device decides into how many pieces it divides; zeros where nobody knows.
  // kNotFound naming the symbol.
  virtual absl::StatusOr<std::unique_ptr<Launchable>> Resolve(const std::string& symbol, int64_t parallel_extent,
                                                              Work work = {}) const = 0;

  // The address of code that kernels of the registry call, such as an epilogue; null on a device that runs nothing.
  // kNotFound naming the symbol.
  virtual absl::StatusOr<const void*> ResolveFunction(const std::string& symbol) const = 0;

  // Contract
  //   A Launchable must not outlive its Executable, nor one whose functions it calls.
  //   Loading an image runs its initialisers: an image is trusted as the plan that contains it is.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_EXECUTABLE_H_
