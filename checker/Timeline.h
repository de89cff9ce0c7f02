//===- Timeline.h - accesses of each command of an entry --------*- C++ -*-===//
//
// A plan stores repeated commands once, as segments that its timeline calls. Timeline visits an entry's commands with
// these calls expanded. It uses the definitions of the plan format alone and no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_TIMELINE_H
#define BOWLINE_CHECKER_TIMELINE_H

#include "runtime/plan/plan_generated.h"
#include "runtime/plan/view/plan_view.h"

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bowline {

/// Identifies one command of an entry whose segment calls are expanded.
struct CommandSite {
  uint32_t entry = 0;
  uint32_t call = 0;    ///< index into Program.timeline
  uint32_t command = 0; ///< index into Segment.commands
};

/// The bytes of one operand of one command.
struct OperandAccess {
  uint32_t buffer = 0; ///< the buffer that holds the value; for a view, the buffer that it views
  uint32_t slot = 0;   ///< slot of the buffer; 0 for buffers with one slot
  ByteRange range;     ///< bytes of the role; numbers continue over all memory spaces
  bool reads = false;
  bool writes = false;
  /// Set where each rank accesses other bytes, all inside `range`: the index in Plan.buffers of the view by rank. Equal
  /// views have the same index here.
  std::optional<uint32_t> byRank;
};

/// Expands the entries of a verified plan.
class Timeline {
public:
  explicit Timeline(const fbs::Plan &plan);

  const fbs::Plan &plan() const { return plan_; }
  const fbs::Program &programOf(uint32_t entry) const;
  const fbs::Command &commandAt(CommandSite site) const;
  /// The number of commands of the entry, with the timeline expanded.
  uint64_t commandCount(uint32_t entry) const;

  /// Calls `visit` for each command of the entry in the order of the timeline, until `visit` returns false. The
  /// accesses are those of the operands in order; a copy has its source, then its destination.
  using Visitor = absl::FunctionRef<bool(CommandSite, const fbs::Command &, absl::Span<const OperandAccess>)>;
  void forEachCommand(uint32_t entry, Visitor visit) const;

  /// Replaces `accesses` by the accesses of one command, as forEachCommand gives them.
  void accessesOf(CommandSite site, std::vector<OperandAccess> &accesses) const;

  /// "entry 'step', segment 'micro' (call 2, slot 1), command 4, launch of 'matmul', from model.layers.0 (by emit)"
  std::string describe(CommandSite site) const;
  /// "buffer 7 'x'", followed by the slot where the buffer has several.
  std::string describe(const OperandAccess &access) const;

private:
  OperandAccess access(const fbs::Operand &operand, uint64_t bytes, uint32_t slot, bool reads, bool writes) const;
  void collect(const fbs::Command &command, uint32_t slot, std::vector<OperandAccess> &accesses) const;

  const fbs::Plan &plan_;
  /// The element [kernel][argument] is the argument's size in bytes.
  std::vector<std::vector<uint64_t>> argumentBytes_;
  std::vector<uint32_t> sameViews_;
};

/// "[128, 256)"; "[0, 64) in PinnedHost"
std::string describe(ByteRange range);

} // namespace bowline

#endif // BOWLINE_CHECKER_TIMELINE_H
