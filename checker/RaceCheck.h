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

/// Proves for an entry of several streams that
///   events       every wait is for an event that was signalled before
///   no race      every two accesses to a common byte, one of them a write, are ordered by streams and events, also
///                through those of other ranks
///   one stream   the operations of each communicator are ordered too: it serves one at a time
///
/// Walks the commands in the order of issue and keeps, for each byte, the last write and the reads since, the last one
/// of each stream: whatever is ordered after these is ordered after all earlier ones. O(log n) per range that an access
/// meets.
class RaceCheck {
public:
  /// `through` is the order by other ranks in entries of this one's name; null where nothing is known of them. It must
  /// outlive the check.
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
  /// Checks that `access` is ordered after the accesses of the cell that it conflicts with.
  absl::Status checkAfter(const Cells::value_type &cell, ByteRange range, const Access &access) const;
  static void addReader(Cell &cell, const Access &access);
  std::string describe(const Access &access) const;
  std::string streamOf(CommandSite site) const;

  const Timeline &timeline_;
  uint32_t entry_;
  StreamOrder order_;
  const OrderThroughRanks *through_;
  /// The next command of this entry that communicates between roles: an index into through_->of(its role).
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
