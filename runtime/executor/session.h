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
  // "NAME" or "NAME:KEY=VALUE,..."; empty: the driver with the name of the plan's target device. Plugins are looked for
  // in `driver_path`, and where AllDrivers does.
  std::string driver = {};
  std::string driver_path = {};
  // 0: as many as the plan was compiled for. Anything else must be that number.
  int threads = 0;
  // Times every command. Off, it costs nothing.
  bool profile = false;
  // Takes the time of each command on its stream, while they overlap as ever. Off, it costs nothing. Not with
  // `profile`.
  bool trace = false;
  // The mode of the stream that computes: with kWorker it runs beside the caller also on devices that otherwise compute
  // within calls.
  hal::StreamMode compute = hal::StreamMode::kInline;
  // All ranks of the run, of which this session is one; it outlives the session. Null: a run of one rank.
  RankGroup* group = nullptr;
  // Links to emulate, by axis of the mesh.
  LinkTable links = {};
  // Proves that commands cannot race, hang or read bytes that nobody wrote (checker/PlanProof.h), and refuses a plan
  // for several ranks without certificates. Off: any plan that VerifyPlan accepts is run, to observe it.
  bool prove = true;
  // Receives each note for the user, at most once. A note does not end a run.
  std::function<void(absl::string_view)> note = {};
};

// A dense, row-major tensor of a session: one slot of a buffer, for Session::Read and Session::Write.
struct TensorRef {
  uint32_t buffer = 0;  // index in the plan
  uint32_t slot = 0;
  uint64_t bytes = 0;
  fbs::DType dtype = fbs::DType::F32;
  absl::Span<const int64_t> shape;  // valid as long as the session
};

// Stands for a run from its begin until it was waited for.
struct RunTicket {
  uint64_t number = 0;
};

// The time that one kernel of the plan, all copies, or all communication took so far.
struct ProfileRow {
  std::string name;
  bool generated = false;
  uint64_t launches = 0;
  double seconds = 0;
  double flops = 0;        // sum over all launches, as the plan states them
  double bytes_moved = 0;  // likewise
};

// One rank of a plan on its device: its memory, loaded kernels, and for every entry the list of commands with all
// addresses filled in. The host reaches memory by Read and Write alone. States keep their values between runs and are
// undefined at first: run the plan's entry of kind Init, or write them. One thread at a time uses a session.
//
// Where the plan has an entry of kind Prepare (runtime/plan/view/preparation.h), the session runs it before an entry
// that reads its results, if parameters may have changed since: an entry or the caller wrote them.
class Session {
 public:
  // With a group, all its ranks create their sessions at the same time.
  // kFailedPrecondition when the plan is for another machine, thread count or number of ranks, or lacks certificates;
  // kInvalidArgument with a counter-example when a proof fails; kResourceExhausted when the arena does not fit into
  // memory; kNotFound or kInvalidArgument for a kernel that this build does not have or that refuses its signature;
  // kNotFound for an unknown driver.
  static absl::StatusOr<std::unique_ptr<Session>> Create(LoadedPlan plan, const SessionOptions& options = {});
  ~Session();

  const fbs::Plan& plan() const { return plan_.plan(); }
  const LoadedPlan& loaded_plan() const { return plan_; }
  // This rank, and its role in the plan.
  uint32_t rank() const { return rank_; }
  uint32_t role() const { return role_; }

  // Index of this role's entry. kNotFound listing the plan's entries.
  absl::StatusOr<int> FindEntry(absl::string_view name) const;
  absl::StatusOr<int> FindEntry(fbs::EntryKind kind, uint32_t bucket = 0) const;
  // The name of an entry.
  absl::string_view NameOf(int entry) const { return TextOf(plan().entries()->Get(entry)->name()); }

  // Begins a run of an entry: Wait says how it ended. Entries that were compiled with two runs in flight overlap: a
  // second run may begin before the first was waited for. On the device it begins when the first has ended; meanwhile
  // the host writes inputs of the next run, and reads outputs of the one that was waited for last. Nothing else of the
  // session can be written or read while a run is under way. Where SessionOptions.compute is kInline, a device may
  // have run everything when this returns.
  //
  // An input that the plan feeds from an output has its value of the run before, unless it was written.
  //
  // kFailedPrecondition, and nothing began, when an input was not written since the last run, for its value is
  // undefined then, or when the run may not overlap with runs under way.
  absl::StatusOr<RunTicket> Start(int entry);
  // Returns when a run, and those that began before it, are over. An error names entry, segment, command and source,
  // and state may be half updated then. kInvalidArgument where a kernel found its data wrong. A run that began after
  // one that failed has failed as well. Runs may be waited for in any order.
  absl::Status Wait(RunTicket ticket);

