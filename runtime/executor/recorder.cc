#include "runtime/executor/recorder.h"

#include <algorithm>
#include <map>
#include <utility>

namespace bowline {
namespace {

// A recording of a single command would cost as much as the command.
constexpr size_t kLeastPiece = 2;

bool IsCommunication(const BoundCommand& command) {
  return command.kind != fbs::CommandBody::Launch && command.kind != fbs::CommandBody::Copy &&
         command.kind != fbs::CommandBody::Signal && command.kind != fbs::CommandBody::Wait;
}

// Calls body(place) for each command, in the order of issue, until one returns an error.
template <typename Body>
absl::Status ForEachPlace(const std::vector<BoundCall>& calls, Body body) {
  for (uint32_t call = 0; call < calls.size(); ++call) {
    for (uint32_t i = 0; i < calls[call].command_count; ++i) BOWLINE_RETURN_IF_ERROR(body(CommandPlace{call, i}));
  }
  return absl::OkStatus();
}

}  // namespace

bool CommunicationsFollowOneAnother(const BoundPlan& bound, const std::vector<BoundCall>& calls) {
  // How many communications are over when the next command of a stream begins, and were when an event was recorded.
  std::map<uint16_t, uint64_t> over;
  std::map<const hal::Event*, uint64_t> recorded;
  uint64_t issued = 0;
  for (const BoundCall& call : calls) {
    for (uint32_t i = 0; i < call.command_count; ++i) {
      const BoundCommand& command = bound.commands[call.first_command + i];
      uint64_t& here = over[command.stream];
      if (command.kind == fbs::CommandBody::Signal) {
        recorded[command.event] = here;
      } else if (command.kind == fbs::CommandBody::Wait) {
        here = std::max(here, recorded[command.event]);
      } else if (IsCommunication(command)) {
        // If this one follows the last, it follows all before.
        if (here != issued) return false;
        here = ++issued;
      }
    }
  }
  return true;
}

bool Recorder::IsDue(uint32_t program, uint32_t parity) {
  Timeline& timeline = timelines_[program][parity];
  return std::exchange(timeline.has_run, true) && !timeline.is_recorded && !gave_up_;
}

void Recorder::Forget() {
  for (std::array<Timeline, 2>& timelines : timelines_) {
    for (Timeline& timeline : timelines) timeline = Timeline();
  }
}

absl::Status Recorder::Issue(const std::vector<BoundCall>& calls, CommandPlace place) {
  issued_ = place;
  const absl::Status status = bound_->Issue(CommandAt(calls, place));
  issue_failed_ = !status.ok();
  return status;
}

absl::Status Recorder::Record(uint32_t program, uint32_t parity, const CommandPlace** failed) {
  const std::vector<BoundCall>& calls = bound_->timelines[program][parity];
  bool whole = CommunicationsFollowOneAnother(*bound_, calls);
  ForEachPlace(calls, [&](CommandPlace place) {
    const BoundCommand& command = CommandAt(calls, place);
    whole = whole && (!IsCommunication(command) || command.communicator->CanRecord());
    return absl::OkStatus();
  }).IgnoreError();
  issue_failed_ = false;
  std::vector<RecordedPart> parts;
  const absl::Status status = whole ? RecordWhole(calls, parts) : RecordPieces(calls, parts);
  gave_up_ = !status.ok();
  *failed = issue_failed_ ? &issued_ : nullptr;
  if (status.ok()) timelines_[program][parity] = {.has_run = true, .is_recorded = true, .parts = std::move(parts)};
  return status;
}

absl::Status Recorder::RecordWhole(const std::vector<BoundCall>& calls, std::vector<RecordedPart>& parts) {
  std::vector<hal::Stream*> streams;
  for (const std::unique_ptr<hal::Stream>& stream : bound_->streams) streams.push_back(stream.get());
  if (streams.empty()) return absl::OkStatus();
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Recording> recording, device_->Record(streams, [&] {
    return ForEachPlace(calls, [&](CommandPlace place) { return Issue(calls, place); });
  }));
  parts.push_back({{}, 0, std::move(recording)});
  return absl::OkStatus();
}

absl::Status Recorder::RecordPieces(const std::vector<BoundCall>& calls, std::vector<RecordedPart>& parts) {
  // A piece is issued where it ends. Until then nothing was issued that waits for one of its commands: that would be
  // behind a signal of its stream, which ends it.
  std::vector<std::vector<CommandPlace>> pieces(bound_->streams.size());  // by stream
  BOWLINE_RETURN_IF_ERROR(ForEachPlace(calls, [&](CommandPlace place) -> absl::Status {
    const BoundCommand& command = CommandAt(calls, place);
    if (command.kind == fbs::CommandBody::Launch || command.kind == fbs::CommandBody::Copy) {
      pieces[command.stream].push_back(place);
      return absl::OkStatus();
    }
    BOWLINE_RETURN_IF_ERROR(AppendPiece(calls, pieces[command.stream], parts));
    parts.push_back({place, command.stream, nullptr});
    return absl::OkStatus();
  }));
  for (std::vector<CommandPlace>& piece : pieces) BOWLINE_RETURN_IF_ERROR(AppendPiece(calls, piece, parts));
  return absl::OkStatus();
}

absl::Status Recorder::AppendPiece(const std::vector<BoundCall>& calls, std::vector<CommandPlace>& places,
                                   std::vector<RecordedPart>& parts) {
  if (places.empty()) return absl::OkStatus();
  const uint16_t stream = CommandAt(calls, places.front()).stream;
  if (places.size() < kLeastPiece) {
    for (const CommandPlace place : places) parts.push_back({place, stream, nullptr});
  } else {
    hal::Stream* const only = bound_->streams[stream].get();
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Recording> recording, device_->Record({&only, 1}, [&] {
      for (const CommandPlace place : places) BOWLINE_RETURN_IF_ERROR(Issue(calls, place));
      return absl::OkStatus();
    }));
    parts.push_back({places.front(), stream, std::move(recording)});
  }
  places.clear();
  return absl::OkStatus();
}

}  // namespace bowline
