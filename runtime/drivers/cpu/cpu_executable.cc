#include "runtime/drivers/cpu/cpu_executable.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/parallel/parallel.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/drivers/cpu/cpu_launchable.h"
#include "runtime/drivers/cpu/perf_map.h"

namespace bowline {
namespace {

// Roughly the time of the work on one thread, rather too short than too long. Unestimated work counts as long.
double Nanoseconds(hal::Work work) {
  constexpr double kBytesPerNanosecond = 20, kFlopsPerNanosecond = 8;
  const double estimate = std::max(work.bytes / kBytesPerNanosecond, work.flops / kFlopsPerNanosecond);
  return estimate > 0 ? estimate : std::numeric_limits<double>::max();
}

class GeneratedLaunchable : public CpuLaunchable {
 public:
  GeneratedLaunchable(GeneratedKernel function, hal::Work work, int threads)
      : function_(function), loop_(threads), nanoseconds_(Nanoseconds(work)) {}

  absl::Status CheckGeometry(const hal::Geometry& geometry) const override {
    const auto* extent = std::get_if<hal::Extent>(&geometry);
    if (extent == nullptr) return absl::InvalidArgumentError("generated code for CPUs is launched over an extent");
    if (extent->indices >= 1) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("an extent of ", extent->indices, "; it must be at least 1"));
  }

  void Run(const hal::Geometry& geometry, absl::Span<void* const> arguments, void*) const override {
    const int64_t indices = std::get<hal::Extent>(geometry).indices;
    loop_.Run(indices, nanoseconds_ / static_cast<double>(indices),
              [&](int64_t begin, int64_t end) { function_(arguments.data(), begin, end); });
  }

 private:
  GeneratedKernel function_;
  kernels::ParallelLoop loop_;
  double nanoseconds_;
};

absl::Status WriteAll(int fd, absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return ErrnoToStatus(errno, "cannot hold an image of the plan in memory");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Executable>> CpuExecutable::Load(absl::Span<const uint8_t> image, int threads) {
  FileDescriptor file(::memfd_create("bowline-image", MFD_CLOEXEC));
  if (!file.valid()) return ErrnoToStatus(errno, "cannot make a file in memory for an image of the plan");
  BOWLINE_RETURN_IF_ERROR(WriteAll(file.get(), image));
  // The loader takes two libraries of one name for the same, so the file stays open: no other image gets its number.
  void* handle = ::dlopen(absl::StrCat("/proc/self/fd/", file.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("an image of the plan does not load: ", ::dlerror(), "; compile the model again"));
  }
  std::unique_ptr<hal::Executable> executable(new CpuExecutable(std::move(file), handle, threads));
  if (PerfMapRequested()) BOWLINE_RETURN_IF_ERROR(DetachFromFile(handle));
  return executable;
}

CpuExecutable::~CpuExecutable() { ::dlclose(handle_); }

absl::StatusOr<std::unique_ptr<hal::Launchable>> CpuExecutable::Resolve(const std::string& symbol,
                                                                        hal::Work work) const {
  BOWLINE_ASSIGN_OR_RETURN(const void* address, ResolveFunction(symbol));
  return std::make_unique<GeneratedLaunchable>(reinterpret_cast<GeneratedKernel>(const_cast<void*>(address)), work,
                                               threads_);
}

absl::StatusOr<const void*> CpuExecutable::ResolveFunction(const std::string& symbol) const {
  const void* address = ::dlsym(handle_, symbol.c_str());
  if (address == nullptr)
    return absl::NotFoundError(absl::StrCat("the plan's image has no symbol '", absl::Utf8SafeCEscape(symbol), "'"));
  if (PerfMapRequested()) BOWLINE_RETURN_IF_ERROR(AppendToPerfMap(address, symbol));
  return address;
}

}  // namespace bowline
