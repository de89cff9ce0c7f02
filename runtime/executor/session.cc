#include "runtime/executor/session.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "checker/PlanProof.h"
#include "runtime/drivers/builtin_drivers.h"
#include "runtime/executor/binder.h"
#include "runtime/executor/recorder.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

// `items` have name().
template <typename T>
std::string NamesOf(const flatbuffers::Vector<flatbuffers::Offset<T>>* items) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < SizeOf(items); ++i) names.push_back(Quoted(items->Get(i)->name()));
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

absl::Status CheckMachine(const fbs::Plan& plan, const SessionOptions& options, const std::string& driver,
                          const hal::Device& device) {
  const uint32_t ranks = RankCount(plan);
  const uint32_t given = options.group == nullptr ? 1 : static_cast<uint32_t>(options.group->ranks());
  if (ranks != given) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan is for ", ranks, " ranks (", DescribeMesh(plan), "), but ", given,
                     " run it; start that many, or compile the model for a mesh of ", given));
  }
  if (options.group == nullptr && SizeOf(plan.communicators()) > 0) {
    return absl::FailedPreconditionError(absl::StrCat("the plan is for one rank and has communicator ",
                                                      Quoted(plan.communicators()->Get(0)->name()),
                                                      ", but nobody to communicate with; compile the model again"));
  }
  const fbs::Target& target = *plan.target();
  const absl::Status fits = device.CheckTarget({target.device()->str(), target.arch()->str(), target.cpu()->str()});
  if (!fits.ok() && driver != target.device()->str()) {
    return absl::FailedPreconditionError(absl::StrCat("the plan was compiled for the device '", target.device()->str(),
                                                      "', which the driver '", driver,
                                                      "' is not; leave the driver away, and the plan's own is taken"));
  }
  BOWLINE_RETURN_IF_ERROR(fits);
  if (options.threads != 0 && options.threads != static_cast<int>(target.threads())) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan was compiled for ", target.threads(), " threads, not ", options.threads,
                     "; its workspace depends on that: compile the model again for ", options.threads, " threads"));
  }
  return absl::OkStatus();
}

absl::Status CheckRange(const fbs::Plan& plan, const TensorRef& tensor, uint64_t size, uint64_t offset) {
  if (offset <= tensor.bytes && size <= tensor.bytes - offset) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(size, " bytes at offset ", offset, " reach beyond buffer ",
                                                 Quoted(plan.buffers()->Get(tensor.buffer)->name()), " of ",
                                                 tensor.bytes, " bytes"));
}

// The certificates that came with the plan were compared when it was loaded.
absl::Status Prove(const fbs::Plan& plan) {
  BOWLINE_RETURN_IF_ERROR(RequireCertificates(plan));
  const absl::Status proven = ProvePlan(plan);
  if (proven.ok()) return proven;
  return absl::InvalidArgumentError(absl::StrCat(
      proven.message(), "; the plan was changed after it was compiled, or is damaged: compile the model again"));
}

bool TakesTime(const BoundCommand& command) { return command.kind != fbs::CommandBody::Signal; }

}  // namespace

Session::Session(LoadedPlan plan, const SessionOptions& options) : plan_(std::move(plan)), options_(options) {}

