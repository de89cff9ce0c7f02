// Runs of a session: one at a time, or two in flight.

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/executor/binder.h"
#include "runtime/executor/recorder.h"
#include "runtime/executor/session.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

absl::Status Session::CreateRunEvents() {
  bool alternates = false, feeds = false;
  for (const fbs::Entry* entry : *plan().entries()) {
    alternates |= entry->in_flight() > 1;
    feeds |= SizeOf(entry->feeds()) > 0;
  }
  if (alternates || feeds) {
    BOWLINE_ASSIGN_OR_RETURN(begin_, device_->CreateEvent());
  }
  for (StartedRun& run : runs_) {
    while (alternates && run.ends.size() < bound_->streams.size()) {
      BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Event> end, device_->CreateEvent());
      run.ends.push_back(std::move(end));
    }
    if (alternates && faults_.has_value()) {
      BOWLINE_ASSIGN_OR_RETURN(run.faults,
                               device_->Allocate(words_.size() * sizeof(int32_t), hal::MemorySpace::kPinnedHost));
    }
  }
  return absl::OkStatus();
}

absl::Status Session::CheckMayBegin(int entry) const {
  if (entry < 0 || static_cast<uint32_t>(entry) >= plan().entries()->size() ||
      plan().programs()->Get(plan().entries()->Get(static_cast<uint32_t>(entry))->program())->role() != role_) {
    return absl::InvalidArgumentError(absl::StrCat("this rank has no entry ", entry));
  }
  size_t under_way = 0;
  for (const StartedRun& run : runs_) {
    if (!run.started) continue;
    ++under_way;
    if (ports_->Alternates(entry) && ports_->Alternates(run.entry)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "a run of entry ", Quoted(plan().entries()->Get(run.entry)->name()), " is under way; wait for it before entry ",
        Quoted(plan().entries()->Get(entry)->name()), " begins, or compile both entries with two runs in flight"));
  }
  if (under_way == runs_.size()) {
    return absl::FailedPreconditionError(absl::StrCat("entry ", Quoted(plan().entries()->Get(entry)->name()),
                                                      ": two runs are under way; wait for the first of them"));
  }
  return ports_->CheckInputs(*plan().entries()->Get(entry), static_cast<uint32_t>(entry));
}

absl::StatusOr<RunTicket> Session::Begin(int entry, bool marks_end) {
  BOWLINE_RETURN_IF_ERROR(CheckMayBegin(entry));
  const auto index = static_cast<uint32_t>(entry);
  // The times of commands are those of a run alone.
  if (tracer_ != nullptr || options_.profile) Drain();
  if (preparation_->Needs(index) && !is_prepared_) {
    Drain();
    BOWLINE_RETURN_IF_ERROR(Prepare());
  }
  RecordIfDue(entry, ports_->NextParity(index));
  // This comes before the run, which may have changed parameters even if it fails half-way.
  if (preparation_->Invalidates(index)) is_prepared_ = false;
  StartedRun& run = runs_[runs_[0].started ? 1 : 0];
  run.started = true;
  run.over = false;
  run.marked = marks_end && !run.ends.empty();
  run.number = ++last_run_;
  run.entry = entry;
  run.parity = ports_->NextParity(index);
  const auto begin = std::chrono::steady_clock::now();
  ports_->Begin(index, copies_);
  absl::Status status = Order(run);
  if (status.ok()) status = IssueEntry(entry, run.parity, LabelOfRun(run));
  if (status.ok() && run.marked) status = MarkEnd(run);
  if (!status.ok()) {
    run.status = std::move(status);
    run.over = true;
  }
  issue_time_ += std::chrono::steady_clock::now() - begin;
  return RunTicket{run.number};
}

// Makes a run begin on the device when the one before has ended on all streams.
absl::Status Session::Order(const StartedRun& run) {
  const StartedRun& other = runs_[&run == &runs_[0] ? 1 : 0];
  const bool follows = other.started && !other.over;
  if ((!follows && copies_.empty()) || bound_->streams.empty()) return absl::OkStatus();
  hal::Stream& first = *bound_->streams.front();
  first.SetLabel(LabelOfRun(run) | uint64_t{kFeedCall} << 32);
  for (size_t i = 0; i < other.ends.size() && follows; ++i) BOWLINE_RETURN_IF_ERROR(first.Wait(*other.ends[i]));
  for (const Ports::Copy& copy : copies_) {
    const fbs::Buffer &from = *plan().buffers()->Get(copy.from), &to = *plan().buffers()->Get(copy.to);
    for (uint32_t slot = 0; slot < to.slots(); ++slot) {
      BOWLINE_RETURN_IF_ERROR(first.Copy(AddressOf(to, slot), AddressOf(from, slot), to.bytes()));
    }
  }
  BOWLINE_RETURN_IF_ERROR(first.Record(*begin_));
  for (size_t i = 1; i < bound_->streams.size(); ++i) BOWLINE_RETURN_IF_ERROR(bound_->streams[i]->Wait(*begin_));
  return absl::OkStatus();
}

absl::Status Session::IssueParts(int entry, uint32_t parity, uint64_t label, const std::vector<RecordedPart>& parts) {
  const std::vector<BoundCall>& timeline = bound_->timelines[plan().entries()->Get(entry)->program()][parity];
  for (const RecordedPart& part : parts) {
    hal::Stream& stream = *bound_->streams[part.stream];
    if (part.recording != nullptr) {
      const absl::Status status = stream.Replay(*part.recording);
      if (!status.ok()) return FailedRun(status, entry, std::nullopt);
      continue;
    }
    const uint64_t place = LabelOf(part.place.call, part.place.command);
    stream.SetLabel(label | place);
    const absl::Status status =
        bound_->Issue(bound_->commands[timeline[part.place.call].first_command + part.place.command]);
    if (!status.ok()) return FailedCommand(status, entry, place);
  }
  return absl::OkStatus();
}

