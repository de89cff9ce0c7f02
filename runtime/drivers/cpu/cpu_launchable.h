#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_CPU_LAUNCHABLE_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_CPU_LAUNCHABLE_H_

#include "absl/types/span.h"
#include "runtime/hal/executable.h"

namespace bowline {

// A kernel that a thread of the host can run.
class CpuLaunchable : public hal::Launchable {
 public:
  virtual void Run(const hal::Geometry& geometry, absl::Span<void* const> arguments, void* scratch) const = 0;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_CPU_LAUNCHABLE_H_
