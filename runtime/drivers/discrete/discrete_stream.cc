#include "runtime/drivers/discrete/discrete_stream.h"

#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline {

using Lock = std::unique_lock<std::mutex>;

absl::Status DiscreteEvent::Await() const {
  Lock lock(DeviceActivity::mutex());
  scheduler_->RunUntil(lock, [&] { return point_.is_reached(); });
  return absl::OkStatus();
}

absl::StatusOr<int64_t> DiscreteEvent::Time() const {
  if (!is_timed_) return absl::FailedPreconditionError("an event that was not made for its time has none");
  if (!recorded()) return absl::FailedPreconditionError("an event that no stream recorded has no time");
  const Lock lock(DeviceActivity::mutex());
  if (point_.is_reached()) return time_;
  return absl::FailedPreconditionError("the stream has not come to an event whose time is asked for");
}

DiscreteStream::DiscreteStream(DiscreteScheduler* scheduler, const DiscreteMemory* memory, const Draws& draws,
                               uint64_t seed)
    : scheduler_(scheduler), memory_(memory), draws_(draws), workspace_(seed), ring_(kCapacity) {
  const Lock lock(DeviceActivity::mutex());
  scheduler_->Add(this);
}

absl::StatusOr<std::unique_ptr<hal::Stream>> DiscreteStream::Create(DiscreteScheduler* scheduler,
                                                                    const DiscreteMemory* memory, const Draws& draws,
                                                                    uint64_t seed) {
  std::unique_ptr<DiscreteStream> stream(new DiscreteStream(scheduler, memory, draws, seed));
  try {
    stream->caller_ = std::thread(&DiscreteStream::RunCalls, stream.get());
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread for a stream: ", error.what(), "; run fewer ranks on this machine"));
  }
  return std::unique_ptr<hal::Stream>(std::move(stream));
}

DiscreteStream::~DiscreteStream() {
  {
    Lock lock(DeviceActivity::mutex());
    scheduler_->RunUntil(lock, [&] { return *finished_ == issued_; });
    scheduler_->Remove(this);
    is_over_ = true;
    has_call_.notify_one();
  }
  if (caller_.joinable()) caller_.join();
}

void DiscreteStream::Issue(Command command) {
  command.label = label();
  Lock lock(DeviceActivity::mutex());
  scheduler_->RunUntil(lock, [&] { return issued_ - *finished_ < kCapacity; });
  ring_[issued_++ % kCapacity] = std::move(command);
  scheduler_->Issued();
}

absl::Status DiscreteStream::Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                                    absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) {
  Command command;
  command.kind = Kind::kLaunch;
  command.launchable = &launchable;
  command.geometry = &geometry;
  command.arguments = arguments;
  command.destination = scratch;
  Issue(std::move(command));
  return absl::OkStatus();
}

absl::Status DiscreteStream::Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) {
  Command command;
  command.kind = Kind::kCopy;
  command.destination = destination;
  command.source = source;
  command.bytes = bytes;
  Issue(std::move(command));
  return absl::OkStatus();
}

absl::Status DiscreteStream::Call(const hal::HostCall& call) {
  Command command;
  command.kind = Kind::kCall;
  command.call = call;
  Issue(std::move(command));
  return absl::OkStatus();
}

absl::Status DiscreteStream::Record(hal::Event& event) {
  auto& recorded = static_cast<DiscreteEvent&>(event);
  if (recorded.is_timed_) {
    Command command;
    command.kind = Kind::kStamp;
    command.event = &recorded;
    Issue(std::move(command));
  }
  recorded.point_ = {finished_, issued_};
  return absl::OkStatus();
}

absl::Status DiscreteStream::Wait(const hal::Event& event) {
  const auto& awaited = static_cast<const DiscreteEvent&>(event);
  if (!awaited.recorded()) {
    return absl::FailedPreconditionError("a stream waits for an event that no stream recorded");
  }
  // Earlier commands of this stream are in order anyway.
  if (awaited.point_.finished == finished_) return absl::OkStatus();
  Command command;
  command.kind = Kind::kWait;
  command.point = awaited.point_;
  Issue(std::move(command));
  return absl::OkStatus();
}

absl::Status DiscreteStream::Synchronize() {
  Lock lock(DeviceActivity::mutex());
  scheduler_->RunUntil(lock, [&] { return *finished_ == issued_; });
  failed_label_ = status_.ok() ? std::nullopt : std::optional<uint64_t>(status_label_);
  return std::exchange(status_, absl::OkStatus());
}

bool DiscreteStream::HasFailed() const {
  const Lock lock(DeviceActivity::mutex());
  return !status_.ok();
}

bool DiscreteStream::MayRun() const {
  return *finished_ < issued_ && !is_calling_ && ring_[*finished_ % kCapacity].point.is_reached();
}

void DiscreteStream::RunFront(Lock& lock) {
  Command& command = Front();
  if (command.kind == Kind::kStamp) {
    command.event->time_ = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    return Finish(absl::OkStatus());
  }
  if (command.kind == Kind::kWait || !status_.ok()) return Finish(absl::OkStatus());
  if (command.kind == Kind::kCall) {
    is_calling_ = true;
    DeviceActivity::Begin();
    return has_call_.notify_one();
  }
  lock.unlock();
  const absl::Status status = command.kind == Kind::kLaunch ? DoLaunch(command) : DoCopy(command);
  lock.lock();
  Finish(status);
}

void DiscreteStream::Finish(const absl::Status& status) {
  Command& command = Front();
  command.point = {};
  if (!status.ok()) {
    status_ = status;
    status_label_ = command.label;
  }
  draws_.Next();
  ++*finished_;
}

void DiscreteStream::RunCalls() {
  Lock lock(DeviceActivity::mutex());
  while (true) {
    has_call_.wait(lock, [&] { return is_calling_ || is_over_; });
    if (!is_calling_) return;
    const hal::HostCall& call = Front().call;
    lock.unlock();
    const absl::Status status = call.run(call);
    lock.lock();
    is_calling_ = false;
    Finish(status);
    scheduler_->Wake();
    DeviceActivity::End();
  }
}

absl::Status DiscreteStream::DoLaunch(const Command& command) {
  pointers_.clear();
  for (const hal::DeviceAddress argument : command.arguments) {
    // The number of bytes is 0, as only the kernel's signature knows how many it touches.
    BOWLINE_ASSIGN_OR_RETURN(void* const pointer, memory_->TranslateForKernel(argument, 0));
    pointers_.push_back(pointer);
  }
  const auto& kernel = static_cast<const DiscreteLaunchable&>(*command.launchable);
  BOWLINE_ASSIGN_OR_RETURN(void* const workspace,
                           memory_->TranslateForKernel(command.destination, kernel.ScratchBytes()));
  kernel.Run(*command.geometry, pointers_, workspace, workspace_);
  return absl::OkStatus();
}

absl::Status DiscreteStream::DoCopy(const Command& command) {
  BOWLINE_ASSIGN_OR_RETURN(void* const to, memory_->Translate(command.destination, command.bytes));
  BOWLINE_ASSIGN_OR_RETURN(const void* const from, memory_->Translate(command.source, command.bytes));
  if (command.bytes > 0) std::memmove(to, from, command.bytes);
  return absl::OkStatus();
}

}  // namespace bowline
