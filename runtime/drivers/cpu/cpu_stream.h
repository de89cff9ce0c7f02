#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_CPU_STREAM_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_CPU_STREAM_H_

#include "runtime/drivers/host/worker_stream.h"
#include "runtime/hal/stream.h"

namespace bowline {

// Runs each command before it returns, on the caller and its team of threads (kernels/cpu/parallel). Such streams of
// one thread are therefore ordered as they are issued; a wait for an event of a worker's stream blocks the caller.
class CpuStream : public hal::Stream {
 public:
  absl::Status Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                      absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) override;
  absl::Status Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) override;
  absl::Status Call(const hal::HostCall& call) override { return call.run(call); }
  absl::Status Record(hal::Event& event) override;
  absl::Status Wait(const hal::Event& event) override;
  absl::Status Synchronize() override { return absl::OkStatus(); }
};

// Commands of a CPU on the thread of a WorkerStream.
class CpuRunner : public CommandRunner {
 public:
  absl::Status Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                      absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) override;
  absl::Status Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) override;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_CPU_STREAM_H_
