//===- RaceCheck.h - conflicts that nothing orders --------------*- C++ -*-===//
//
// Private to checker.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_RACECHECK_H
#define BOWLINE_CHECKER_RACECHECK_H

#include "checker/OrderThroughRanks.h"
#include "checker/StreamOrder.h"
#include "checker/Timeline.h"
#include "runtime/base/status.h"

#include <map>
#include <vector>

namespace bowline {

/// Proves for an entry with several streams that
///   events       every wait is for an event that was signalled before
///   no race      streams and events, also those of other ranks, order every two accesses to a common byte of which
///                one is a write
///   one stream   they also order the operations of each communicator, which executes one at a time
///
/// Walks the commands in the order of issue. For each byte it keeps the last write, and of each stream the last read
/// since that write: a command ordered after these is ordered after all earlier ones. O(log n) for each range of bytes
/// that an access meets.
class RaceCheck {
public:
  /// `through` is the order that other ranks add in the entries of the same name; null if
  /// unknown. It must outlive the check.
  RaceCheck(const Timeline &timeline, uint32_t entry, const OrderThroughRanks *through = nullptr);

  absl::Status check();

  uint64_t accessFacts() const { return accessFacts_; }
  uint64_t waitFacts() const { return waitFacts_; }
  uint64_t communicatorFacts() const { return communicatorFacts_; }

private:
  struct Access {
    StreamOrder::Stamp stamp;
    uint32_t buffer = 0;
    uint32_t slot = 0;
    CommandSite site;
    bool writes = false;
  };
  struct Cell {
    uint64_t end = 0;
    Access writer; // none where stamp.place is 0
    std::vector<Access> readers;
  };
  using Cells = std::map<uint64_t, Cell>; // key: first byte of the cell; cells are disjoint

  absl::Status checkCommand(CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses);
  absl::Status checkSerial(CommandSite site, uint32_t communicator, StreamOrder::Stamp stamp);
  absl::Status touch(ByteRange range, const Access &access);
  /// Checks that `access` is ordered after those accesses of the cell with which it conflicts.
  absl::Status checkAfter(const Cells::value_type &cell, ByteRange range, const Access &access) const;
  static void addReader(Cell &cell, const Access &access);
  std::string describe(const Access &access) const;
  std::string streamOf(CommandSite site) const;

  const Timeline &timeline_;
  uint32_t entry_;
  StreamOrder order_;
  const OrderThroughRanks *through_;
  /// Counts the entry's commands so far that communicate between roles: an index into through_->of(its role).
  uint32_t nextBetweenRoles_ = 0;
  Cells cells_;
  struct LastUse {
    StreamOrder::Stamp stamp;
    CommandSite site;
  };
  std::vector<LastUse> lastUse_; // index: communicator; none where stamp.place is 0
  uint64_t accessFacts_ = 0, waitFacts_ = 0, communicatorFacts_ = 0;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_RACECHECK_H
