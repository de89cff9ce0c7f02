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

// Says whether the commands of a stream run beside their caller.
enum class StreamMode {
  kInline,  // as the device likes; on a CPU each command runs before its call returns
  kWorker,  // beside the caller and other streams, as far as the device can: communication overlaps with compute
};

// A function of the host that runs in the order of a stream, such as a communicator's. It may block until other
// streams, threads or processes have done their part, and reaches no memory of a device. It is copied when it is
// issued, so that it needs no allocation.
struct HostCall {
  absl::Status (*run)(const HostCall& call) = nullptr;
  void* context = nullptr;  // must live until the stream was synchronised
  std::array<uint64_t, 6> parameters = {};
};

// An in-order queue of commands on a device.
class Stream {
 public:
  virtual ~Stream() = default;

  // Launches a kernel. `geometry` is one that the launchable takes; `scratch` is the address of
  // launchable.ScratchBytes() bytes, 0 for none.
  virtual absl::Status Launch(const Launchable& launchable, const Geometry& geometry,
                              absl::Span<const DeviceAddress> arguments, DeviceAddress scratch) = 0;

  // Copies within memory of the device, or between that and pinned memory of the host. The ranges do not overlap.
  virtual absl::Status Copy(DeviceAddress destination, DeviceAddress source, size_t bytes) = 0;

  // Runs call.run(call).
  virtual absl::Status Call(const HostCall& call) = 0;

  // `event` becomes the point after everything that is in the stream now.
  virtual absl::Status Record(Event& event) = 0;

  // Later commands of this stream begin after the point of `event`. kFailedPrecondition when it was never recorded and
  // so has no point.
  virtual absl::Status Wait(const Event& event) = 0;

  // Runs the commands that Device::Record recorded. Its errors name no command.
  virtual absl::Status Replay(const Recording& /*recording*/) {
    return absl::UnimplementedError("the device replays no commands");
  }

  // Returns when the stream is empty, with the first error of its commands that no call returned. The stream is like a
  // new one afterwards.
  virtual absl::Status Synchronize() = 0;

  // Returns whether a command that was issued since the last Synchronize has failed later than its call returned. Waits
  // for nothing: it knows failures of commands before an awaited point, and may not know later ones yet.
  virtual bool HasFailed() const { return false; }

  // Commands that are issued from now on have this label, by which their issuer knows them. It is 0 at first.
  void SetLabel(uint64_t label) { label_ = label; }

  // The label of the command that failed, after Synchronize returned an error; nothing if the device cannot tell.
  virtual std::optional<uint64_t> FailedLabel() const { return std::nullopt; }

  // Contract
  //   Commands of one stream take effect in order; those of two streams only as events say.
  //   Launch, Copy, Call, Record and Wait allocate nothing after a stream's first use with as many arguments, and may
  //   return before the command ran; a stream that has very many commands to run makes its caller wait.
  //   After a command that failed when its call had returned, later ones are skipped until the stream was synchronised;
  //   events are reached all the same, so that an error never makes another stream hang.
  //   `geometry` and `arguments` need to stay until the stream was synchronised.
  //   All objects come from the stream's own device. One thread at a time uses a stream.

 protected:
  uint64_t label() const { return label_; }

 private:
  uint64_t label_ = 0;
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_STREAM_H_
