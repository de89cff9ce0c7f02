//===- EntryCheck.h - proofs along the timeline of one entry ----*- C++ -*-===//
//
// Private to compiler/Check.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CHECK_ENTRYCHECK_H
#define BOWLINE_COMPILER_CHECK_ENTRYCHECK_H

#include "compiler/Check/ByteOwners.h"
#include "compiler/Check/RowsLeftOut.h"
#include "compiler/Check/Timeline.h"
#include "runtime/base/status.h"
#include "runtime/plan/preparation.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace bowline {

/// Executes an entry symbolically: it tracks which buffer owns each byte, not what the byte is.
class EntryCheck {
public:
  /// `prepared[buffer]` says whether the buffer is set when the entry begins because the entry of kind Prepare ran.
  EntryCheck(const Timeline &timeline, uint32_t entry, const std::vector<bool> &prepared);

  absl::Status check();

  /// Returns whether all bytes of a buffer hold its own values when the check is over.
  bool holds(uint32_t buffer) const;

  uint64_t aliasingFacts() const { return aliasingFacts_; }
  uint64_t readFacts() const { return readFacts_; }
  uint64_t outputFacts() const { return outputFacts_; }
  /// The number of the plan's states (Plan.states) of which commands of this entry write any byte.
  uint32_t statesWritten() const;

private:
  absl::Status checkCommand(CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses);
  absl::Status checkAliasing(CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses);
  absl::Status checkRead(CommandSite site, const OperandAccess &access);
  absl::Status checkOutputs();
  absl::Status badBytes(const ByteOwners::Mismatch &mismatch, const std::string &who,
                        const OperandAccess &access) const;
  bool isDeclaredInPlace(const fbs::Command &command, uint32_t output, uint32_t input) const;

  const Timeline &timeline_;
  const fbs::Plan &plan_;
  uint32_t entry_;
  std::vector<bool> areResults_; ///< index: buffer; whether the entry of kind Prepare computes it
  ByteOwners owners_;
  RowsLeftOut rows_;
  /// The command that wrote any byte of a (buffer, slot) last; decides whether a bad read is too early or too late.
  std::map<std::pair<uint32_t, uint32_t>, CommandSite> lastWriter_;
  std::vector<uint32_t> order_; // scratch of checkAliasing
  uint64_t aliasingFacts_ = 0, readFacts_ = 0, outputFacts_ = 0;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_CHECK_ENTRYCHECK_H
