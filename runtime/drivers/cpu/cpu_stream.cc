#include "runtime/drivers/cpu/cpu_stream.h"

#include <cstring>

#include "kernels/cpu/isa/flush_subnormals.h"
#include "runtime/drivers/cpu/cpu_launchable.h"
#include "runtime/drivers/host/host_memory.h"

namespace bowline {

absl::Status CpuRunner::Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                               absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) {
  const kernels::FlushSubnormals flush;
  static_cast<const CpuLaunchable&>(launchable).Run(geometry, PointersOf(arguments), PointerOf(scratch));
  return absl::OkStatus();
}

absl::Status CpuRunner::Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) {
  // Only the checker refuses ranges that overlap, and sessions do not run it; memmove is defined for these, too.
  if (bytes > 0) std::memmove(PointerOf(destination), PointerOf(source), bytes);
  return absl::OkStatus();
}

absl::Status CpuStream::Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                               absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) {
  return CpuRunner().Launch(launchable, geometry, arguments, scratch);
}

absl::Status CpuStream::Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) {
  return CpuRunner().Copy(destination, source, bytes);
}

absl::Status CpuStream::Record(hal::Event& event) {
  auto& point = static_cast<HostEvent&>(event);
  point.Record(nullptr, 0);
  if (point.timed()) point.Stamp();
  return absl::OkStatus();
}

absl::Status CpuStream::Wait(const hal::Event& event) {
  BOWLINE_RETURN_IF_ERROR(CheckRecorded(event));
  const auto& point = static_cast<const HostEvent&>(event);
  if (point.finished() != nullptr) point.finished()->WaitFor(point.position());
  return absl::OkStatus();
}

}  // namespace bowline