  // Runs an entry to its end: Start, and Wait. Without an error it allocates nothing, takes no lock and touches no
  // string, but when its commands are recorded (hal::Device::Record), before the second run. Its errors are those of
  // both.
  absl::Status Run(int entry);
  absl::Status Run(absl::string_view entry);
  // Runs the entry of kind Prepare if it has to run before other entries, so that the first of these does not wait for
  // it. Does nothing if the plan has no such entry.
  absl::Status Prepare();

  // The tensor behind a port. Inputs with several slots (microbatches) have one tensor each. kNotFound listing the
  // ports; kOutOfRange for a slot that is not there.
  absl::StatusOr<TensorRef> Input(absl::string_view entry, absl::string_view port, uint32_t slot = 0) const;
  absl::StatusOr<TensorRef> Output(absl::string_view entry, absl::string_view port, uint32_t slot = 0) const;

  // The states of this rank's role, as indices into plan().states().
  absl::Span<const uint32_t> states() const { return states_; }
  // A parameter or other state by its key in checkpoints. Indices are those of plan().states().
  absl::StatusOr<TensorRef> State(absl::string_view key) const;
  TensorRef StateAt(uint32_t index) const;
  // The tensor in a slot of any buffer of this rank's role.
  TensorRef BufferAt(uint32_t buffer, uint32_t slot = 0) const;

  // Copy between the host and the bytes of a tensor from `offset` on. kFailedPrecondition while a run that is under way
  // may use them, see Start. kInvalidArgument for bytes beyond its end; for an input that is not written as a whole;
  // and, naming entry, port and element, for an integer outside of its port's limit: nothing was written then.
  absl::Status Write(const TensorRef& tensor, absl::Span<const uint8_t> bytes, uint64_t offset = 0);
  absl::Status Read(const TensorRef& tensor, absl::Span<uint8_t> bytes, uint64_t offset = 0) const;
  // Makes `memory`, which has the tensor's size and which `owner` keeps as it is, the memory of a tensor of space
  // External, without a copy. False if the device cannot read it there, or the tensor is of another space: it has to be
  // written then.
  absl::StatusOr<bool> Borrow(const TensorRef& tensor, absl::Span<const uint8_t> memory,
                              const std::shared_ptr<const void>& owner);
  // The bytes of tensors of space External in the caller's memory and in the device's.
  ExternalBytes external_bytes() const { return external_->bytes(); }
  // Write and Read for all elements of a tensor.
  template <typename T>
  absl::Status WriteAll(const TensorRef& tensor, absl::Span<const T> elements) {
    return Write(tensor, {reinterpret_cast<const uint8_t*>(elements.data()), elements.size() * sizeof(T)});
  }
  template <typename T>
  absl::Status ReadAll(const TensorRef& tensor, absl::Span<T> elements) const {
    return Read(tensor, {reinterpret_cast<uint8_t*>(elements.data()), elements.size() * sizeof(T)});
  }

  // The seconds that this thread took so far to hand the commands of runs to the device. Nothing where the device
  // computes in these calls.
  std::optional<double> IssueSeconds() const;

  // A row for each kernel that ran, for copies and for communication, the slowest first; empty unless
  // SessionOptions.profile.
  std::vector<ProfileRow> Profile() const;

  // The last runs of each entry with the times of their commands; empty unless SessionOptions.trace.
  std::vector<TracedRun> Trace() const { return tracer_ == nullptr ? std::vector<TracedRun>() : tracer_->Runs(); }

  hal::Device& device() { return *device_; }
  // The arena in space Device, which the caller may write.
  hal::Allocation& arena() {
    is_prepared_ = false;
    return *arenas_[static_cast<size_t>(fbs::MemorySpace::Device)];
  }

