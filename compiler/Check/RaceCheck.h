//===- RaceCheck.h - conflicts between unordered streams --------*- C++ -*-===//
//
// Private to compiler/Check.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CHECK_RACECHECK_H
#define BOWLINE_COMPILER_CHECK_RACECHECK_H

#include "compiler/Check/Timeline.h"
#include "runtime/base/status.h"

namespace bowline {

/// kAborted if two commands of different streams of the entry touch a common byte and one of them writes it: this
/// version of the format has no events, so nothing orders streams within an entry. Sorts all accesses once.
absl::Status checkRaces(const Timeline &timeline, uint32_t entry);

} // namespace bowline

#endif // BOWLINE_COMPILER_CHECK_RACECHECK_H
