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
  int threads = 1;  // host threads that one launch may use
  int rank = 0;     // the rank of the run that uses this device
  // Settings that only this driver knows, by key: --driver NAME:KEY=VALUE,...
  std::map<std::string, std::string> settings = {};
};

// One rank's device: it has memory and runs commands. All other objects of this interface are created from it.
class Device {
 public:
  virtual ~Device() = default;

  virtual absl::string_view name() const = 0;
  // Describes the machine behind the device, for people who compare times: the card's name, its driver's version.
  virtual std::string Description() const { return std::string(name()); }

  // kFailedPrecondition if code for `target` cannot run here; names the features it needs and those of this machine.
  virtual absl::Status CheckTarget(const Target& target) const = 0;

  // Returns kResourceExhausted when there is not enough memory.
  virtual absl::StatusOr<std::unique_ptr<Allocation>> Allocate(size_t bytes,
                                                               MemorySpace space = MemorySpace::kDevice) = 0;

  // The address at which kernels and copies of the device read `memory` of the host in place; absent if they cannot
  // reach it. The caller keeps the memory alive and unchanged.
  virtual std::optional<DeviceAddress> AddressOfHost(absl::Span<const uint8_t> /*memory*/) const {
    return std::nullopt;
  }

  // Returns whether LoadExecutable accepts the format.
  virtual bool KnowsFormat(absl::string_view format) const = 0;
  // Loads a code image of a plan. The caller may free `image` afterwards. Returns kInvalidArgument if the device does
  // not know the format or the image does not load.
  virtual absl::StatusOr<std::unique_ptr<Executable>> LoadExecutable(absl::string_view format,
                                                                     absl::Span<const uint8_t> image) = 0;

  // Creates a kernel of the registry. Returns kNotFound and kInvalidArgument where kernels::CreateKernel does.
  virtual absl::StatusOr<std::unique_ptr<Launchable>> CreateKernel(const kernels::Signature& signature) = 0;

  // Returns kResourceExhausted if the system cannot create the stream's thread.
  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream(StreamMode mode = StreamMode::kInline) = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> CreateEvent(EventMode mode = EventMode::kOrder) = 0;

  // Creates this member's end of a communicator. Each member of `exchange` calls this with its own device of this
  // driver. All members create the communicators that they share in the same order.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(std::unique_ptr<Exchange> exchange) = 0;

  // Returns whether a command of a stream of mode kInline runs before the call that issues it returns.
  virtual bool ComputesInCalls() const { return false; }

  // Returns whether a caller should try Record: false for a device that records nothing.
  virtual bool CanRecord() const { return false; }

  // Records the commands that `issue` issues to `streams`, without running them. Stream::Replay runs them all: the
  // first begins after everything in the replaying stream, and commands issued there later begin after the last. The
  // recorded commands keep the order that their streams, and events recorded within `issue`, give them.
  //
  // Waits until `streams` are empty first. Fails with the error of `issue`, such as kUnimplemented for a host call, or
  // with the reason why the device cannot record the commands. Then nothing ran, and the streams are like new ones.
  virtual absl::StatusOr<std::unique_ptr<Recording>> Record(absl::Span<Stream* const> /*streams*/,
                                                            absl::FunctionRef<absl::Status()> /*issue*/) {
    return absl::UnimplementedError("the device records no commands");
  }

  // Contract
  //   The device outlives everything made from it. Its methods may be called from several threads.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_DEVICE_H_
