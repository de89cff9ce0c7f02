#include "runtime/drivers/cuda/card/cuda_stream.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/cuda/card/cuda_recording.h"

namespace bowline {

CudaStream::CudaStream(CudaCard* card, bool blocking)
    : card_(card), blocking_(blocking), queue_(kCapacity), done_(std::make_shared<ProgressCounter>()) {}

absl::StatusOr<std::unique_ptr<hal::Stream>> CudaStream::Create(CudaCard* card, hal::StreamMode mode, bool blocking) {
  std::unique_ptr<CudaStream> stream(new CudaStream(card, blocking));
  BOWLINE_RETURN_IF_ERROR(card->MakeCurrent());
  // Communication is short and others wait for it.
  const int priority = mode == hal::StreamMode::kWorker ? card->highest_priority() : card->lowest_priority();
  BOWLINE_RETURN_IF_ERROR(
      BOWLINE_CUDA(card->api(), cuStreamCreateWithPriority, &stream->stream_, CU_STREAM_NON_BLOCKING, priority));
  return std::unique_ptr<hal::Stream>(std::move(stream));
}

CudaStream::~CudaStream() {
  if (thread_.joinable()) {
    if (absl::StatusOr<Command*> command = Next(Kind::kStop); command.ok()) Issue();
    thread_.join();
  }
  if (stream_ == nullptr || !card_->MakeCurrent().ok()) return;
  // Memory that its commands use may be freed next.
  card_->api().cuStreamSynchronize(stream_);
  card_->api().cuStreamDestroy(stream_);
}

absl::StatusOr<CudaStream::Command*> CudaStream::Next(Kind kind) {
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread(&CudaStream::Work, this);
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot start a thread for a stream: ", error.what(), "; run fewer ranks on this machine"));
    }
  }
  if (next_ >= kCapacity) done_->WaitFor(next_ - kCapacity + 1);
  Command& command = queue_[next_ % kCapacity];
  command.kind = kind;
  command.label = label();
  return &command;
}

void CudaStream::Issue() {
  ++next_;
  issued_.Advance();
}

template <typename Fill>
absl::Status CudaStream::Do(Kind kind, Fill fill) {
  BOWLINE_RETURN_IF_ERROR(card_->MakeCurrent());
  if (!IsIdle() || kind == Kind::kCall) {
    BOWLINE_ASSIGN_OR_RETURN(Command* const command, Next(kind));
    fill(*command);
    Issue();
    return absl::OkStatus();
  }
  direct_.kind = kind;
  direct_.label = label();
  fill(direct_);
  const bool is_event = kind == Kind::kRecord || kind == Kind::kWait;
  return status_.ok() || is_event ? Run(direct_) : absl::OkStatus();
}

absl::Status CudaStream::Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                                absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) {
  return Do(Kind::kLaunch, [&](Command& command) {
    command.launchable = static_cast<const CudaLaunchable*>(&launchable);
    command.geometry = &geometry;
    command.arguments = arguments;
    command.destination = scratch;
  });
}

absl::Status CudaStream::Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return Do(Kind::kCopy, [&](Command& command) {
    command.destination = destination;
    command.source = source;
    command.size = bytes;
  });
}

absl::Status CudaStream::Call(const hal::HostCall& call) {
  if (recording_ != nullptr) return absl::UnimplementedError("a graph cannot hold a call of the host");
  return Do(Kind::kCall, [&](Command& command) { command.call = call; });
}

absl::Status CudaStream::Replay(const hal::Recording& recording) {
  if (recording_ != nullptr) return absl::UnimplementedError("a graph cannot hold a replay of another");
  const auto& replayed = static_cast<const CudaRecording&>(recording);
  for (StreamOperation* const operation : replayed.operations()) Remember(*operation);
  return Do(Kind::kReplay, [&](Command& command) { command.recording = &replayed; });
}

absl::Status CudaStream::Add(StreamOperation& operation, const std::array<uint64_t, 6>& parameters) {
  if (recording_ != nullptr) {
    recording_->Add(&operation);
  } else {
    Remember(operation);
  }
  return Do(Kind::kOperation, [&](Command& command) {
    command.operation = &operation;
    command.call.parameters = parameters;
  });
}

void CudaStream::Remember(StreamOperation& operation) {
  if (std::find(operations_.begin(), operations_.end(), &operation) == operations_.end()) {
    operations_.push_back(&operation);
  }
}

bool CudaStream::HasFailed() const {
  return has_failed_.load(std::memory_order_acquire) ||
         std::any_of(operations_.begin(), operations_.end(), [](StreamOperation* one) { return one->HasFailed(); });
}

absl::Status CudaStream::Record(hal::Event& event) {
  auto& point = static_cast<CudaEvent&>(event);
  BOWLINE_RETURN_IF_ERROR(Do(Kind::kRecord, [&](Command& command) { command.event = point.handle(); }));
  // If the caller submitted the command itself, the queue is empty, and `next_` commands are done.
  point.Record(done_, next_);
  return absl::OkStatus();
}

