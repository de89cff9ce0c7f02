//===- RunOverlap.h - two runs of an entry in flight ------------*- C++ -*-===//
//
// On the device a run begins when the run before it has ended, so every proof about one run holds for each of many
// runs. Only the host overlaps with a run: during a run it writes inputs of the next run and reads outputs of the run
// before. This is no race if every second run has ports of its own, which nothing else touches.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_RUNOVERLAP_H
#define BOWLINE_CHECKER_RUNOVERLAP_H

#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <set>

namespace bowline {

/// Both buffers of each port of entries with two runs in flight, and outputs that feed the next run. They must share
/// bytes with no other buffer.
std::set<uint32_t> findOverlappingPorts(const fbs::Plan &plan);

/// Proves of a verified plan, in which those buffers share no bytes, that the commands of a run touch no buffer that
/// the host touches meanwhile.
class RunOverlap {
public:
  explicit RunOverlap(const fbs::Plan &plan) : plan_(plan) {}

  absl::Status check();
  /// The number of buffers of ports that the proof is about.
  uint64_t facts() const { return facts_; }

private:
  absl::Status checkProgram(uint32_t program, const std::set<uint32_t> &own, const std::set<uint32_t> &all) const;

  const fbs::Plan &plan_;
  uint64_t facts_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_RUNOVERLAP_H