void Session::RecordIfDue(int entry, uint32_t parity) {
  if (recorder_ == nullptr) return;
  const uint32_t program = plan().entries()->Get(static_cast<uint32_t>(entry))->program();
  if (!recorder_->IsDue(program, parity)) return;
  Drain();
  const CommandPlace* failed = nullptr;
  const absl::Status status = recorder_->Record(program, parity, &failed);
  if (status.ok() || !options_.note) return;
  const absl::Status named = failed == nullptr ? FailedRun(status, entry, std::nullopt)
                                               : FailedCommand(status, entry, LabelOf(failed->call, failed->command));
  options_.note(absl::StrCat("runs are not recorded, and go on command by command: ", named.message()));
}

absl::StatusOr<RunTicket> Session::Start(int entry) {
  if (entry == preparation_->EntryOf(role_)) {
    return absl::InvalidArgumentError("the entry that prepares others is run, and not begun");
  }
  return Begin(entry, /*marks_end=*/true);
}

absl::Status Session::Wait(RunTicket ticket) {
  StartedRun* run = nullptr;
  for (StartedRun& candidate : runs_) {
    if (candidate.started && candidate.number == ticket.number) run = &candidate;
  }
  if (run == nullptr) {
    return absl::InvalidArgumentError(
        "nothing is under way by this ticket: it was waited for, or is another session's");
  }
  bool drains = !run->over && !run->marked;
  if (!run->over && run->marked) {
    for (const std::unique_ptr<hal::Event>& end : run->ends) drains |= !end->Await().ok();
    for (const std::unique_ptr<hal::Stream>& stream : bound_->streams) drains |= stream->HasFailed();
  }
  if (drains) Drain();
  run->over = true;
  run->started = false;
  absl::Status status = std::exchange(run->status, absl::OkStatus());
  if (status.ok() && has_faults_[static_cast<size_t>(run->entry)]) status = CheckFaults(*run);
  BOWLINE_RETURN_IF_ERROR(status);
  ports_->End(static_cast<uint32_t>(run->entry), run->parity);
  return absl::OkStatus();
}

absl::Status Session::Run(absl::string_view entry) {
  BOWLINE_ASSIGN_OR_RETURN(const int index, FindEntry(entry));
  return Run(index);
}

absl::Status Session::Run(int entry) {
  if (entry >= 0 && entry == preparation_->EntryOf(role_)) {
    BOWLINE_RETURN_IF_ERROR(CheckMayBegin(entry));
    is_prepared_ = false;
    return Prepare();
  }
  // A run alone needs no marks: it is over when the streams are empty.
  BOWLINE_ASSIGN_OR_RETURN(const RunTicket ticket, Begin(entry, runs_[0].started || runs_[1].started));
  return Wait(ticket);
}

absl::Status Session::Prepare() {
  const int entry = preparation_->EntryOf(role_);
  if (entry < 0 || is_prepared_) return absl::OkStatus();
  Drain();
  BOWLINE_RETURN_IF_ERROR(IssueEntry(entry, /*parity=*/0, /*label=*/0));
  BOWLINE_RETURN_IF_ERROR(Finish(entry));
  BOWLINE_RETURN_IF_ERROR(CheckPreparation(entry));
  is_prepared_ = true;
  return absl::OkStatus();
}

absl::Status Session::Synchronize(std::optional<uint64_t>* label) {
  absl::Status first;
  // Synchronize all streams, also after an error, so that later commands find streams that are as new.
  for (const std::unique_ptr<hal::Stream>& stream : bound_->streams) {
    absl::Status status = stream->Synchronize();
    if (status.ok()) continue;
    // Streams may fail in different runs; the first failure is that of the earlier run.
    const std::optional<uint64_t> failed = stream->FailedLabel();
    const bool is_earlier = failed.has_value() && label->has_value() && RunOf(*failed).number < RunOf(**label).number;
    if (!first.ok() && !is_earlier) continue;
    first = std::move(status);
    *label = failed;
  }
  return first;
}

absl::Status Session::Finish(int entry) {
  std::optional<uint64_t> label;
  const absl::Status status = Synchronize(&label);
  return status.ok() ? status : FailedRun(status, entry, label);
}

absl::Status Session::FailedRun(const absl::Status& status, int entry, std::optional<uint64_t> label) const {
  if (label.has_value()) return FailedCommand(status, entry, *label);
  return Annotate(status, absl::StrCat("entry ", Quoted(plan().entries()->Get(entry)->name())));
}

absl::Status Session::FailedBehind(const absl::Status& status, const StartedRun& run, const StartedRun& failed) const {
  return Annotate(
      status, absl::StrCat("entry ", Quoted(plan().entries()->Get(run.entry)->name()), " began behind a run of entry ",
                           Quoted(plan().entries()->Get(failed.entry)->name()), " that failed"));
}

void Session::Drain() {
  StartedRun* oldest = nullptr;
  for (StartedRun& run : runs_) {
    if (run.started && !run.over && (oldest == nullptr || run.number < oldest->number)) oldest = &run;
  }
  if (oldest == nullptr) return;
  std::optional<uint64_t> label;
  const absl::Status error = Synchronize(&label);
  StartedRun* failed = label.has_value() ? &RunOf(*label) : oldest;
  if (!failed->started || failed->over) failed = oldest;
  for (StartedRun& run : runs_) {
    if (!run.started || run.over) continue;
    run.over = true;
    if (error.ok() || run.number < failed->number) continue;
    run.status = &run == failed ? FailedRun(error, run.entry, label) : FailedBehind(error, run, *failed);
  }
}

}  // namespace bowline
