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

/// Tracks the rows that launches do not write because a count in device memory says that fewer rows are valid. Two
/// launches have the same count if both read it from the same bytes and no command wrote their buffer in between.
class RowsLeftOut {
public:
  using Slot = std::pair<uint32_t, uint32_t>; ///< (buffer, slot)

  explicit RowsLeftOut(const fbs::Plan &plan) : plan_(plan) {}

  /// The index of the first operand from which the command reads left-out rows, and the command that left them out.
  struct Use {
    size_t operand;
    CommandSite writer;
  };
  std::optional<Use> findUse(const fbs::Command &command, absl::Span<const OperandAccess> accesses) const;

  /// Records the writes of a command. Called for all commands in order.
  void advance(CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses);

  /// Returns the command that left out rows of the buffer; nothing where the whole buffer holds values.
  std::optional<CommandSite> writerOf(uint32_t buffer, uint32_t slot) const;
  /// Returns the first persistent (buffer, slot) with left-out rows, and the command that left them out.
  std::optional<std::pair<Slot, CommandSite>> findPersistent() const;

private:
  /// A count in device memory, and how often its buffer had been written when a launch read it.
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
  /// The count with which a launch limits the rows of an argument, and the bytes of one row.
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
