#ifndef BOWLINE_RUNTIME_EXECUTOR_BINDER_H_
#define BOWLINE_RUNTIME_EXECUTOR_BINDER_H_

// Turns a plan into commands whose every address is known. Private to runtime/executor.

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

// A command, ready for a stream.
struct BoundCommand {
  fbs::CommandBody kind = fbs::CommandBody::Launch;
  uint16_t stream = 0;
  const hal::Launchable* launchable = nullptr;
  const hal::Geometry* geometry = nullptr;
  uint32_t first_argument =
      0;  // BoundPlan.arguments; a copy: destination, then source; a communication: BoundPlan.pieces
  uint32_t argument_count = 0;
  union {
    hal::DeviceAddress scratch = 0;   // launch
    hal::Communicator* communicator;  // communication
    hal::Event* event;                // signal, wait
  };
  uint64_t copy_bytes = 0;
  uint32_t kernel = 0;       // index in the plan; for profiles
  hal::Operation operation;  // communication
};

// One call of a segment: a range of BoundPlan.commands, which calls with equal addresses share.
struct BoundCall {
  uint32_t first_command = 0;
  uint32_t command_count = 0;
};

struct BoundPlan {
  std::vector<std::unique_ptr<hal::Executable>> executables;      // by image; declared first, to go last
  std::vector<std::unique_ptr<hal::Launchable>> launchables;      // by kernel
  std::vector<std::unique_ptr<hal::Communicator>> communicators;  // by communicator of the plan; null: none needed
  std::vector<std::unique_ptr<hal::Event>> events;                // as many as any program of the role needs
  std::vector<std::unique_ptr<hal::Stream>> streams;
  std::vector<BoundCommand> commands;
  std::vector<hal::Geometry> geometries;  // by kernel
  std::vector<hal::DeviceAddress> arguments;
  std::vector<hal::Piece> pieces;
  // The calls of each program's timeline, in even runs and in odd ones; the latter are empty unless the program's entry
  // has two runs in flight.
  std::vector<std::array<std::vector<BoundCall>, 2>> timelines;
  // For each buffer of space External, the arguments whose addresses lie in it. While it has no memory, their addresses
  // are offsets from its begin.
  std::map<uint32_t, std::vector<uint32_t>> external_arguments;
  std::vector<bool> reads_external;  // by program

  // Hands a command to its stream.
  absl::Status Issue(const BoundCommand& command) const;

  void MoveExternal(uint32_t buffer, hal::DeviceAddress from, hal::DeviceAddress to) {
    for (const uint32_t argument : external_arguments[buffer]) arguments[argument] += to - from;
  }
};

// The addresses at which the arenas of a role begin, by fbs::MemorySpace; 0 where the role has none, and for External.
using ArenaAddresses = std::array<hal::DeviceAddress, static_cast<size_t>(fbs::MemorySpace::MAX) + 1>;

class Binder {
 public:
  // `plan` is verified; all outlive the result. `group` may be null for a plan of one rank.
  // `compute`: the mode of the first stream of each program.
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
  // The first code of an image that the device runs.
  absl::StatusOr<std::unique_ptr<hal::Executable>> LoadImage(const fbs::Image& image);
  absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateRegistered(const fbs::Kernel& kernel, bool has_scratch);
  absl::Status BindProgram(uint32_t index);
  absl::Status BindTimeline(const fbs::Program& program, std::vector<BoundCall>& timeline);
  // Returns whether commands of the segment have other addresses in odd runs.
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
  uint32_t program_ = 0;  // the one that is being bound
  // In the runs that are being bound, the buffer that takes the place of each port's first one. Empty for even runs.
  std::map<uint32_t, uint32_t> seconds_;
  std::map<std::tuple<const fbs::Segment*, uint32_t, bool>, BoundCall> calls_;  // by segment, slot, use of seconds_
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_BINDER_H_
