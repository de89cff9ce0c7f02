#ifndef BOWLINE_RUNTIME_EXECUTOR_SESSION_H_
#define BOWLINE_RUNTIME_EXECUTOR_SESSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/comm/group.h"
#include "runtime/executor/external_memory.h"
#include "runtime/executor/links.h"
#include "runtime/executor/trace.h"
#include "runtime/hal/device.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/preparation.h"

namespace bowline {

struct BoundCommand;
struct BoundPlan;

struct SessionOptions {
  // "NAME" or "NAME:KEY=VALUE,..."; empty: the one that is named as the plan's target is. Plugins are looked for in
  // `driver_path`, and where AllDrivers does.
  std::string driver = {};
  std::string driver_path = {};
  // 0: as many as the plan was compiled for. Anything else must be that number.
  int threads = 0;
  // Times every command. Off, it costs nothing.
  bool profile = false;
  // Takes the time of each command on its stream, while they overlap as ever. Off, it costs nothing. Not with
  // `profile`.
  bool trace = false;
  // All ranks of the run, of which this session is one; it outlives the session. Null: a run of one rank.
  RankGroup* group = nullptr;
  // Links to emulate, by axis of the mesh.
  LinkTable links = {};
  // Refuses a plan for several ranks without the proof that they do not wait for each other for ever.
  bool require_certificates = true;
};

// A dense, row-major tensor of a session: one slot of a buffer, for Session::Read and Session::Write.
struct TensorRef {
  uint32_t buffer = 0;  // of the plan
  uint32_t slot = 0;
  uint64_t bytes = 0;
  fbs::DType dtype = fbs::DType::F32;
  absl::Span<const int64_t> shape;  // valid as long as the session
};

// What one kernel of the plan, all copies, or all communication took so far.
struct ProfileRow {
  std::string name;
  bool generated = false;
  uint64_t launches = 0;
  double seconds = 0;
  double flops = 0;        // of all launches, as the plan states them
  double bytes_moved = 0;  // likewise
};

// What one rank of a plan is on its device: its memory, loaded kernels, and for every entry the list of commands with
// all addresses filled in. The host reaches memory by Read and Write alone. State lives in it between runs and is
// undefined at first: run the plan's entry of kind Init, or write the states. One thread at a time uses a session.
//
// Where the plan has an entry of kind Prepare (runtime/plan/preparation.h), the session runs it before an entry that
// reads its results, if parameters may have changed since: an entry or the caller wrote them.
class Session {
 public:
  // With a group, all its ranks create their sessions at the same time.
  // kFailedPrecondition when the plan is for another machine, thread count or number of ranks, or lacks a certificate
  // that the options require; kResourceExhausted when the arena does not fit into memory; kNotFound or kInvalidArgument
  // for a kernel that this build does not have or that refuses its signature; kUnavailable for an unknown driver.
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
  // Its name.
  absl::string_view NameOf(int entry) const { return TextOf(plan().entries()->Get(entry)->name()); }

  // Runs an entry to its end. Without an error it allocates nothing, takes no lock and touches no string.
  // kFailedPrecondition when an input was not written since the last run: plans use the bytes of inputs for other
  // things too. Nothing ran then. Any other error names entry, segment, command and source; state may be half updated
  // then.
  absl::Status Run(int entry);
  absl::Status Run(absl::string_view entry);
  // Runs the entry of kind Prepare if it has to run before other entries, so that the first of these does not wait for
  // it. Nothing where the plan has no such entry.
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
  // Any buffer of this rank's role.
  TensorRef BufferAt(uint32_t buffer, uint32_t slot = 0) const;