Session::~Session() {
  // Runs under way use all other members, so wait for the runs first.
  std::optional<uint64_t> label;
  if (bound_ != nullptr) (void)Synchronize(&label);
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(LoadedPlan loaded, const SessionOptions& options) {
  auto session = std::unique_ptr<Session>(new Session(std::move(loaded), options));
  const fbs::Plan& plan = session->plan();
  const std::string file = absl::StrCat("'", session->plan_.name(), "'");
  BOWLINE_RETURN_IF_ERROR(Annotate(RequireCode(plan), file));
  if (options.prove) BOWLINE_RETURN_IF_ERROR(Annotate(Prove(plan), file));
  hal::DeviceOptions device_options;
  device_options.threads = static_cast<int>(plan.target()->threads());
  if (options.group != nullptr) session->rank_ = static_cast<uint32_t>(options.group->rank());
  device_options.rank = static_cast<int>(session->rank_);
  const std::string driver = options.driver.empty() ? plan.target()->device()->str() : options.driver;
  BOWLINE_ASSIGN_OR_RETURN(hal::DriverChoice choice, hal::ParseDriverChoice(driver));
  device_options.settings = std::move(choice.settings);
  BOWLINE_ASSIGN_OR_RETURN(session->device_, AllDrivers(options.driver_path).CreateDevice(choice.name, device_options));
  BOWLINE_RETURN_IF_ERROR(Annotate(CheckMachine(plan, options, choice.name, *session->device_), file));
  session->role_ = RoleOf(plan, session->rank_);
  for (uint32_t i = 0; i < plan.states()->size(); ++i) {
    if (plan.buffers()->Get(plan.states()->Get(i)->buffer())->role() == session->role_) session->states_.push_back(i);
  }
  BOWLINE_RETURN_IF_ERROR(Annotate(session->Allocate(), file));
  ArenaAddresses addresses = {};
  for (size_t space = 0; space < addresses.size(); ++space) {
    if (session->arenas_[space] != nullptr) addresses[space] = session->arenas_[space]->address();
  }
  auto bound =
      Binder(plan, *session->device_, addresses, options.group, session->options_.links, options.compute).Bind();
  if (!bound.ok()) return Annotate(bound.status(), file);
  session->bound_ = std::make_unique<BoundPlan>(*std::move(bound));
  session->SayNotes();
  BOWLINE_RETURN_IF_ERROR(session->FillConstants());
  session->preparation_ = std::make_unique<const Preparation>(plan);
  session->ports_ = std::make_unique<Ports>(plan, session->role_);
  BOWLINE_RETURN_IF_ERROR(session->FindFaults());
  BOWLINE_RETURN_IF_ERROR(session->CreateRunEvents());
  if (options.trace) session->tracer_ = std::make_unique<Tracer>(session->device_.get(), plan.entries()->size());
  const bool times_commands = options.profile || options.trace;
  if (session->device_->CanRecord() && !times_commands) {
    session->recorder_ = std::make_unique<Recorder>(session->device_.get(), session->bound_.get());
  }
  // A replay is one command, within which no event has a time.
  if (session->device_->CanRecord() && times_commands && options.note && session->rank_ == 0) {
    options.note("the times of commands are taken, so runs are not recorded: each command is issued by itself");
  }
  if (options.profile) {
    session->timings_.resize(plan.kernels()->size() + 2);
    BOWLINE_ASSIGN_OR_RETURN(session->command_begin_, session->device_->CreateEvent(hal::EventMode::kTimed));
    BOWLINE_ASSIGN_OR_RETURN(session->command_end_, session->device_->CreateEvent(hal::EventMode::kTimed));
  }
  return session;
}

void Session::SayNotes() const {
  if (!options_.note) return;
  std::map<std::string, std::vector<size_t>> kernels;  // by note
  for (size_t i = 0; i < bound_->launchables.size(); ++i) {
    const std::string note = bound_->launchables[i] == nullptr ? "" : bound_->launchables[i]->Note();
    if (!note.empty()) kernels[note].push_back(i);
  }
  for (const auto& [note, numbers] : kernels) {
    options_.note(absl::StrCat(numbers.size() == 1 ? "kernel " : "kernels ", absl::StrJoin(numbers, ", "), ": ", note));
  }
}

absl::Status Session::Allocate() {
  for (const auto& [space, where] : {std::pair(fbs::MemorySpace::Device, hal::MemorySpace::kDevice),
                                     std::pair(fbs::MemorySpace::PinnedHost, hal::MemorySpace::kPinnedHost)}) {
    const uint64_t bytes = ArenaBytes(plan(), role_, space);
    if (bytes == 0 && space != fbs::MemorySpace::Device) continue;
    auto arena = device_->Allocate(bytes, where);
    if (!arena.ok()) {
      return Annotate(arena.status(), space == fbs::MemorySpace::Device ? "the arena" : "the arena in PinnedHost");
    }
    arenas_[static_cast<size_t>(space)] = *std::move(arena);
  }
  external_ = std::make_unique<ExternalMemory>(plan(), role_, *device_);
  return absl::OkStatus();
}

hal::DeviceAddress Session::AddressOf(const fbs::Buffer& buffer, uint32_t slot) const {
  return ArenaOf(buffer).address() + OffsetOf(buffer, slot);
}

absl::Status Session::FillConstants() {
  for (uint32_t i = 0; i < SizeOf(plan().constants()); ++i) {
    const fbs::ConstantData& constant = *plan().constants()->Get(i);
    const fbs::Buffer& buffer = *plan().buffers()->Get(constant.buffer());
    if (buffer.role() != role_) continue;
    BOWLINE_RETURN_IF_ERROR(ArenaOf(buffer).Write(buffer.offset(), {constant.data()->data(), constant.data()->size()}));
  }
  for (uint32_t i = 0; i < SizeOf(plan().coordinates()); ++i) {
    const fbs::Coordinate& coordinate = *plan().coordinates()->Get(i);
    const fbs::Buffer& buffer = *plan().buffers()->Get(coordinate.buffer());
    if (buffer.role() != role_) continue;
    const auto place = static_cast<int32_t>(PlaceAlong(plan(), coordinate.axes(), rank_));
    BOWLINE_RETURN_IF_ERROR(
        ArenaOf(buffer).Write(buffer.offset(), {reinterpret_cast<const uint8_t*>(&place), sizeof(place)}));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Session::FindEntry(absl::string_view name) const {
  for (uint32_t i = 0; i < plan().entries()->size(); ++i) {
    const fbs::Entry& entry = *plan().entries()->Get(i);
    if (TextOf(entry.name()) == name && plan().programs()->Get(entry.program())->role() == role_) {
      return static_cast<int>(i);
    }
  }
  return absl::NotFoundError(
      absl::StrCat("'", plan_.name(), "' has no entry '", name, "'; it has ", NamesOf(plan().entries())));
}

absl::StatusOr<int> Session::FindEntry(fbs::EntryKind kind, uint32_t bucket) const {
  for (uint32_t i = 0; i < plan().entries()->size(); ++i) {
    const fbs::Entry& entry = *plan().entries()->Get(i);
    if (entry.kind() == kind && entry.bucket() == bucket && plan().programs()->Get(entry.program())->role() == role_) {
      return static_cast<int>(i);
    }
  }
  return absl::NotFoundError(absl::StrCat("'", plan_.name(), "' has no entry of kind ", fbs::EnumNameEntryKind(kind),
                                          bucket == 0 ? "" : absl::StrCat(" and bucket ", bucket), "; it has ",
                                          NamesOf(plan().entries())));
}

TensorRef Session::BufferAt(uint32_t index, uint32_t slot) const {
  const fbs::Buffer& buffer = *plan().buffers()->Get(index);
  TensorRef tensor;
  tensor.buffer = index;
  tensor.slot = slot;
  tensor.bytes = buffer.bytes();
  tensor.dtype = buffer.dtype();
  if (buffer.shape() != nullptr) tensor.shape = {buffer.shape()->data(), buffer.shape()->size()};
  return tensor;
}

absl::StatusOr<uint64_t> Session::OffsetFor(absl::string_view what, const TensorRef& tensor) const {
  const Ports::Place place = ports_->PlaceOf(tensor.buffer);
  for (const StartedRun& run : runs_) {
    if (!run.started || (place.entry >= 0 && (run.entry != place.entry || run.parity != place.parity))) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("a run of entry ", Quoted(plan().entries()->Get(run.entry)->name()), " is under way, and buffer ",
                     Quoted(plan().buffers()->Get(tensor.buffer)->name()), " cannot be ", what,
                     " meanwhile; wait for the run first"));
  }
  return OffsetOf(*plan().buffers()->Get(place.buffer), tensor.slot);
}

absl::Status Session::Read(const TensorRef& tensor, absl::Span<uint8_t> bytes, uint64_t offset) const {
  BOWLINE_RETURN_IF_ERROR(CheckRange(plan(), tensor, bytes.size(), offset));
  BOWLINE_ASSIGN_OR_RETURN(const uint64_t begin, OffsetFor("read", tensor));
  if (external_->Has(tensor.buffer)) return external_->Read(tensor.buffer, offset, bytes);
  return ArenaOf(*plan().buffers()->Get(tensor.buffer)).Read(begin + offset, bytes);
}

absl::Status Session::Write(const TensorRef& tensor, absl::Span<const uint8_t> bytes, uint64_t offset) {
  BOWLINE_RETURN_IF_ERROR(CheckRange(plan(), tensor, bytes.size(), offset));
  const bool is_input = ports_->IsInput(tensor.buffer);
  if (is_input) BOWLINE_RETURN_IF_ERROR(ports_->CheckInput(tensor, bytes));
  BOWLINE_ASSIGN_OR_RETURN(const uint64_t begin, OffsetFor("written", tensor));
  const fbs::Buffer& buffer = *plan().buffers()->Get(tensor.buffer);
  if (IsState(buffer.kind())) is_prepared_ = false;
  if (external_->Has(tensor.buffer)) {
    const hal::DeviceAddress before = external_->AddressOf(tensor.buffer);
    const absl::Status status = external_->Write(tensor.buffer, offset, bytes);
    MoveExternal(tensor.buffer, before);
    return status;
  }
  BOWLINE_RETURN_IF_ERROR(ArenaOf(buffer).Write(begin + offset, bytes));
  if (is_input) ports_->MarkWritten(tensor, bytes);
  return absl::OkStatus();
}

absl::StatusOr<bool> Session::Borrow(const TensorRef& tensor, absl::Span<const uint8_t> memory,
                                     const std::shared_ptr<const void>& owner) {
  if (!external_->Has(tensor.buffer)) return false;
  if (memory.size() != tensor.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("buffer ", Quoted(plan().buffers()->Get(tensor.buffer)->name()),
                                                   " has ", tensor.bytes, " bytes, but ", memory.size(),
                                                   " are given to be read in place"));
  }
  BOWLINE_RETURN_IF_ERROR(OffsetFor("replaced", tensor).status());
  is_prepared_ = false;
  const hal::DeviceAddress before = external_->AddressOf(tensor.buffer);
  const bool borrowed = external_->Borrow(tensor.buffer, memory, owner);
  MoveExternal(tensor.buffer, before);
  return borrowed;
}

void Session::MoveExternal(uint32_t buffer, hal::DeviceAddress before) {
  const hal::DeviceAddress now = external_->AddressOf(buffer);
  bound_->MoveExternal(buffer, before, now);
  if (now != before && recorder_ != nullptr) recorder_->Forget();
}

absl::StatusOr<TensorRef> Session::FindPort(const flatbuffers::Vector<flatbuffers::Offset<fbs::Port>>* ports,
                                            absl::string_view kind, absl::string_view entry, absl::string_view port,
                                            uint32_t slot) const {
  for (uint32_t i = 0; i < SizeOf(ports); ++i) {
    if (TextOf(ports->Get(i)->name()) != port) continue;
    const uint32_t buffer = ports->Get(i)->buffer();
    const uint32_t slots = plan().buffers()->Get(buffer)->slots();
    if (slot < slots) return BufferAt(buffer, slot);
    return absl::OutOfRangeError(
        absl::StrCat(kind, " '", port, "' of entry '", entry, "' has ", slots, " slots; there is no slot ", slot));
  }
  return absl::NotFoundError(
      absl::StrCat("entry '", entry, "' has no ", kind, " '", port, "'; it has ", NamesOf(ports)));
}

absl::StatusOr<TensorRef> Session::Input(absl::string_view entry, absl::string_view port, uint32_t slot) const {
  BOWLINE_ASSIGN_OR_RETURN(const int index, FindEntry(entry));
  return FindPort(plan().entries()->Get(index)->inputs(), "input", entry, port, slot);
}

absl::StatusOr<TensorRef> Session::Output(absl::string_view entry, absl::string_view port, uint32_t slot) const {
  BOWLINE_ASSIGN_OR_RETURN(const int index, FindEntry(entry));
  return FindPort(plan().entries()->Get(index)->outputs(), "output", entry, port, slot);
}

TensorRef Session::StateAt(uint32_t index) const { return BufferAt(plan().states()->Get(index)->buffer()); }

absl::StatusOr<TensorRef> Session::State(absl::string_view key) const {
  for (const uint32_t i : states_) {
    if (TextOf(plan().states()->Get(i)->key()) == key) return StateAt(i);
  }
  return absl::NotFoundError(absl::StrCat("'", plan_.name(), "' has no state '", key, "'"));
}

template <typename Body>
absl::Status Session::ForEachCommand(int entry, uint32_t parity, uint64_t label, Body body) {
  const std::vector<BoundCall>& timeline = bound_->timelines[plan().entries()->Get(entry)->program()][parity];
  for (uint32_t call = 0; call < timeline.size(); ++call) {
    for (uint32_t i = 0; i < timeline[call].command_count; ++i) {
      const BoundCommand& command = bound_->commands[timeline[call].first_command + i];
      bound_->streams[command.stream]->SetLabel(label | LabelOf(call, i));
      if (absl::Status status = body(command); !status.ok()) return FailedCommand(status, entry, LabelOf(call, i));
    }
  }
  return absl::OkStatus();
}

absl::Status Session::IssueEntry(int entry, uint32_t parity, uint64_t label) {
  if (bound_->reads_external[plan().entries()->Get(static_cast<uint32_t>(entry))->program()]) {
    BOWLINE_RETURN_IF_ERROR(Annotate(external_->CheckComplete(), absl::StrCat("entry '", NameOf(entry), "'")));
  }
  // It is over when this returns, as it is where commands are timed one by one.
  if (tracer_ != nullptr) return IssueTraced(entry, parity);
  if (options_.profile) {
    return ForEachCommand(entry, parity, label, [&](const BoundCommand& command) { return IssueProfiled(command); });
  }
  if (recorder_ != nullptr) {
    const auto* parts = recorder_->Find(plan().entries()->Get(static_cast<uint32_t>(entry))->program(), parity);
    if (parts != nullptr) return IssueParts(entry, parity, label, *parts);
  }
  return ForEachCommand(entry, parity, label, [&](const BoundCommand& command) { return bound_->Issue(command); });
}

absl::Status Session::IssueProfiled(const BoundCommand& command) {
  hal::Stream& stream = *bound_->streams[command.stream];
  BOWLINE_RETURN_IF_ERROR(stream.Record(*command_begin_));
  BOWLINE_RETURN_IF_ERROR(bound_->Issue(command));
  BOWLINE_RETURN_IF_ERROR(stream.Record(*command_end_));
  BOWLINE_RETURN_IF_ERROR(stream.Synchronize());
  BOWLINE_ASSIGN_OR_RETURN(const int64_t begin, command_begin_->Time());
  BOWLINE_ASSIGN_OR_RETURN(const int64_t end, command_end_->Time());
  const size_t row = command.kind == fbs::CommandBody::Launch ? command.kernel
                     : command.kind == fbs::CommandBody::Copy ? timings_.size() - 2
                                                              : timings_.size() - 1;
  ++timings_[row].launches;
  timings_[row].nanoseconds += end - begin;
  return absl::OkStatus();
}

absl::Status Session::IssueTraced(int entry, uint32_t parity) {
  const std::vector<BoundCall>& timeline = bound_->timelines[plan().entries()->Get(entry)->program()][parity];
  std::vector<TraceEvent> sites;
  for (uint32_t call = 0; call < timeline.size(); ++call) {
    for (uint32_t i = 0; i < timeline[call].command_count; ++i) {
      if (TakesTime(bound_->commands[timeline[call].first_command + i])) sites.push_back({call, i});
    }
  }
  BOWLINE_RETURN_IF_ERROR(tracer_->Begin(sites.size()));
  size_t next = 0;
  BOWLINE_RETURN_IF_ERROR(ForEachCommand(entry, parity, /*label=*/0, [&](const BoundCommand& command) -> absl::Status {
    if (!TakesTime(command)) return bound_->Issue(command);
    hal::Stream& stream = *bound_->streams[command.stream];
    BOWLINE_RETURN_IF_ERROR(tracer_->StampBegin(stream, next));
    BOWLINE_RETURN_IF_ERROR(bound_->Issue(command));
    return tracer_->StampEnd(stream, next++);
  }));
  BOWLINE_RETURN_IF_ERROR(Finish(entry));
  return tracer_->End(entry, sites);
}

absl::Status Session::FailedCommand(const absl::Status& status, int entry, uint64_t label) const {
  const auto call = static_cast<uint32_t>(label >> 32 & kFeedCall), index = static_cast<uint32_t>(label);
  const fbs::Entry& e = *plan().entries()->Get(entry);
  if (call == kFeedCall) {
    return Annotate(
        status, absl::StrCat("entry ", Quoted(e.name()), ": while outputs of the last run became inputs of this one"));
  }
  const fbs::Program& program = *plan().programs()->Get(e.program());
  const fbs::SegmentCall& c = *program.timeline()->Get(call);
  const fbs::Segment& segment = *program.segments()->Get(c.segment());
  const fbs::Command& command = *segment.commands()->Get(index);
  return Annotate(
      status, absl::StrCat("entry ", Quoted(e.name()), ", segment ", Quoted(segment.name()), " (call ", call, ", slot ",
                           c.slot(), "), command ", index, ", ", DescribeCommand(plan(), command), ", from ",
                           DescribeSource(plan(), command.source())));
}

std::optional<double> Session::IssueSeconds() const {
  if (device_->ComputesInCalls() && options_.compute == hal::StreamMode::kInline) return std::nullopt;
  return std::chrono::duration<double>(issue_time_).count();
}

std::vector<ProfileRow> Session::Profile() const {
  std::vector<ProfileRow> rows;
  for (size_t i = 0; i < timings_.size(); ++i) {
    if (timings_[i].launches == 0) continue;
    ProfileRow row;
    row.name = i + 1 < timings_.size() ? "copy" : "communication";
    row.launches = timings_[i].launches;
    row.seconds = static_cast<double>(timings_[i].nanoseconds) * 1e-9;
    if (i < plan().kernels()->size()) {
      const fbs::Kernel& kernel = *plan().kernels()->Get(static_cast<uint32_t>(i));
      row.name = kernel.name()->str();
      row.generated = kernel.origin() == fbs::KernelOrigin::Generated;
      row.flops = kernel.flops() * static_cast<double>(row.launches);
      row.bytes_moved = kernel.bytes_moved() * static_cast<double>(row.launches);
    }
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const ProfileRow& a, const ProfileRow& b) {
    return std::tie(b.seconds, a.name) < std::tie(a.seconds, b.name);
  });
  return rows;
}

}  // namespace bowline
