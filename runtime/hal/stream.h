#ifndef BOWLINE_RUNTIME_HAL_STREAM_H_
#define BOWLINE_RUNTIME_HAL_STREAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/hal/event.h"
#include "runtime/hal/executable.h"
#include "runtime/hal/memory.h"
#include "runtime/hal/recording.h"

namespace bowline::hal {

// How the commands of a stream run relative to their caller.
enum class StreamMode {
  kInline,  // as the device prefers; on a CPU each command runs before its call returns
  kWorker,  // beside the caller and other streams as far as the device can: communication overlaps compute
};

// A host function that runs in the order of a stream; communicators use it. It may block until other streams, threads
// or processes have done their part. It must not access memory of a device. Issuing it copies it, so that it needs no
// allocation.
struct HostCall {
  absl::Status (*run)(const HostCall& call) = nullptr;
  void* context = nullptr;  // must live until the stream was synchronised
  std::array<uint64_t, 6> parameters = {};
};

// An in-order queue of commands on a device.
class Stream {
 public:
  virtual ~Stream() = default;

  // Launches a kernel. The launchable must accept `geometry` (CheckGeometry). `scratch` is the address of
  // launchable.ScratchBytes() bytes, or 0 if there are none.
  virtual absl::Status Launch(const Launchable& launchable, const Geometry& geometry,
                              absl::Span<const DeviceAddress> arguments, DeviceAddress scratch) = 0;

  // Copies within memory of the device, or between it and pinned memory of the host. The ranges do not overlap.
  virtual absl::Status Copy(DeviceAddress destination, DeviceAddress source, size_t bytes) = 0;

  // Runs call.run(call).
  virtual absl::Status Call(const HostCall& call) = 0;

  // Moves the point of `event` behind all commands that are in the stream now.
  virtual absl::Status Record(Event& event) = 0;

  // Makes later commands of this stream begin after the point of `event`. Returns kFailedPrecondition if the event was
  // never recorded and so has no point.
  virtual absl::Status Wait(const Event& event) = 0;

  // Runs the commands that Device::Record recorded. An error does not say which command failed.
  virtual absl::Status Replay(const Recording& /*recording*/) {
    return absl::UnimplementedError("the device replays no commands");
  }

  // Blocks until the stream is empty. Returns the first error of its commands that no earlier call returned. The stream
  // is like a new one afterwards.
  virtual absl::Status Synchronize() = 0;

  // Returns whether a command issued since the last Synchronize failed after its call had returned. Does not wait: it
  // knows all failures before a point that was awaited (Event::Await), but may miss later ones.
  virtual bool HasFailed() const { return false; }

  // Gives this label to all commands issued from now on, so that FailedLabel can name one. The first label is 0.
  void SetLabel(uint64_t label) { label_ = label; }

  // The label of the command that failed, after Synchronize returned an error; absent if the device cannot tell.
  virtual std::optional<uint64_t> FailedLabel() const { return std::nullopt; }

  // Contract
  //   Commands of one stream take effect in order. Only events order the commands of two streams.
  //   Launch, Copy, Call, Record and Wait may return before the command ran. They allocate nothing once the stream had
  //   a command with as many arguments. A stream with very many pending commands makes its caller wait.
  //   If a command fails after its call returned, later commands are skipped until the stream was synchronised. Events
  //   are still reached, so that an error never makes another stream hang.
  //   `geometry` and `arguments` must stay alive until the stream was synchronised.
  //   All objects come from the stream's own device. One thread at a time uses a stream.

 protected:
  uint64_t label() const { return label_; }

 private:
  uint64_t label_ = 0;
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_STREAM_H_
