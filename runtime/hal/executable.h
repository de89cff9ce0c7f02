#ifndef BOWLINE_RUNTIME_HAL_EXECUTABLE_H_
#define BOWLINE_RUNTIME_HAL_EXECUTABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/status.h"

namespace bowline::hal {

// Divides a launch over the indices [0, indices) into pieces that together cover each index once.
struct Extent {
  int64_t indices = 1;
};

// A grid of thread blocks; the arrays hold the extents of x, y and z. The threads of a block share `shared_bytes` of
// memory, undefined at first. The kernel gets `constants` after its arguments, each as the low bits of a word.
struct Grid {
  std::array<uint32_t, 3> blocks = {1, 1, 1};
  std::array<uint32_t, 3> threads = {1, 1, 1};
  uint32_t shared_bytes = 0;
  std::vector<uint64_t> constants = {};
};

// The division of a launch into pieces or blocks. std::monostate for a kernel that divides its launches itself, as the
// kernels of the registry do.
using Geometry = std::variant<std::monostate, Extent, Grid>;

// A kernel that a stream can launch: a symbol of an image, or a kernel of the registry.
class Launchable {
 public:
  virtual ~Launchable() = default;

  // The bytes of workspace that each launch needs; 0 for generated code. The workspace is aligned as the device's
  // target requires for buffers (targets/target.h): to 64 bytes on CPUs, to 256 bytes on NVIDIA's cards.
  virtual size_t ScratchBytes() const { return 0; }

  // A note for the user about the way in which the device computes the kernel: one sentence without a full stop. Empty
  // if there is nothing to say.
  virtual std::string Note() const { return ""; }

  // Returns kInvalidArgument, naming the geometry that the kernel takes, unless it can be launched with this one.
  // Called when a plan is bound, not for each launch.
  virtual absl::Status CheckGeometry(const Geometry& geometry) const = 0;
};

// The estimated work of one launch: floating-point operations, and bytes read and written.
struct Work {
  double flops = 0, bytes = 0;
};

// Machine code that was loaded into a device.
class Executable {
 public:
  virtual ~Executable() = default;

  // Creates the launchable of a symbol. `work` is the work of one launch, from which the device chooses the number of
  // pieces of a launch; zeros mean unknown. Returns kNotFound, naming the symbol.
  virtual absl::StatusOr<std::unique_ptr<Launchable>> Resolve(const std::string& symbol, Work work = {}) const = 0;

  // The address of a function that kernels of the registry call, such as an epilogue. Null on a device that runs
  // nothing. Returns kNotFound, naming the symbol.
  virtual absl::StatusOr<const void*> ResolveFunction(const std::string& symbol) const = 0;

  // Contract
  //   A Launchable must not outlive its Executable, or an Executable whose functions it calls.
  //   Loading an image runs its initialisers, so an image needs the same trust as the plan that contains it.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_EXECUTABLE_H_
