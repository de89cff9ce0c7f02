#include "runtime/drivers/host/worker_stream.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/isa/flush_subnormals.h"

namespace bowline {

WorkerStream::WorkerStream(std::unique_ptr<CommandRunner> runner)
    : runner_(std::move(runner)), ring_(kCapacity), finished_(std::make_shared<ProgressCounter>()) {}

absl::StatusOr<std::unique_ptr<hal::Stream>> WorkerStream::Create(std::unique_ptr<CommandRunner> runner) {
  std::unique_ptr<WorkerStream> stream(new WorkerStream(std::move(runner)));
  try {
    stream->worker_ = std::thread(&WorkerStream::Work, stream.get());
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread for a stream: ", error.what(), "; run fewer ranks on this machine"));
  }
  return std::unique_ptr<hal::Stream>(std::move(stream));
}

WorkerStream::~WorkerStream() {
  if (!worker_.joinable()) return;
  Next(Kind::kStop);
  Issue();
  worker_.join();
}

WorkerStream::Command& WorkerStream::Next(Kind kind) {
  if (next_ >= kCapacity) finished_->WaitFor(next_ - kCapacity + 1);
  Command& command = ring_[next_ % kCapacity];
  command.kind = kind;
  command.label = label();
  return command;
}

void WorkerStream::Issue() {
  ++next_;
  issued_.Advance();
}

absl::Status WorkerStream::Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                                  absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) {
  Command& command = Next(Kind::kLaunch);
  command.launchable = &launchable;
  command.geometry = &geometry;
  command.arguments = arguments;
  command.destination = scratch;
  Issue();
  return absl::OkStatus();
}

absl::Status WorkerStream::Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) {
  Command& command = Next(Kind::kCopy);
  command.destination = destination;
  command.source = source;
  command.size = bytes;
  Issue();
  return absl::OkStatus();
}

absl::Status WorkerStream::Call(const hal::HostCall& call) {
  Command& command = Next(Kind::kCall);
  command.call = call;
  Issue();
  return absl::OkStatus();
}

absl::Status WorkerStream::Record(hal::Event& event) {
  auto& point = static_cast<HostEvent&>(event);
  if (point.timed()) {
    Next(Kind::kStamp).event = &point;
    Issue();
  }
  point.Record(finished_, next_);
  return absl::OkStatus();
}

absl::Status WorkerStream::Wait(const hal::Event& event) {
  BOWLINE_RETURN_IF_ERROR(CheckRecorded(event));
  const auto& point = static_cast<const HostEvent&>(event);
  // Earlier commands of this stream are in order anyway.
  if (point.finished() == nullptr || point.finished() == finished_) return absl::OkStatus();
  Command& command = Next(Kind::kWait);
  command.finished = point.finished();
  command.size = point.position();
  Issue();
  return absl::OkStatus();
}

absl::Status WorkerStream::Synchronize() {
  finished_->WaitFor(next_);
  failed_label_ = status_.ok() ? std::nullopt : std::optional<uint64_t>(status_label_);
  has_failed_.store(false, std::memory_order_relaxed);
  return std::exchange(status_, absl::OkStatus());
}

void WorkerStream::Work() {
  const kernels::FlushSubnormals flush;
  for (uint64_t position = 0;; ++position) {
    issued_.WaitFor(position + 1);
    Command& command = ring_[position % kCapacity];
    if (command.kind == Kind::kStop) return;
    Run(command);
    finished_->Advance();
  }
}

void WorkerStream::Run(Command& command) {
  runner_->Begin();
  if (command.kind == Kind::kWait) {
    command.finished->WaitFor(command.size);
    command.finished.reset();
  } else if (command.kind == Kind::kStamp) {
    command.event->Stamp();
  } else if (status_.ok()) {
    status_ = Do(command);
    status_label_ = command.label;
    if (!status_.ok()) has_failed_.store(true, std::memory_order_release);
  }
}

absl::Status WorkerStream::Do(const Command& command) {
  switch (command.kind) {
    case Kind::kLaunch:
      return runner_->Launch(*command.launchable, *command.geometry, command.arguments, command.destination);
    case Kind::kCopy:
      return runner_->Copy(command.destination, command.source, command.size);
    case Kind::kCall:
      return command.call.run(command.call);
    default:
      return absl::OkStatus();
  }
}

}  // namespace bowline
