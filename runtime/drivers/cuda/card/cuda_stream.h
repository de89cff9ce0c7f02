#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_STREAM_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_STREAM_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/drivers/cuda/card/cuda_event.h"
#include "runtime/drivers/cuda/card/cuda_launchable.h"
#include "runtime/drivers/cuda/card/stream_operation.h"
#include "runtime/hal/stream.h"

namespace bowline {

class CudaRecording;

// A stream of CUDA with calls of the host in it.
//
// The caller hands commands to CUDA at once. A call of the host goes into a queue, and so do commands issued before it
// has run. A thread of the stream takes the queue's entries in order: it waits until CUDA has executed all earlier
// commands, runs the call, and hands over the next commands. When the queue is empty, the caller hands over again.
//
// The card never waits for the host, unlike with cuLaunchHostFunc and cuStreamWaitValue32, because calls block
// until other ranks have done their part, and these may be threads that share the card. CUDA runs the functions of
// cuLaunchHostFunc on one thread, so that the first of them would keep the others from running. A stream that waits for
// a value in memory blocks those that share its hardware queue, and all that waits for the whole card (allocations,
// loading code), so that the rank that it waits for might never come. As it is, everything that was handed to CUDA ends
// by itself.
//
// An event is recorded, and waited for, by the same rule: where its point is still in a queue, the wait goes into the
// waiting stream's queue, until the point was handed over.
class CudaStream : public hal::Stream {
 public:
  static constexpr uint64_t kCapacity = 1024;  // size of the queue; a caller that is this far ahead waits

  // `blocking`: each command ends before the next begins, so that an error is that of the command.
  static absl::StatusOr<std::unique_ptr<hal::Stream>> Create(CudaCard* card, hal::StreamMode mode, bool blocking);

  // Runs all issued commands first.
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  absl::Status Launch(const hal::Launchable& launchable, const hal::Geometry& geometry,
                      absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch) override;
  absl::Status Copy(hal::DeviceAddress destination, hal::DeviceAddress source, size_t bytes) override;
  absl::Status Call(const hal::HostCall& call) override;
  // Submits an operation of a library, which must live until the stream was synchronised, and until the recording is
  // gone that has it.
  absl::Status Add(StreamOperation& operation, const std::array<uint64_t, 6>& parameters);
  absl::Status Record(hal::Event& event) override;
  absl::Status Wait(const hal::Event& event) override;
  absl::Status Replay(const hal::Recording& recording) override;
  absl::Status Synchronize() override;
  std::optional<uint64_t> FailedLabel() const override { return failed_label_; }
  bool HasFailed() const override;

  CUstream handle() const { return stream_; }
  // CUDA keeps the commands of this stream, which is empty, in a graph instead of running them, unless this is null.
  void SetRecording(CudaRecording* recording) { recording_ = recording; }

 private:
  enum class Kind : uint8_t { kLaunch, kCopy, kCall, kOperation, kReplay, kRecord, kWait, kStop };

  struct Command {
    Kind kind = Kind::kStop;
    uint64_t label = 0;
    const CudaLaunchable* launchable = nullptr;
    const hal::Geometry* geometry = nullptr;
    absl::Span<const hal::DeviceAddress> arguments;
    hal::DeviceAddress destination = 0;  // a copy's destination, or a launch's scratch
    hal::DeviceAddress source = 0;
    uint64_t size = 0;   // bytes of a copy, or the position that a wait is for
    hal::HostCall call;  // its parameters are those of an operation, too
    StreamOperation* operation = nullptr;
    const CudaRecording* recording = nullptr;    // for a replay
    std::shared_ptr<CudaEventHandle> event;      // for a record or wait
    std::shared_ptr<ProgressCounter> submitted;  // counts commands of the stream that a wait is for
  };

  CudaStream(CudaCard* card, bool blocking);

  // Returns whether the queue is empty and its thread idle: then all below is the caller's.
  bool IsIdle() const { return done_->value() == next_; }
  // The place of the next command in the queue; starts the thread if there is none.
  absl::StatusOr<Command*> Next(Kind kind);
  void Issue();
  // Now, or by the queue. Commands after a failed one are left out.
  template <typename Fill>
  absl::Status Do(Kind kind, Fill fill);

  void Work();
  void RunQueued(Command& command);
  // Hands one command to CUDA, or runs the call.
  absl::Status Run(Command& command);
  absl::Status Submit(Command& command);
  static std::string Describe(const Command& command);
  // Asks the operation for errors when the stream is synchronised.
  void Remember(StreamOperation& operation);
  void Fail(absl::Status status, std::optional<uint64_t> label);

  CudaCard* card_;
  bool blocking_;
  CudaRecording* recording_ = nullptr;
  CUstream stream_ = nullptr;
  LaunchParameters parameters_;
  Command direct_;  // the command that the caller itself hands over
  // The first error that no call returned, and its command's label; the thread's until it is idle.
  absl::Status status_;
  std::optional<uint64_t> status_label_;
  std::optional<uint64_t> failed_label_;  // for the last Synchronize
  std::atomic<bool> has_failed_{false};   // whether `status_` is an error, for the caller at any time

  std::vector<StreamOperation*> operations_;  // those whose work came since the stream was synchronised last

  std::vector<Command> queue_;
  uint64_t next_ = 0;  // commands that went into the queue
  ProgressCounter issued_;
  std::shared_ptr<ProgressCounter> done_;  // also identifies this stream to its events
  std::thread thread_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CARD_CUDA_STREAM_H_
