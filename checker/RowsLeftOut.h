//===- RowsLeftOut.h - rows that hold no value ------------------*- C++ -*-===//
//
// Private to checker.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_ROWSLEFTOUT_H
#define BOWLINE_CHECKER_ROWSLEFTOUT_H

#include "checker/Timeline.h"

#include <map>
#include <optional>
#include <utility>

namespace bowline {

/// Follows which rows launches have left out, because a count on the device says that there are fewer. Two launches
/// mean the same count where they read the same bytes and nothing was written there in between.
class RowsLeftOut {
public:
  using Slot = std::pair<uint32_t, uint32_t>; ///< of a buffer

  explicit RowsLeftOut(const fbs::Plan &plan) : plan_(plan) {}

  /// The number of the first operand of which the command reads rows that were left out, and the writer.
  struct Use {
    size_t operand;
    CommandSite writer;
  };
  std::optional<Use> findUse(const fbs::Command &command, absl::Span<const OperandAccess> accesses) const;

  /// The command was executed.
  void advance(CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses);

  /// The command that left rows of the buffer out; none where the whole buffer holds values.
  std::optional<CommandSite> writerOf(uint32_t buffer, uint32_t slot) const;
  /// The first slot of a buffer that outlives the entry and of which rows were left out.
  std::optional<std::pair<Slot, CommandSite>> findPersistent() const;

private:
  /// A number in memory, and how often its buffer had been written.
  struct Count {
    uint32_t buffer, slot;
    uint64_t end, writes;
    bool operator==(const Count &) const = default;
  };
  struct Missing {
    Count count;
    ByteRange range;
    uint64_t rowBytes;
    CommandSite writer;
  };
  /// The count of a launch that leaves rows of an argument out, and the bytes of one such row.
  struct Limit {
    Count count;
    uint64_t rowBytes;
  };
  std::optional<Limit> limitOf(const fbs::Command &command, absl::Span<const OperandAccess> accesses,
                               size_t operand) const;

  const fbs::Plan &plan_;
  std::map<Slot, uint64_t> writes_;
  std::map<Slot, Missing> missing_;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_ROWSLEFTOUT_H