 private:
  Session(LoadedPlan plan, const SessionOptions& options);

  // A run from Start to Wait.
  struct StartedRun {
    bool started = false;
    bool over = false;    // ended with `status`
    bool marked = false;  // `ends` were recorded behind its last commands
    uint64_t number = 0;
    int entry = 0;
    uint32_t parity = 0;
    absl::Status status;
    std::vector<std::unique_ptr<hal::Event>> ends;  // by stream; empty where no entry has two runs in flight
    std::unique_ptr<hal::Allocation> faults;        // copied behind a marked run, in pinned memory
  };
  // The call in the labels of copies that feed inputs, which are in no segment.
  static constexpr uint32_t kFeedCall = 0x7fffffff;

  // Reports the device's notes on how it computes kernels, each note once.
  void SayNotes() const;
  absl::Status Allocate();
  absl::Status FillConstants();
  hal::Allocation& ArenaOf(const fbs::Buffer& buffer) const { return *arenas_[static_cast<size_t>(buffer.space())]; }
  // The address at which commands reach a slot of a buffer in an arena.
  hal::DeviceAddress AddressOf(const fbs::Buffer& buffer, uint32_t slot) const;
  absl::StatusOr<TensorRef> FindPort(const flatbuffers::Vector<flatbuffers::Offset<fbs::Port>>* ports,
                                     absl::string_view kind, absl::string_view entry, absl::string_view port,
                                     uint32_t slot) const;
  // The offset in its arena at which the host finds a tensor now. kFailedPrecondition if a run that is under way may
  // use it.
  absl::StatusOr<uint64_t> OffsetFor(absl::string_view what, const TensorRef& tensor) const;

  // Gives commands the address at which a buffer of space External is now; `before` is where it was.
  void MoveExternal(uint32_t buffer, hal::DeviceAddress before);

  absl::Status CreateRunEvents();
  absl::Status CheckMayBegin(int entry) const;
  absl::StatusOr<RunTicket> Begin(int entry, bool marks_end);
  absl::Status Order(const StartedRun& run);
  // The bit of its commands' labels that says which of the two runs this is.
  uint64_t LabelOfRun(const StartedRun& run) const { return uint64_t{&run == &runs_[1]} << 63; }
  StartedRun& RunOf(uint64_t label) { return runs_[label >> 63]; }
  // Waits for all runs that are under way, and notes in each how it ended.
  void Drain();
  absl::Status Synchronize(std::optional<uint64_t>* label);
  // The label by which a stream knows a command: the call of the timeline, and the command's index in the segment.
  static uint64_t LabelOf(uint32_t call, uint32_t command) { return uint64_t{call} << 32 | command; }
  // Records the ends of a run in its streams, behind the copy of its faults.
  absl::Status MarkEnd(StartedRun& run);
  absl::Status FindFaults();
  absl::Status ClearFaults();
  // Returns the faults of a run that is over as an error. They are cleared then, and the run that began after it has
  // failed.
  absl::Status CheckFaults(StartedRun& run);
  // Returns the faults of the entry of kind Prepare, which has just run, and clears them alone: words of runs that
  // nobody has waited for may be set.
  absl::Status CheckPreparation(int entry);
  // Reads the words, and writes them.
  absl::Status ReadFaults();
  absl::Status WriteFaults();
  // The operand of a launch of the entry that holds a word; null where it has none.
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
  // Issues a run that was recorded.
  absl::Status IssueParts(int entry, uint32_t parity, uint64_t label, const std::vector<RecordedPart>& parts);
  // Records the run that is about to begin, if it is time. Without a recording it is issued command by command.
  void RecordIfDue(int entry, uint32_t parity);
  absl::Status IssueProfiled(const BoundCommand& command);
  // Called when all commands were issued and no other run is under way: waits until they are over.
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
  std::unique_ptr<hal::Event> begin_;  // the begin of a run that follows another one, or takes its outputs
  absl::optional<uint32_t> faults_;    // this role's buffer of kind Fault
  std::vector<bool> has_faults_;       // whether each entry writes that buffer
  std::vector<int32_t> words_;         // words of that buffer, as they were read
  std::vector<Ports::Copy> copies_;    // copies of the run that begins
  // Times by kernel of the plan; the last two are for copies and communication.
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
