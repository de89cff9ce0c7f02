#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_CPU_EXECUTABLE_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_CPU_EXECUTABLE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/hal/executable.h"

namespace bowline {

// The interface of generated code: computes iterations [begin, end) of the kernel's parallel extent. `arguments` are
// base addresses in the order of the kernel's arguments in the plan.
using GeneratedKernel = void (*)(void* const* arguments, int64_t begin, int64_t end);

// An ELF shared object, loaded from memory: nothing is written to a disk.
class CpuExecutable : public hal::Executable {
 public:
  static absl::StatusOr<std::unique_ptr<hal::Executable>> Load(absl::Span<const uint8_t> image, int threads);

  ~CpuExecutable() override;
  CpuExecutable(const CpuExecutable&) = delete;
  CpuExecutable& operator=(const CpuExecutable&) = delete;

  absl::StatusOr<std::unique_ptr<hal::Launchable>> Resolve(const std::string& symbol, hal::Work work) const override;
  absl::StatusOr<const void*> ResolveFunction(const std::string& symbol) const override;

 private:
  CpuExecutable(FileDescriptor file, void* handle, int threads)
      : file_(std::move(file)), handle_(handle), threads_(threads) {}

  FileDescriptor file_;
  void* handle_;
  int threads_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_CPU_EXECUTABLE_H_
