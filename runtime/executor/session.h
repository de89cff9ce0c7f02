#ifndef BOWLINE_RUNTIME_EXECUTOR_SESSION_H_
#define BOWLINE_RUNTIME_EXECUTOR_SESSION_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/comm/group.h"
#include "runtime/executor/external_memory.h"
#include "runtime/executor/links.h"
#include "runtime/executor/ports.h"
#include "runtime/executor/tensor_ref.h"
#include "runtime/executor/trace.h"
#include "runtime/hal/device.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/view/preparation.h"

namespace bowline {

struct BoundCommand;
struct BoundPlan;
struct RecordedPart;
class Recorder;

struct SessionOptions {
  // "NAME" or "NAME:KEY=VALUE,...". Empty selects the driver that has the name of the plan's target device. Plugins are
  // searched for in `driver_path` first, then in the folders that AllDrivers lists.
  std::string driver = {};
  std::string driver_path = {};
  // The number of host threads. 0 takes the number that the plan was compiled for; any other number must equal it.
  int threads = 0;
  // Times every command by itself, for Profile(): commands do not overlap then. Costs nothing if false.
  bool profile = false;
  // Records when each command begins and ends on its stream, for Trace(). Streams overlap as without it. Costs nothing
  // if false. Do not set it together with `profile`.
  bool trace = false;
  // The mode of the first stream, which runs the compute kernels. kWorker runs it beside the caller even on devices
  // that otherwise compute within calls.
  hal::StreamMode compute = hal::StreamMode::kInline;
  // All ranks of the run; this session runs one of them. Must outlive the session. Null for a run of one rank.
  RankGroup* group = nullptr;
  // The links to emulate between ranks, keyed by mesh axis. The key "" covers all axes without a key.
  LinkTable links = {};
  // Makes Create prove that commands cannot race, deadlock or read bytes that nobody wrote (checker/PlanProof.h), and
  // refuse a plan for several ranks without certificates. False runs any plan that VerifyPlan accepts, to observe it.
  bool prove = true;
  // Called with each note for the user, at most once per note. A note is not an error: the run continues.
  std::function<void(absl::string_view)> note = {};
};

// Identifies a run from Start until Wait has returned for it.
struct RunTicket {
  uint64_t number = 0;
};

// The total time so far of one kernel of the plan, of all copies, or of all communication, signals and waits included.
struct ProfileRow {
  std::string name;
  bool generated = false;
  uint64_t launches = 0;
  double seconds = 0;
  double flops = 0;        // sum over all launches, as the plan states them
  double bytes_moved = 0;  // likewise
};

// Runs one rank of a plan on one device. Owns the rank's memory, its loaded kernels, and each entry's commands with
// their addresses. The host accesses tensors through Read and Write. States keep their values between runs; they are
// undefined until the entry of kind Init ran or the caller wrote them. One thread at a time uses a session.
//
// A plan may have an entry of kind Prepare (runtime/plan/view/preparation.h). The session runs it before any entry that
// reads its results, if an entry or the caller may have written parameters since it last ran.
class Session {
 public:
  // All ranks of a group must create their sessions at the same time. Returns kFailedPrecondition if the plan is for
  // another machine, thread count or number of ranks, or lacks certificates or generated code. Returns
  // kInvalidArgument, with a counter-example, if a proof fails, and also if a kernel refuses its signature. Returns
  // kResourceExhausted if the memory of the host or the device does not suffice for the arena; kNotFound for an unknown
  // driver, or if this build lacks a kernel.
  static absl::StatusOr<std::unique_ptr<Session>> Create(LoadedPlan plan, const SessionOptions& options = {});
  ~Session();

  const fbs::Plan& plan() const { return plan_.plan(); }
  const LoadedPlan& loaded_plan() const { return plan_; }
  // This rank of the run, and its role in the plan. All ranks of one role run the same commands.
  uint32_t rank() const { return rank_; }
  uint32_t role() const { return role_; }

