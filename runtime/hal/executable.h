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

// A launch is called over [0, indices) in pieces that together cover each index once.
struct Extent {
  int64_t indices = 1;
};

// A launch of blocks of threads; the extents are those of x, y and z. The threads of a block share `shared_bytes` of
// memory, undefined at first. `constants` follow the arguments, each as the low bits of a word.
struct Grid {
  std::array<uint32_t, 3> blocks = {1, 1, 1};
  std::array<uint32_t, 3> threads = {1, 1, 1};
  uint32_t shared_bytes = 0;
  std::vector<uint64_t> constants = {};
};

// The division of a launch into pieces or blocks; nothing (monostate) for a kernel that divides its launches itself, as
// those of the registry do.
using Geometry = std::variant<std::monostate, Extent, Grid>;

// Something that a stream can launch: a symbol of an image, or a kernel of the registry.
class Launchable {
 public:
  virtual ~Launchable() = default;

  // The bytes of workspace that every launch needs. It begins at a multiple of the alignment that the device's target
  // states for buffers (targets/target.h): 64 bytes on CPUs, 256 on NVIDIA's cards. 0 for generated code.
  virtual size_t ScratchBytes() const { return 0; }

  // A note for the user about the way in which the device computes the kernel: one sentence without a full stop. Empty
  // if there is nothing to say.
  virtual std::string Note() const { return ""; }

  // kInvalidArgument, naming the geometry that it takes, unless it can be launched with this one. Called when a plan is
  // bound, not in a launch.
  virtual absl::Status CheckGeometry(const Geometry& geometry) const = 0;
};

// An estimate of one launch: floating-point operations, and bytes read and written.
struct Work {
  double flops = 0, bytes = 0;
};

// Machine code that was loaded into a device.
class Executable {
 public:
  virtual ~Executable() = default;

  // The launchable of a symbol. `work` is the work of one launch, by which a device decides into how many pieces it
  // divides one; zeros if it is not known. kNotFound naming the symbol.
  virtual absl::StatusOr<std::unique_ptr<Launchable>> Resolve(const std::string& symbol, Work work = {}) const = 0;

  // The address of code that kernels of the registry call, such as an epilogue; null on a device that runs nothing.
  // kNotFound naming the symbol.
  virtual absl::StatusOr<const void*> ResolveFunction(const std::string& symbol) const = 0;

  // Contract
  //   A Launchable must not outlive its Executable, nor one whose functions it calls.
  //   Loading an image runs its initialisers: an image is trusted as the plan that contains it is.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_EXECUTABLE_H_
