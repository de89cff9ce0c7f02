//===- EntryCheck.h - proofs along the timeline of one entry ----*- C++ -*-===//
//
// Private to checker.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_ENTRYCHECK_H
#define BOWLINE_CHECKER_ENTRYCHECK_H

#include "checker/ByteOwners.h"
#include "checker/RowsLeftOut.h"
#include "checker/Timeline.h"
#include "runtime/base/status.h"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace bowline {

/// Executes an entry symbolically: it tracks which buffer owns each byte, not the byte's value.
class EntryCheck {
public:
  /// `held[buffer]` says whether the buffer holds a value when the entry begins. In any case the entry's inputs do, and
  /// buffers of other roles do not.
  EntryCheck(const Timeline &timeline, uint32_t entry, const std::vector<bool> &held);

  absl::Status check();

  /// Returns whether, after the check, all bytes of a buffer hold its own values.
  bool holds(uint32_t buffer) const { return !findUnset(buffer); }
  /// Returns the first bytes of a buffer that do not hold its own values after the check.
  std::optional<ByteRange> findUnset(uint32_t buffer) const;

  uint64_t aliasingFacts() const { return aliasingFacts_; }
  uint64_t readFacts() const { return readFacts_; }
  uint64_t outputFacts() const { return outputFacts_; }
  /// Returns whether commands of this entry write any byte of a buffer.
  bool writes(uint32_t buffer) const;
  /// Returns how many of the plan's states (Plan.states) commands of this entry write, in part or completely.
  uint32_t statesWritten() const;

private:
  absl::Status checkCommand(CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses);
  absl::Status checkAliasing(CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses);
  absl::Status checkRead(CommandSite site, const OperandAccess &access);
  void write(CommandSite site, const OperandAccess &access);
  /// Refuses a launch that leaves rows out and takes a view by rank: RowsLeftOut does not distinguish ranks.
  absl::Status checkRowsByRank(CommandSite site, const fbs::Command &command,
                               absl::Span<const OperandAccess> accesses) const;
  absl::Status checkOutputs();
  absl::Status badBytes(const ByteOwners::Mismatch &mismatch, const std::string &who,
                        const OperandAccess &access) const;
  /// Checks operands order_[first] to order_[last], which access exactly the same bytes.
  absl::Status checkEqualBytes(CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses,
                               size_t first, size_t last);
  absl::Status badAlias(CommandSite site, absl::Span<const OperandAccess> accesses, uint32_t a, uint32_t b) const;
  bool isDeclaredInPlace(const fbs::Command &command, uint32_t output, uint32_t input);

  const Timeline &timeline_;
  const fbs::Plan &plan_;
  uint32_t entry_;
  ByteOwners owners_;
  /// The views by rank (OperandAccess::byRank) whose part every rank has written. The key is all bytes that the view
  /// covers on any rank; the owner names the view.
  ByteOwners parts_;
  RowsLeftOut rows_;
  /// The last command that wrote any byte of a (buffer, slot). It tells whether a bad read comes too early or too late.
  std::map<std::pair<uint32_t, uint32_t>, CommandSite> lastWriter_;
  std::vector<uint32_t> order_;                                         // scratch of checkAliasing
  std::map<uint32_t, std::set<std::pair<uint32_t, uint32_t>>> inPlace_; ///< by kernel: declared (output, input)
  uint64_t aliasingFacts_ = 0, readFacts_ = 0, outputFacts_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_ENTRYCHECK_H
