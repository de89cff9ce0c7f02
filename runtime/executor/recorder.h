#ifndef BOWLINE_RUNTIME_EXECUTOR_RECORDER_H_
#define BOWLINE_RUNTIME_EXECUTOR_RECORDER_H_

// Turns runs of entries into recordings of the device (hal::Recording). Private to runtime/executor.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/executor/binder.h"

namespace bowline {

// Identifies a command of a run: the index of a call in the timeline, and the command's index in that call.
struct CommandPlace {
  uint32_t call = 0, command = 0;
};

// A unit that the host issues with one call: the command at `place`, or a recording that begins with that command.
struct RecordedPart {
  CommandPlace place;
  uint16_t stream = 0;
  std::unique_ptr<hal::Recording> recording;  // null if the part is the single command at `place`
};

// Returns whether streams and events put all communications of a run into one total order. Ranks need a common order,
// and a recording loses the order in which the host issued commands. Plans for devices that record have these streams
// and events (checker/CommunicationOrder.h); plans of an older compiler may lack them.
bool CommunicationsFollowOneAnother(const BoundPlan& bound, const std::vector<BoundCall>& calls);

// Records runs of programs. If the device can record all communications of a program and they are totally ordered, one
// recording holds the whole run, and the first stream replays it. Otherwise each stream's launches and copies are
// recorded in pieces; the signals, waits and communications between these pieces stay single commands.
//
// The first run of a program is never recorded: libraries and devices may do set-up work in it that they may not do
// while they record, and a program that runs once is not worth a recording.
//
// A recording fixes addresses, so everything that differs between runs must be in memory. An entry whose ports
// alternate between two buffers has one recording per parity.
class Recorder {
 public:
  // Both outlive this object. The streams of `bound` must be empty when recordings are destroyed (Forget, Record).
  Recorder(hal::Device* device, const BoundPlan* bound)
      : device_(device), bound_(bound), timelines_(bound->timelines.size()) {}

  // Counts a run that is about to begin, and returns whether to call Record first.
  bool IsDue(uint32_t program, uint32_t parity);
  // Records the runs of a program with this parity. No run may be under way. After an error it records nothing any
  // more; `*failed` is then the command whose issue failed, or null.
  absl::Status Record(uint32_t program, uint32_t parity, const CommandPlace** failed);
  // The parts of a run in the order of issue; null if the run was not recorded.
  const std::vector<RecordedPart>* Find(uint32_t program, uint32_t parity) const {
    const Timeline& timeline = timelines_[program][parity];
    return timeline.is_recorded ? &timeline.parts : nullptr;
  }
  // Drops all recordings because addresses have changed. Each program is recorded again before its second run from now.
  void Forget();

 private:
  struct Timeline {
    bool has_run = false, is_recorded = false;
    std::vector<RecordedPart> parts;
  };

  absl::Status RecordWhole(const std::vector<BoundCall>& calls, std::vector<RecordedPart>& parts);
  absl::Status RecordPieces(const std::vector<BoundCall>& calls, std::vector<RecordedPart>& parts);
  // Appends the commands at `places`, all of one stream, to `parts` as one recording if that pays. Clears `places`.
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
  CommandPlace issued_;        // the last command that was issued for a recording
  bool issue_failed_ = false;  // whether its issue failed
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_RECORDER_H_