  // The index in Plan.entries of this role's entry. The error kNotFound lists the plan's entries.
  absl::StatusOr<int> FindEntry(absl::string_view name) const;
  absl::StatusOr<int> FindEntry(fbs::EntryKind kind, uint32_t bucket = 0) const;
  // The name of an entry.
  absl::string_view NameOf(int entry) const { return TextOf(plan().entries()->Get(entry)->name()); }

  // Begins a run of an entry; Wait returns its result. A second run may begin before the first was waited for if both
  // entries were compiled with two runs in flight (Entry.in_flight). The device begins the second run when the first
  // has ended. Meanwhile the host may write inputs of the next run, and read outputs of the run that was waited for
  // last. It can access no other tensor while a run is under way. If SessionOptions.compute is kInline, a device may
  // have executed the whole run when Start returns.
  //
  // An input that an output feeds (Entry.feeds) takes its value from the previous run, unless the caller wrote it.
  //
  // Returns kFailedPrecondition if an input was not written since the last run, so that its value is undefined, or if
  // the run may not overlap runs under way; kInvalidArgument for an unsuitable entry or bad sequences. No run began.
  absl::StatusOr<RunTicket> Start(int entry);
  // Waits until this run and all runs that began before it have ended. Runs may be waited for in any order. An error
  // names entry, segment, command and source, as far as the device knows them; states may be half updated then. Returns
  // kInvalidArgument if a kernel found its data invalid. If a run fails, the run that began after it fails too.
  absl::Status Wait(RunTicket ticket);

  // Runs an entry to its end: Start, then Wait, with the errors of both. A run without an error allocates nothing,
  // takes no lock and touches no string. The one exception: the session may record the commands (hal::Device::Record)
  // before the second run.
  absl::Status Run(int entry);
  absl::Status Run(absl::string_view entry);
  // Runs the entry of kind Prepare now if it is due, so that the next run does not wait for it. Does nothing if the
  // plan has no such entry.
  absl::Status Prepare();

  // The tensor of an entry's port. A port with several slots (microbatches) has one tensor per slot. The error
  // kNotFound lists the ports. Returns kOutOfRange for a slot that the port does not have.
  absl::StatusOr<TensorRef> Input(absl::string_view entry, absl::string_view port, uint32_t slot = 0) const;
  absl::StatusOr<TensorRef> Output(absl::string_view entry, absl::string_view port, uint32_t slot = 0) const;

  // The states of this rank's role, as indices into plan().states().
  absl::Span<const uint32_t> states() const { return states_; }
  // State finds a parameter or other state by its key in checkpoints. StateAt takes an index into plan().states().
  absl::StatusOr<TensorRef> State(absl::string_view key) const;
  TensorRef StateAt(uint32_t index) const;
  // The tensor in a slot of any buffer of this rank's role.
  TensorRef BufferAt(uint32_t buffer, uint32_t slot = 0) const;

  // Copy between the host and the bytes of a tensor from `offset` on. kFailedPrecondition while a run under way may use
  // them (see Start). Returns kInvalidArgument for bytes beyond the tensor's end, a partial write of an input, or an
  // input element outside its port's limit (naming entry, port and element); nothing was written then.
  absl::Status Write(const TensorRef& tensor, absl::Span<const uint8_t> bytes, uint64_t offset = 0);
  absl::Status Read(const TensorRef& tensor, absl::Span<uint8_t> bytes, uint64_t offset = 0) const;
  // Makes `memory` the memory of a tensor of space External, without a copy. `memory` has the tensor's size, and
  // `owner` keeps it alive and unchanged. Returns false if the tensor is of another space or the device cannot read
  // `memory` in place. The caller has to Write the tensor then.
  absl::StatusOr<bool> Borrow(const TensorRef& tensor, absl::Span<const uint8_t> memory,
                              const std::shared_ptr<const void>& owner);
  // The bytes of the tensors of space External: those read in the caller's memory, and those copied to the device.
  ExternalBytes external_bytes() const { return external_->bytes(); }
  // Write or read all elements of a tensor.
  template <typename T>
  absl::Status WriteAll(const TensorRef& tensor, absl::Span<const T> elements) {
    return Write(tensor, {reinterpret_cast<const uint8_t*>(elements.data()), elements.size() * sizeof(T)});
  }
  template <typename T>
  absl::Status ReadAll(const TensorRef& tensor, absl::Span<T> elements) const {
    return Read(tensor, {reinterpret_cast<uint8_t*>(elements.data()), elements.size() * sizeof(T)});
  }

