//===- SequenceCheck.h - kernels that read where sequences are ------------===//

#ifndef BOWLINE_CHECKER_SEQUENCECHECK_H
#define BOWLINE_CHECKER_SEQUENCECHECK_H

#include "checker/Timeline.h"

#include "absl/status/status.h"

namespace bowline {

/// Some kernels have operands that say where sequences and their cache blocks lie
/// (kernels/registry/sequence_operands.h). Proves that each is an input of the entry for which callers promise valid
/// values (Sequences in plan.fbs), for the kernel's sizes. So no row is written twice, and none outside its block.
class SequenceCheck {
public:
  SequenceCheck(const Timeline &timeline, uint32_t entry);

  absl::Status check();
  /// The number of operands proven.
  uint64_t facts() const { return facts_; }

private:
  absl::Status checkLaunch(CommandSite site, const fbs::Launch &launch, absl::Span<const OperandAccess> accesses);
  absl::Status checkInput(CommandSite site, const OperandAccess &access, uint32_t input, const char *what);

  const Timeline &timeline_;
  const fbs::Plan &plan_;
  const uint32_t entry_;
  const fbs::Sequences *sequences_;
  uint64_t facts_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_SEQUENCECHECK_H