absl::Status CudaStream::Wait(const hal::Event& event) {
  if (!event.recorded()) return absl::FailedPreconditionError("a stream waits for an event that no stream recorded");
  const auto& point = static_cast<const CudaEvent&>(event);
  // Earlier commands of this stream are in order anyway.
  if (point.submitted() == done_) return absl::OkStatus();
  const auto fill = [&](Command& command) {
    command.event = point.handle();
    command.submitted = point.submitted();
    command.size = point.position();
  };
  if (point.submitted()->value() >= point.position()) return Do(Kind::kWait, fill);
  BOWLINE_RETURN_IF_ERROR(card_->MakeCurrent());
  BOWLINE_ASSIGN_OR_RETURN(Command* const command, Next(Kind::kWait));
  fill(*command);
  Issue();
  return absl::OkStatus();
}

absl::Status CudaStream::Synchronize() {
  BOWLINE_RETURN_IF_ERROR(card_->MakeCurrent());
  done_->WaitFor(next_);
  const absl::Status reached = BOWLINE_CUDA(card_->api(), cuStreamSynchronize, stream_);
  if (status_.ok() && !reached.ok()) {
    Fail(Annotate(reached, "a command of a stream failed (--driver cuda:blocking=1 finds out which)"), std::nullopt);
  }
  for (StreamOperation* const operation : operations_) {
    std::optional<uint64_t> label;
    if (const absl::Status failure = operation->Failure(&label); !failure.ok()) Fail(failure, label);
  }
  operations_.clear();
  failed_label_ = std::exchange(status_label_, std::nullopt);
  has_failed_.store(false, std::memory_order_relaxed);
  return std::exchange(status_, absl::OkStatus());
}

void CudaStream::Work() {
  const absl::Status current = card_->MakeCurrent();
  if (!current.ok()) Fail(current, std::nullopt);
  for (uint64_t position = 0;; ++position) {
    issued_.WaitFor(position + 1);
    Command& command = queue_[position % kCapacity];
    if (command.kind == Kind::kStop) return;
    RunQueued(command);
    done_->Advance();
  }
}

void CudaStream::RunQueued(Command& command) {
  const bool is_event = command.kind == Kind::kRecord || command.kind == Kind::kWait;
  if (!status_.ok() && !is_event) return;
  if (command.kind == Kind::kCall) {
    // Find errors of earlier commands before the call: they must not get this command's label.
    const absl::Status before = BOWLINE_CUDA(card_->api(), cuStreamSynchronize, stream_);
    if (!before.ok()) {
      return Fail(Annotate(before, "a command of a stream failed (--driver cuda:blocking=1 finds out which)"),
                  std::nullopt);
    }
  }
  const absl::Status status = Run(command);
  if (!status.ok()) Fail(status, command.kind == Kind::kReplay ? std::nullopt : std::optional(command.label));
}

void CudaStream::Fail(absl::Status status, std::optional<uint64_t> label) {
  if (!status_.ok()) return;
  status_ = std::move(status);
  status_label_ = label;
  has_failed_.store(true, std::memory_order_release);
}

absl::Status CudaStream::Run(Command& command) {
  if (command.kind == Kind::kCall) return command.call.run(command.call);
  absl::Status status = Submit(command);
  if (status.ok() && blocking_ && command.kind != Kind::kRecord && command.kind != Kind::kWait) {
    status = BOWLINE_CUDA(card_->api(), cuStreamSynchronize, stream_);
  }
  // An operation says itself which one it is.
  if (status.ok() || command.kind == Kind::kOperation) return status;
  return Annotate(status, Describe(command));
}

absl::Status CudaStream::Submit(Command& command) {
  const CudaApi& api = card_->api();
  switch (command.kind) {
    case Kind::kLaunch:
      return command.launchable->Submit(stream_, *command.geometry, command.arguments, command.destination,
                                        parameters_);
    case Kind::kCopy:
      return BOWLINE_CUDA(api, cuMemcpyAsync, command.destination, command.source, command.size, stream_);
    case Kind::kOperation:
      return command.operation->Submit(stream_, command.label, recording_, command.call.parameters);
    case Kind::kReplay:
      for (StreamOperation* const operation : command.recording->operations()) {
        BOWLINE_RETURN_IF_ERROR(operation->BeginReplay(stream_, command.recording));
      }
      return BOWLINE_CUDA(api, cuGraphLaunch, command.recording->graph(), stream_);
    case Kind::kRecord: {
      const std::shared_ptr<CudaEventHandle> event = std::move(command.event);
      return BOWLINE_CUDA(api, cuEventRecord, event->get(), stream_);
    }
    case Kind::kWait: {
      const std::shared_ptr<CudaEventHandle> event = std::move(command.event);
      std::exchange(command.submitted, nullptr)->WaitFor(command.size);
      return BOWLINE_CUDA(api, cuStreamWaitEvent, stream_, event->get(), CU_EVENT_WAIT_DEFAULT);
    }
    default:
      return absl::OkStatus();
  }
}

std::string CudaStream::Describe(const Command& command) {
  switch (command.kind) {
    case Kind::kLaunch:
      return absl::StrCat("launch of '", command.launchable->name(), "'");
    case Kind::kCopy:
      return absl::StrCat("copy of ", command.size, " bytes");
    case Kind::kReplay:
      return "replay of a graph";
    case Kind::kRecord:
      return "record of an event";
    default:
      return "wait for an event";
  }
}

}  // namespace bowline