  // The seconds that the calling thread has spent so far on handing the commands of runs to the device. Absent if the
  // device computes within these calls.
  std::optional<double> IssueSeconds() const;

  // A row for each kernel that ran, a row for copies and a row for communication, sorted from slowest to fastest. Empty
  // unless SessionOptions.profile is set.
  std::vector<ProfileRow> Profile() const;

  // The last Tracer::kKeptRuns runs of each entry with their commands' times; empty unless SessionOptions.trace is set.
  std::vector<TracedRun> Trace() const { return tracer_ == nullptr ? std::vector<TracedRun>() : tracer_->Runs(); }

  hal::Device& device() { return *device_; }
  // The arena of space Device. The caller may write to it, so the entry of kind Prepare counts as due from then on.
  hal::Allocation& arena() {
    is_prepared_ = false;
    return *arenas_[static_cast<size_t>(fbs::MemorySpace::Device)];
  }

 private:
  Session(LoadedPlan plan, const SessionOptions& options);

  // One run, from Start until Wait has returned for it.
  struct StartedRun {
    bool started = false;
    bool over = false;    // ended with `status`
    bool marked = false;  // the events `ends` were recorded after the run's last commands
    uint64_t number = 0;
    int entry = 0;
    uint32_t parity = 0;
    absl::Status status;
    std::vector<std::unique_ptr<hal::Event>> ends;  // by stream; empty if no entry has two runs in flight
    std::unique_ptr<hal::Allocation> faults;        // a marked run's copy of the fault words, in pinned memory
  };
  // The call index in the labels of copies that feed inputs: these copies belong to no call of a segment.
  static constexpr uint32_t kFeedCall = 0x7fffffff;

  // Passes the device's notes on its kernels (hal::Launchable::Note) to options_.note, each text once.
  void SayNotes() const;
  absl::Status Allocate();
  absl::Status FillConstants();
  hal::Allocation& ArenaOf(const fbs::Buffer& buffer) const { return *arenas_[static_cast<size_t>(buffer.space())]; }
  // The device address of a slot of a buffer in an arena.
  hal::DeviceAddress AddressOf(const fbs::Buffer& buffer, uint32_t slot) const;
  absl::StatusOr<TensorRef> FindPort(const flatbuffers::Vector<flatbuffers::Offset<fbs::Port>>* ports,
                                     absl::string_view kind, absl::string_view entry, absl::string_view port,
                                     uint32_t slot) const;
  // The current offset of the host's view of a tensor in its arena: the buffer of a port may alternate between runs.
  // Returns kFailedPrecondition if a run under way may use the tensor.
  absl::StatusOr<uint64_t> OffsetFor(absl::string_view what, const TensorRef& tensor) const;

  // Rebases bound commands from `before` to the current address of a buffer of space External.
  void MoveExternal(uint32_t buffer, hal::DeviceAddress before);

