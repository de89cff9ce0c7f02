//===- CommunicationOrder.h - communications follow one another -*- C++ -*-===//
//
// Private to checker.
//
// A device that replays recorded commands knows streams and events, and forgets the order in which commands were
// issued: operations of two communicators that only that order keeps apart may begin in one order on one rank and in
// the other on another, and then wait for each other. So streams and events order each two communications of a rank,
// as they were issued. Between ranks these orders agree because the orders of issue do, which is the proof of no
// deadlock (DeadlockCheck.h).
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_COMMUNICATIONORDER_H
#define BOWLINE_CHECKER_COMMUNICATIONORDER_H

#include "checker/Timeline.h"
#include "runtime/base/status.h"

namespace bowline {

/// Returns whether the device that the plan names needs the proof (targets::Target::orders_communications).
bool needsCommunicationOrder(const fbs::Plan &plan);

class CommunicationOrder {
public:
  CommunicationOrder(const Timeline &timeline, uint32_t entry) : timeline_(timeline), entry_(entry) {}

  /// Returns kAborted with two communications in a row that nothing orders. Waits are for events that were signalled:
  /// another proof says so.
  absl::Status check();
  /// The number of communications that follow another one.
  uint64_t facts() const { return facts_; }

private:
  const Timeline &timeline_;
  uint32_t entry_;
  uint64_t facts_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_COMMUNICATIONORDER_H
