#ifndef BOWLINE_RUNTIME_EXECUTOR_RECORDER_H_
#define BOWLINE_RUNTIME_EXECUTOR_RECORDER_H_

// Runs of entries as recordings of the device. Private to runtime/executor.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/executor/binder.h"

namespace bowline {

// The place of a command: a call of the timeline, and the index of the command in that call.
struct CommandPlace {
  uint32_t call = 0, command = 0;
};

// A unit that the host issues at once: one command, or a recording that begins with this command.
struct RecordedPart {
  CommandPlace place;
  uint16_t stream = 0;
  std::unique_ptr<hal::Recording> recording;  // null: the command
};

// Returns whether streams and events order every two communications of a run. A recording loses the order in which the
// host issued them, and ranks need one common order. Plans for devices that record have these streams and events
// (checker/CommunicationOrder.h); plans of an older compiler may lack them.
bool CommunicationsFollowOneAnother(const BoundPlan& bound, const std::vector<BoundCall>& calls);

// Where a program communicates by nothing that the device cannot record, and in one order, a run of it is one
// recording, which the first stream replays. Elsewhere each stream's launches and copies between its signals, waits and
// communications are, which stay commands of their own.
//
// A program runs by its streams once before it is recorded: libraries and devices make preparations in a first run that
// they may not make while they record, and a program that runs once is not worth a recording.
//
// Whatever differs between runs is in memory, at the same addresses: commands have no other operands. Ports that take
// two buffers in turn have a recording for each.
class Recorder {
 public:
  // Both outlive it. The streams of `bound` must be empty when recordings are forgotten.
  Recorder(hal::Device* device, const BoundPlan* bound)
      : device_(device), bound_(bound), timelines_(bound->timelines.size()) {}

  // Counts a run, and says whether it should be recorded first.
  bool IsDue(uint32_t program, uint32_t parity);
  // Records the runs of a program with this parity, while no run is under way. After an error, that of command `failed`
  // if that is set, nothing is recorded any more.
  absl::Status Record(uint32_t program, uint32_t parity, const CommandPlace** failed);
  // A run in parts; null if it was not recorded.
  const std::vector<RecordedPart>* Find(uint32_t program, uint32_t parity) const {
    const Timeline& timeline = timelines_[program][parity];
    return timeline.is_recorded ? &timeline.parts : nullptr;
  }
  // Begins anew, because addresses have changed.
  void Forget();

 private:
  struct Timeline {
    bool has_run = false, is_recorded = false;
    std::vector<RecordedPart> parts;
  };

  absl::Status RecordWhole(const std::vector<BoundCall>& calls, std::vector<RecordedPart>& parts);
  absl::Status RecordPieces(const std::vector<BoundCall>& calls, std::vector<RecordedPart>& parts);
  // Appends the commands at `places`, which are of one stream, to `parts`, and clears them.
  absl::Status AppendPiece(const std::vector<BoundCall>& calls, std::vector<CommandPlace>& places,
                           std::vector<RecordedPart>& parts);
  const BoundCommand& CommandAt(const std::vector<BoundCall>& calls, CommandPlace place) const {
    return bound_->commands[calls[place.call].first_command + place.command];
  }
  absl::Status Issue(const std::vector<BoundCall>& calls, CommandPlace place);

  hal::Device* device_;
  const BoundPlan* bound_;
  std::vector<std::array<Timeline, 2>> timelines_;  // by program and parity
  bool gave_up_ = false;
  CommandPlace issued_;        // the last command that was recorded
  bool issue_failed_ = false;  // and whether that was an error
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_RECORDER_H_
