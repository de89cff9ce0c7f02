#include "runtime/drivers/cpu/cpu_worker_stream.h"

#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/cpu/cpu_launchable.h"
#include "runtime/drivers/cpu/cpu_stream.h"

namespace bowline {

CpuWorkerStream::CpuWorkerStream() : ring_(kCapacity), finished_(std::make_shared<ProgressCounter>()) {}

absl::StatusOr<std::unique_ptr<hal::Stream>> CpuWorkerStream::Create() {
  std::unique_ptr<CpuWorkerStream> stream(new CpuWorkerStream);
  try {
    stream->worker_ = std::thread(&CpuWorkerStream::Work, stream.get());
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread for a stream: ", error.what(), "; run fewer ranks on this machine"));
  }
  return std::unique_ptr<hal::Stream>(std::move(stream));
}

CpuWorkerStream::~CpuWorkerStream() {
  if (!worker_.joinable()) return;
  Next().kind = Kind::kStop;
  Issue();
  worker_.join();
}

CpuWorkerStream::Command& CpuWorkerStream::Next() {
  if (next_ >= kCapacity) finished_->WaitFor(next_ - kCapacity + 1);
  return ring_[next_ % kCapacity];
}

void CpuWorkerStream::Issue() {
  ++next_;
  issued_.Advance();
}

absl::Status CpuWorkerStream::Launch(const hal::Launchable& launchable, absl::Span<void* const> arguments,
                                     void* scratch) {
  Command& command = Next();
  command.kind = Kind::kLaunch;
  command.launchable = &launchable;
  command.arguments = arguments;
  command.destination = scratch;
  Issue();
  return absl::OkStatus();
}

absl::Status CpuWorkerStream::Copy(void* destination, const void* source, size_t bytes) {
  Command& command = Next();
  command.kind = Kind::kCopy;
  command.destination = destination;
  command.source = source;
  command.size = bytes;
  Issue();
  return absl::OkStatus();
}

absl::Status CpuWorkerStream::Call(const hal::HostCall& call) {
  Command& command = Next();
  command.kind = Kind::kCall;
  command.call = call;
  Issue();
  return absl::OkStatus();
}

absl::Status CpuWorkerStream::Record(hal::Event& event) {
  static_cast<CpuEvent&>(event).Record(finished_, next_);
  return absl::OkStatus();
}

absl::Status CpuWorkerStream::Wait(const hal::Event& event) {
  BOWLINE_RETURN_IF_ERROR(CheckRecorded(event));
  const auto& point = static_cast<const CpuEvent&>(event);
  // What this stream has before is in order anyway.
  if (point.finished() == nullptr || point.finished() == finished_) return absl::OkStatus();
  Command& command = Next();
  command.kind = Kind::kWait;
  command.finished = point.finished();
  command.size = point.position();
  Issue();
  return absl::OkStatus();
}

absl::Status CpuWorkerStream::Synchronize() {
  finished_->WaitFor(next_);
  taken_ = 0;
  failed_command_ = status_.ok() ? std::nullopt : std::optional<uint64_t>(failed_place_);
  return std::exchange(status_, absl::OkStatus());
}

void CpuWorkerStream::Work() {
  for (uint64_t position = 0;; ++position) {
    issued_.WaitFor(position + 1);
    Command& command = ring_[position % kCapacity];
    if (command.kind == Kind::kStop) return;
    Run(command);
    finished_->Advance();
  }
}

void CpuWorkerStream::Run(Command& command) {
  if (command.kind == Kind::kWait) {
    command.finished->WaitFor(command.size);
    command.finished.reset();
    return;
  }
  const uint64_t place = taken_++;
  if (!status_.ok()) return;
  switch (command.kind) {
    case Kind::kLaunch:
      static_cast<const CpuLaunchable*>(command.launchable)->Run(command.arguments, command.destination);
      return;
    case Kind::kCopy:
      if (command.size > 0) std::memmove(command.destination, command.source, command.size);
      return;
    case Kind::kCall:
      status_ = command.call.run(command.call);
      failed_place_ = place;
      return;
    case Kind::kWait:
    case Kind::kStop:
      return;
  }
}

}  // namespace bowline
