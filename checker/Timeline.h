//===- Timeline.h - accesses of each command of an entry --------*- C++ -*-===//
//
// A plan keeps repeated work as segments; this walks an entry with them expanded. It uses no MLIR: a plan is
// checked with the definitions of the plan format alone.
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

/// The place of a command in an entry with its timeline expanded.
struct CommandSite {
  uint32_t entry = 0;
  uint32_t call = 0;    ///< index into Program.timeline
  uint32_t command = 0; ///< index into Segment.commands
};

/// The bytes of one operand of one command.
struct OperandAccess {
  uint32_t buffer = 0; ///< the one that holds the value, where the operand is a view
  uint32_t slot = 0;   ///< 0 for buffers with one slot
  ByteRange range;     ///< bytes of the role, numbered over all spaces
  bool reads = false;
  bool writes = false;
  /// Whether each rank has other bytes, all of which are in `range`: by which view. Views are equal that have one
  /// number.
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

  /// Calls `visit` for each command of the entry in the order of its timeline. `visit` returns false to stop. The
  /// accesses are those of the operands in order; for a copy: source, destination.
  using Visitor = absl::FunctionRef<bool(CommandSite, const fbs::Command &, absl::Span<const OperandAccess>)>;
  void forEachCommand(uint32_t entry, Visitor visit) const;

  /// The accesses of one command, as forEachCommand gives them.
  void accessesOf(CommandSite site, std::vector<OperandAccess> &accesses) const;

  /// "entry 'step', segment 'micro' (call 2, slot 1), command 4, launch of 'matmul', from model.layers.0 (by emit)"
  std::string describe(CommandSite site) const;
  /// "buffer 7 'x'", with the slot where there are several.
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
