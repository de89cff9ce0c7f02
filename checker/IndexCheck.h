//===- IndexCheck.h - numbers that say where a kernel reads -----*- C++ -*-===//
//
// Private to checker.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_INDEXCHECK_H
#define BOWLINE_CHECKER_INDEXCHECK_H

#include "checker/Timeline.h"
#include "runtime/base/status.h"

#include <map>
#include <string>

namespace bowline {

/// Proves for an entry that a check looks at the data that say where a kernel reads or writes
/// (kernels/registry/data_check.h): row numbers and offsets are
///
///   an input whose limit is at most the number of rows, which a session checks, or
///   looked at by a check of data, a launch in front of the kernel, after they were last written, or
///   right by the kernel's `in_range`: the author of the program, or the compiler, promises it.
///
/// Kernels replace a wrong value by the nearest valid one. So this is about runs that go on with wrong data, and not
/// about accesses outside of a buffer.
class IndexCheck {
public:
  IndexCheck(const Timeline &timeline, uint32_t entry);

  absl::Status check();

  /// The number of launches of such kernels.
  uint64_t facts() const { return facts_; }

private:
  struct Checked {
    uint64_t end = 0;
    int64_t rows = 0;
    std::string kernel; ///< the check
  };

  absl::Status checkLaunch(CommandSite site, const fbs::Launch &launch, absl::Span<const OperandAccess> accesses);
  void forget(ByteRange range);

  const Timeline &timeline_;
  const fbs::Plan &plan_;
  uint32_t entry_;
  std::map<uint32_t, int64_t> limits_;  ///< of inputs, by buffer
  std::map<uint64_t, Checked> checked_; ///< data that were looked at, by first byte; they are disjoint
  uint64_t facts_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_INDEXCHECK_H
