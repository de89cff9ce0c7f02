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

/// Proves for an entry that the row numbers and offsets with which a kernel reads or writes rows
/// (kernels/registry/data_check.h) are valid. Each of these must be
///
///   an input whose limit, which sessions enforce, is at most the number of rows, or
///   data that a launch of the check kernel has checked since they were last written, or
///   marked valid by the kernel's attribute `in_range`, with which the program's author or the compiler vouches for it.
///
/// Kernels replace an invalid number by the nearest valid one. So this proof prevents runs that continue with wrong
/// data, not accesses outside a buffer.
class IndexCheck {
public:
  IndexCheck(const Timeline &timeline, uint32_t entry);

  absl::Status check();

  /// The number of launches whose row numbers or offsets were proven valid.
  uint64_t facts() const { return facts_; }

private:
  struct Checked {
    uint64_t end = 0;
    int64_t rows = 0;
    std::string kernel; ///< the check kernel
  };

  absl::Status checkLaunch(CommandSite site, const fbs::Launch &launch, absl::Span<const OperandAccess> accesses);
  void forget(ByteRange range);

  const Timeline &timeline_;
  const fbs::Plan &plan_;
  uint32_t entry_;
  std::map<uint32_t, int64_t> limits_;  ///< key: buffer of an input; value: its limit
  std::map<uint64_t, Checked> checked_; ///< data checked so far; key: first byte; disjoint
  uint64_t facts_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_INDEXCHECK_H
