#include "runtime/drivers/cpu/cpu_stream.h"

#include <cstring>

#include "runtime/drivers/cpu/cpu_launchable.h"

namespace bowline {

absl::Status CpuStream::Launch(const hal::Launchable& launchable, absl::Span<void* const> arguments, void* scratch) {
  static_cast<const CpuLaunchable&>(launchable).Run(arguments, scratch);
  return absl::OkStatus();
}

absl::Status CpuStream::Copy(void* destination, const void* source, size_t bytes) {
  // Only the checker refuses ranges that overlap, and sessions do not run it: defined all the same.
  if (bytes > 0) std::memmove(destination, source, bytes);
  return absl::OkStatus();
}

absl::Status CpuStream::Record(hal::Event& event) {
  static_cast<CpuEvent&>(event).Record(nullptr, 0);
  return absl::OkStatus();
}

absl::Status CpuStream::Wait(const hal::Event& event) {
  BOWLINE_RETURN_IF_ERROR(CheckRecorded(event));
  const auto& point = static_cast<const CpuEvent&>(event);
  if (point.finished() != nullptr) point.finished()->WaitFor(point.position());
  return absl::OkStatus();
}

absl::Status CheckRecorded(const hal::Event& event) {
  if (event.recorded()) return absl::OkStatus();
  return absl::FailedPreconditionError("a stream waits for an event that no stream recorded");
}

}  // namespace bowline
