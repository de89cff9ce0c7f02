#ifndef BOWLINE_RUNTIME_EXECUTOR_BINDER_H_
#define BOWLINE_RUNTIME_EXECUTOR_BINDER_H_

// Turns a plan into commands whose every address is known. Private to runtime/executor.

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/hal/device.h"
#include "runtime/plan/plan_generated.h"
#include "runtime/plan/plan_view.h"

namespace bowline {

// A launch or a copy, ready for a stream.
struct BoundCommand {
  const hal::Launchable* launchable = nullptr;  // null: a copy
  uint32_t first_argument = 0;                  // BoundPlan.arguments; a copy: destination, then source
  uint32_t argument_count = 0;
  void* scratch = nullptr;
  uint64_t copy_bytes = 0;
  uint32_t stream = 0;
  uint32_t kernel = 0;  // of the plan; for profiles
};

// One call of a segment: a range of BoundPlan.commands, which calls with equal addresses share.
struct BoundCall {
  uint32_t first_command = 0;
  uint32_t command_count = 0;
};

struct BoundPlan {
  std::vector<std::unique_ptr<hal::Executable>> executables;  // by image; declared first, to go last
  std::vector<std::unique_ptr<hal::Launchable>> launchables;  // by kernel
  std::vector<std::unique_ptr<hal::Stream>> streams;
  std::vector<BoundCommand> commands;
  std::vector<void*> arguments;
  std::vector<std::vector<BoundCall>> timelines;  // by program
  uint64_t high_water_bytes = 0;                  // end of the last byte of the arena that something was bound to
};

class Binder {
 public:
  // `plan` is verified; all outlive the result.
  Binder(const fbs::Plan& plan, hal::Device& device, uint8_t* arena) : plan_(plan), device_(device), arena_(arena) {}

  absl::StatusOr<BoundPlan> Bind();

 private:
  absl::Status CreateKernels();
  absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateRegistered(const fbs::Kernel& kernel, bool has_scratch);
  // By kernel: does any launch of it carry scratch? (All do, or none: VerifyPlan.)
  std::vector<bool> FindScratch() const;
  absl::Status BindProgram(const fbs::Program& program);
  absl::Status BindCall(const fbs::Program& program, const fbs::SegmentCall& call, BoundCall* bound);
  void BindLaunch(const fbs::Launch& launch, uint32_t slot, BoundCommand* bound);
  void BindCopy(const fbs::Copy& copy, uint32_t slot, BoundCommand* bound);
  bool UsesSlots(const fbs::Segment& segment) const;
  void* Address(const fbs::Operand& operand, uint64_t bytes, uint32_t slot);

  const fbs::Plan& plan_;
  hal::Device& device_;
  uint8_t* arena_;
  BoundPlan bound_;
  std::map<std::tuple<const fbs::Segment*, uint32_t>, BoundCall> calls_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_BINDER_H_
