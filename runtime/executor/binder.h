#ifndef BOWLINE_RUNTIME_EXECUTOR_BINDER_H_
#define BOWLINE_RUNTIME_EXECUTOR_BINDER_H_

// Binds the commands of a plan to device addresses, so that a run only issues them. Private to runtime/executor.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/comm/group.h"
#include "runtime/executor/links.h"
#include "runtime/hal/communicator.h"
#include "runtime/hal/device.h"
#include "runtime/plan/plan_generated.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

// A command with its objects and addresses resolved, so that a stream can take it.
struct BoundCommand {
  fbs::CommandBody kind = fbs::CommandBody::Launch;
  uint16_t stream = 0;
  const hal::Launchable* launchable = nullptr;
  const hal::Geometry* geometry = nullptr;
  uint32_t first_argument =
      0;  // index in BoundPlan.arguments (a copy: destination, then source), or in BoundPlan.pieces (communication)
  uint32_t argument_count = 0;
  union {
    hal::DeviceAddress scratch = 0;   // launch
    hal::Communicator* communicator;  // communication
    hal::Event* event;                // signal, wait
  };
  uint64_t copy_bytes = 0;
  uint32_t kernel = 0;       // index in Plan.kernels; for profiles
  hal::Operation operation;  // communication
};

// One call of a segment: a range of BoundPlan.commands. Calls whose commands have equal addresses share a range.
struct BoundCall {
  uint32_t first_command = 0;
  uint32_t command_count = 0;
};

struct BoundPlan {
  std::vector<std::unique_ptr<hal::Executable>> executables;      // by image; declared first, destroyed last
  std::vector<std::unique_ptr<hal::Launchable>> launchables;      // by kernel
  std::vector<std::unique_ptr<hal::Communicator>> communicators;  // by communicator of the plan; null: none needed
  std::vector<std::unique_ptr<hal::Event>> events;                // the most events that a program of the role uses
  std::vector<std::unique_ptr<hal::Stream>> streams;
  std::vector<BoundCommand> commands;
  std::vector<hal::Geometry> geometries;  // by kernel
  std::vector<hal::DeviceAddress> arguments;
  std::vector<hal::Piece> pieces;
  // By program: the calls of its timeline in even runs, and in odd runs. The calls of odd runs are empty unless the
  // program's entry has two runs in flight.
  std::vector<std::array<std::vector<BoundCall>, 2>> timelines;
  // For each buffer of space External: the indices of the `arguments` that point into it. While the buffer has no
  // memory, these arguments hold offsets from its first byte.
  std::map<uint32_t, std::vector<uint32_t>> external_arguments;
  std::vector<bool> reads_external;  // by program: whether it uses a buffer of space External

  // Issues a command to its stream.
  absl::Status Issue(const BoundCommand& command) const;

  void MoveExternal(uint32_t buffer, hal::DeviceAddress from, hal::DeviceAddress to) {
    for (const uint32_t argument : external_arguments[buffer]) arguments[argument] += to - from;
  }
};

// The base addresses of a role's arenas, indexed by fbs::MemorySpace; 0 where the role has none, and for External.
using ArenaAddresses = std::array<hal::DeviceAddress, static_cast<size_t>(fbs::MemorySpace::MAX) + 1>;

class Binder {
 public:
  // `plan` is verified. All referenced objects outlive the result. `group` may be null for a plan of one rank.
  // `compute` is the mode of the first stream; all other streams are workers.
  Binder(const fbs::Plan& plan, hal::Device& device, const ArenaAddresses& arenas, RankGroup* group,
         const LinkTable& links, hal::StreamMode compute)
      : plan_(plan),
        device_(device),
        arenas_(arenas),
        group_(group),
        links_(links),
        compute_(compute),
        role_(RoleOf(plan, group == nullptr ? 0 : static_cast<uint32_t>(group->rank()))) {}

  absl::StatusOr<BoundPlan> Bind();

 private:
  absl::Status CreateKernels();
  // Loads the first code of an image whose target and format the device accepts.
  absl::StatusOr<std::unique_ptr<hal::Executable>> LoadImage(const fbs::Image& image);
  absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateRegistered(const fbs::Kernel& kernel, bool has_scratch);
  absl::Status BindProgram(uint32_t index);
  absl::Status BindTimeline(const fbs::Program& program, std::vector<BoundCall>& timeline);
  // Returns whether commands of the segment have other addresses in odd runs than in even runs.
  bool UsesSeconds(const fbs::Segment& segment) const;
  absl::Status BindCall(const fbs::Program& program, const fbs::SegmentCall& call, BoundCall* bound);
  void BindLaunch(const fbs::Launch& launch, uint32_t slot, BoundCommand* bound);
  void BindCopy(const fbs::Copy& copy, uint32_t slot, BoundCommand* bound);
  absl::Status BindCommunication(const fbs::Command& command, uint32_t slot, BoundCommand* bound);
  absl::Status CreateCommunicators();
  absl::Status CreateEvents();
  uint32_t rank() const { return group_ == nullptr ? 0 : static_cast<uint32_t>(group_->rank()); }
  bool UsesSlots(const fbs::Segment& segment) const;
  hal::DeviceAddress Address(const fbs::Operand& operand, uint32_t slot) const;
  void AddArgument(const fbs::Operand& operand, uint32_t slot);

  const fbs::Plan& plan_;
  hal::Device& device_;
  const ArenaAddresses arenas_;
  RankGroup* group_;
  const LinkTable& links_;
  const hal::StreamMode compute_;
  const uint32_t role_;
  BoundPlan bound_;
  uint32_t program_ = 0;  // index of the program that is being bound
  // While odd runs are being bound: the second buffer (Port.second) of each port, by its first. Otherwise empty.
  std::map<uint32_t, uint32_t> seconds_;
  std::map<std::tuple<const fbs::Segment*, uint32_t, bool>, BoundCall> calls_;  // by segment, slot, UsesSeconds
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_BINDER_H_
