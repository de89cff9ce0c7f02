//===- CommunicationOrder.h - communications follow one another -*- C++ -*-===//
//
// Private to checker.
//
// A device that replays recorded commands keeps the order of streams and events but not the order of issue. If only the
// order of issue separates operations of two communicators, one rank may begin them in one order and another rank in
// the other; the ranks then wait for each other. So streams and events must order every two communications of a rank as
// they were issued. These orders agree between ranks because the orders of issue do: the proof of no deadlock shows
// that (DeadlockCheck.h).
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

  /// Returns kAborted with two consecutive communications that neither streams nor events order. Assumes that every
  /// wait is for an event that was signalled: the proof of events shows that.
  absl::Status check();
  /// The number of ordered pairs: all communications of the entry but the first.
  uint64_t facts() const { return facts_; }

private:
  const Timeline &timeline_;
  uint32_t entry_;
  uint64_t facts_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_COMMUNICATIONORDER_H