  // Between the host and the bytes of a tensor from `offset` on. kInvalidArgument for bytes beyond its end; for an
  // input that is not written as a whole; and, naming entry, port and element, for an integer outside of its port's
  // limit: nothing was written then.
  absl::Status Write(const TensorRef& tensor, absl::Span<const uint8_t> bytes, uint64_t offset = 0);
  absl::Status Read(const TensorRef& tensor, absl::Span<uint8_t> bytes, uint64_t offset = 0) const;
  // Lets a tensor of space External be `memory`, of its size, without a copy: `owner` keeps it as it is. False where
  // the device cannot read it there, and for a tensor of another space: Write copies then.
  absl::StatusOr<bool> Borrow(const TensorRef& tensor, absl::Span<const uint8_t> memory,
                              std::shared_ptr<const void> owner);
  // Where tensors of space External are.
  ExternalBytes external_bytes() const { return external_->bytes(); }
  // The same for all elements of a tensor.
  template <typename T>
  absl::Status WriteAll(const TensorRef& tensor, absl::Span<const T> elements) {
    return Write(tensor, {reinterpret_cast<const uint8_t*>(elements.data()), elements.size() * sizeof(T)});
  }
  template <typename T>
  absl::Status ReadAll(const TensorRef& tensor, absl::Span<T> elements) const {
    return Read(tensor, {reinterpret_cast<uint8_t*>(elements.data()), elements.size() * sizeof(T)});
  }

  // Rows of what ran, the slowest first; empty unless SessionOptions.profile.
  std::vector<ProfileRow> Profile() const;

  // What the last runs of each entry did; empty unless SessionOptions.trace.
  std::vector<TracedRun> Trace() const { return tracer_ == nullptr ? std::vector<TracedRun>() : tracer_->Runs(); }

  hal::Device& device() { return *device_; }
  // The arena in space Device.
  hal::Allocation& arena() {
    is_prepared_ = false;
    return *arenas_[static_cast<size_t>(fbs::MemorySpace::Device)];
  }

 private:
  Session(LoadedPlan plan, const SessionOptions& options);

  // What is behind the ports, of whichever entries: the limit of its elements, and which slots were written since a
  // run.
  struct InputBuffer {
    uint32_t entry = 0, port = 0;  // the first with this limit, for messages
    int64_t limit = 0;             // 0: none
    std::vector<bool> written;     // by slot
  };

  absl::Status Allocate();
  absl::Status FillConstants();
  hal::Allocation& ArenaOf(const fbs::Buffer& buffer) const { return *arenas_[static_cast<size_t>(buffer.space())]; }
  absl::Status WriteBytes(const TensorRef& tensor, absl::Span<const uint8_t> bytes, uint64_t offset);
  absl::StatusOr<TensorRef> FindPort(const flatbuffers::Vector<flatbuffers::Offset<fbs::Port>>* ports,
                                     absl::string_view kind, absl::string_view entry, absl::string_view port,
                                     uint32_t slot) const;
  void FindInputs();
  absl::Status CheckInput(const TensorRef& tensor, absl::Span<const uint8_t> bytes, const InputBuffer& input) const;
  absl::Status CheckInputsWritten(const fbs::Entry& entry) const;
  absl::Status RunEntry(int entry);
  absl::Status RunTraced(int entry);
  // Calls body(command) for each command of an entry, in the order of issue, then Finish.
  template <typename Body>
  absl::Status ForEachCommand(int entry, Body body);
  absl::Status Issue(const BoundCommand& command);
  absl::Status IssueProfiled(const BoundCommand& command);
  // When all commands were issued: waits until they are over.
  absl::Status Finish(int entry);
  absl::Status FailedCommand(const absl::Status& status, int entry, uint64_t label) const;

  LoadedPlan plan_;
  SessionOptions options_;
  uint32_t rank_ = 0;
  uint32_t role_ = 0;
  std::vector<uint32_t> states_;
  std::unique_ptr<hal::Device> device_;
  // By fbs::MemorySpace; null where the role has none, and for External.
  std::array<std::unique_ptr<hal::Allocation>, static_cast<size_t>(fbs::MemorySpace::MAX) + 1> arenas_;
  std::unique_ptr<ExternalMemory> external_;
  std::unique_ptr<BoundPlan> bound_;
  std::unique_ptr<const Preparation> preparation_;
  bool is_prepared_ = false;                // what the entry of kind Prepare computed is that of the parameters
  std::map<uint32_t, InputBuffer> inputs_;  // by buffer
  // By kernel of the plan; the last two are for copies and communication.
  struct Timing {
    uint64_t launches = 0;
    int64_t nanoseconds = 0;
  };
  std::vector<Timing> timings_;
  std::unique_ptr<hal::Event> command_begin_, command_end_;  // of the command that is being timed
  std::unique_ptr<Tracer> tracer_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_SESSION_H_
