#ifndef BOWLINE_RUNTIME_HAL_DEVICE_H_
#define BOWLINE_RUNTIME_HAL_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/registry/registry.h"
#include "runtime/base/status.h"
#include "runtime/hal/allocation.h"
#include "runtime/hal/communicator.h"
#include "runtime/hal/event.h"
#include "runtime/hal/exchange.h"
#include "runtime/hal/executable.h"
#include "runtime/hal/recording.h"
#include "runtime/hal/stream.h"

namespace bowline::hal {

// The machine that code was compiled for, as a plan states it.
struct Target {
  std::string device;  // "cpu"
  std::string arch;    // "x86_64"
  std::string cpu;     // "x86-64-v3"
};

struct DeviceOptions {
  int threads = 1;  // threads that a launch may use on the host
  int rank = 0;     // the rank of the run whose device it is
  // Settings of this driver alone, by name: --driver NAME:KEY=VALUE,...
  std::map<std::string, std::string> settings = {};
};

// One rank's device, which has its memory and runs its commands. Everything else is made from it.
class Device {
 public:
  virtual ~Device() = default;

  virtual absl::string_view name() const = 0;
  // Describes the machine behind the device, for people who compare times: the name of a card, its driver's version.
  virtual std::string Description() const { return std::string(name()); }

  // kFailedPrecondition, naming the needs of the code and the features of this machine, if it cannot run here.
  virtual absl::Status CheckTarget(const Target& target) const = 0;

  // kResourceExhausted when there is not enough memory.
  virtual absl::StatusOr<std::unique_ptr<Allocation>> Allocate(size_t bytes,
                                                               MemorySpace space = MemorySpace::kDevice) = 0;

  // The address at which kernels and copies of the device read `memory`, which the host keeps as it is; nothing if they
  // do not reach memory of the host.
  virtual std::optional<DeviceAddress> AddressOfHost(absl::Span<const uint8_t> /*memory*/) const {
    return std::nullopt;
  }

  // Returns whether LoadExecutable knows the format.
  virtual bool KnowsFormat(absl::string_view format) const = 0;
  // Loads an image of the plan. The bytes are not needed afterwards. kInvalidArgument for a format that the device does
  // not know or an image that does not load.
  virtual absl::StatusOr<std::unique_ptr<Executable>> LoadExecutable(absl::string_view format,
                                                                     absl::Span<const uint8_t> image) = 0;

  // Creates a kernel of the registry. kNotFound and kInvalidArgument mean the same as in kernels::CreateKernel.
  virtual absl::StatusOr<std::unique_ptr<Launchable>> CreateKernel(const kernels::Signature& signature) = 0;

  // kResourceExhausted when the system has no thread for it.
  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream(StreamMode mode = StreamMode::kInline) = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> CreateEvent(EventMode mode = EventMode::kOrder) = 0;

  // Creates the communicator of the members of `exchange`, each of which calls this with its own device, of this
  // driver. All members make the communicators that they share in the same order.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(std::unique_ptr<Exchange> exchange) = 0;

  // Returns whether commands of the first kind of stream (StreamMode::kInline) run before their call returns.
  virtual bool ComputesInCalls() const { return false; }

  // Returns whether a caller should try Record: false for a device that records nothing.
  virtual bool CanRecord() const { return false; }

  // Records the commands that `issue` issues to `streams`, which none of them runs then. Stream::Replay runs them all:
  // the first begins after everything in that stream, commands that come into it later begin after the last, and among
  // themselves they are ordered as they are on these streams, by streams and by events that were recorded in `issue`.
  //
  // Waits until the streams are empty first. Fails with the error of `issue`, such as kUnimplemented for a call of the
  // host, or with why the device takes no such recording; nothing ran then, and the streams are like new ones.
  virtual absl::StatusOr<std::unique_ptr<Recording>> Record(absl::Span<Stream* const> /*streams*/,
                                                            absl::FunctionRef<absl::Status()> /*issue*/) {
    return absl::UnimplementedError("the device records no commands");
  }

  // Contract
  //   The device outlives everything made from it. Its methods may be called from several threads.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_DEVICE_H_
