//===- RunOverlap.h - two runs of an entry in flight ------------*- C++ -*-===//
//
// On the device a run begins when the run before it has ended, so that every proof about one run holds for a sequence
// of runs. Only the host overlaps with a run: meanwhile it writes inputs of the next run and reads outputs of the run
// before. That is no race if runs alternate between two buffers for each port, and nothing else uses these.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_RUNOVERLAP_H
#define BOWLINE_CHECKER_RUNOVERLAP_H

#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <set>

namespace bowline {

/// Returns both buffers of each port of the entries with two runs in flight, and the outputs that feed the next run.
/// None of them may share bytes with another buffer.
std::set<uint32_t> findOverlappingPorts(const fbs::Plan &plan);

/// Proves that the commands of a run access no buffer that the host accesses meanwhile. Assumes a verified plan in
/// which the buffers of findOverlappingPorts share no bytes.
class RunOverlap {
public:
  explicit RunOverlap(const fbs::Plan &plan) : plan_(plan) {}

  absl::Status check();
  /// The number of buffers that findOverlappingPorts returns.
  uint64_t facts() const { return facts_; }

private:
  absl::Status checkProgram(uint32_t program, const std::set<uint32_t> &own, const std::set<uint32_t> &all) const;

  const fbs::Plan &plan_;
  uint64_t facts_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_RUNOVERLAP_H