  absl::Status CreateRunEvents();
  absl::Status CheckMayBegin(int entry) const;
  absl::StatusOr<RunTicket> Begin(int entry, bool marks_end);
  absl::Status Order(const StartedRun& run);
  // The bit in the labels of a run's commands that tells which element of runs_ the run is.
  uint64_t LabelOfRun(const StartedRun& run) const { return uint64_t{&run == &runs_[1]} << 63; }
  StartedRun& RunOf(uint64_t label) { return runs_[label >> 63]; }
  // Waits for all runs under way, and stores in each run how it ended.
  void Drain();
  absl::Status Synchronize(std::optional<uint64_t>* label);
  // The label of a command on its stream: the call's index in the timeline, and the command's index in the segment.
  static uint64_t LabelOf(uint32_t call, uint32_t command) { return uint64_t{call} << 32 | command; }
  // Copies the run's fault words, and records its `ends` in the streams.
  absl::Status MarkEnd(StartedRun& run);
  absl::Status FindFaults();
  absl::Status ClearFaults();
  // Returns the first fault that kernels of an ended run found in their data, as an error. If there is one, clears all
  // fault words, and lets the run that began after this one fail.
  absl::Status CheckFaults(StartedRun& run);
  // Returns the first fault of the entry of kind Prepare, which has just run, as an error. Clears the words of that
  // entry only: runs that nobody has waited for may have set others.
  absl::Status CheckPreparation(int entry);
  // Copy the fault words from the device to words_, and from words_ to the device.
  absl::Status ReadFaults();
  absl::Status WriteFaults();
  // A launch of an entry, and its operand that holds a given fault word; `operand` is null if no launch has one.
  struct FaultPlace {
    uint32_t segment = 0, command = 0;
    const fbs::Operand* operand = nullptr;
  };
  FaultPlace FindFault(int entry, size_t word) const;
  absl::Status DescribeFault(int entry, size_t word) const;

  absl::Status IssueEntry(int entry, uint32_t parity, uint64_t label);
  absl::Status IssueTraced(int entry, uint32_t parity);
  // Calls body(command) for each command of an entry, in the order of issue.
  template <typename Body>
  absl::Status ForEachCommand(int entry, uint32_t parity, uint64_t label, Body body);
  // Issues a run in the parts that the Recorder made of it.
  absl::Status IssueParts(int entry, uint32_t parity, uint64_t label, const std::vector<RecordedPart>& parts);
  // Records the run that is about to begin if it is due (Recorder::IsDue). If recording fails, reports a note.
  void RecordIfDue(int entry, uint32_t parity);
  absl::Status IssueProfiled(const BoundCommand& command);
  // Waits until the commands have ended. All commands of the run were issued, and no other run is under way.
  absl::Status Finish(int entry);
  absl::Status FailedBehind(const absl::Status& status, const StartedRun& run, const StartedRun& failed) const;
  absl::Status FailedRun(const absl::Status& status, int entry, std::optional<uint64_t> label) const;
  absl::Status FailedCommand(const absl::Status& status, int entry, uint64_t label) const;

  LoadedPlan plan_;
  SessionOptions options_;
  uint32_t rank_ = 0;
  uint32_t role_ = 0;
  std::vector<uint32_t> states_;
  std::unique_ptr<hal::Device> device_;
  // The arena of each fbs::MemorySpace; null where the role has none, and for External.
  std::array<std::unique_ptr<hal::Allocation>, static_cast<size_t>(fbs::MemorySpace::MAX) + 1> arenas_;
  std::unique_ptr<ExternalMemory> external_;
  std::unique_ptr<BoundPlan> bound_;
  std::unique_ptr<Recorder> recorder_;  // null: the device records nothing, or commands are timed
  std::chrono::steady_clock::duration issue_time_{0};
  std::unique_ptr<const Preparation> preparation_;
  bool is_prepared_ = false;  // the entry of kind Prepare has run since parameters changed
  std::unique_ptr<Ports> ports_;
  std::array<StartedRun, 2> runs_;
  uint64_t last_run_ = 0;
  std::unique_ptr<hal::Event> begin_;  // other streams wait for it: the previous run ended, its feeds were copied
  absl::optional<uint32_t> faults_;    // index of this role's buffer of kind Fault
  std::vector<bool> has_faults_;       // by entry: true if the entry writes the Fault buffer
  std::vector<int32_t> words_;         // the words of the Fault buffer, as last read
  std::vector<Ports::Copy> copies_;    // feeds of the run that begins now
  // Times of the plan's kernels, indexed like Plan.kernels, then two more entries: copies and communication.
  struct Timing {
    uint64_t launches = 0;
    int64_t nanoseconds = 0;
  };
  std::vector<Timing> timings_;
  std::unique_ptr<hal::Event> command_begin_, command_end_;  // around the command that is being timed
  std::unique_ptr<Tracer> tracer_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_SESSION_H_
