//===- Communications.h - operations between roles, matched -----*- C++ -*-===//
//
// Private to checker.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_COMMUNICATIONS_H
#define BOWLINE_CHECKER_COMMUNICATIONS_H

#include "checker/StreamOrder.h"
#include "checker/Timeline.h"
#include "runtime/base/status.h"

#include "absl/strings/string_view.h"

#include <map>
#include <tuple>
#include <vector>

namespace bowline {

/// Identifies the command by which one role takes part in one operation.
struct Participation {
  uint32_t role = 0;
  uint32_t index = 0; ///< index into Communications::of(role)
};

/// The communications, on communicators that span roles, of all roles' entries of one name. All members of a group
/// execute an operation together. On a communicator within one role all members of a group run the same commands, so
/// that these match trivially and are left out.
class Communications {
public:
  /// A command of one role that takes part in an operation.
  struct Part {
    CommandSite site;
    const fbs::Command *command = nullptr;
    uint32_t operation = 0;
  };

  static constexpr uint64_t kMostParts = uint64_t{1} << 26;

  Communications(const Timeline &timeline, absl::string_view entry);

  /// Matches parts to operations: the k-th collective of each role on a communicator is one operation, and so are the
  /// k-th send from one place to another and the k-th receive there. Returns kResourceExhausted for more than
  /// kMostParts parts, and kAborted where members of a group issue different operations.
  absl::Status match();

  uint32_t roles() const { return static_cast<uint32_t>(parts_.size()); }
  uint32_t operations() const { return static_cast<uint32_t>(members_.size()); }
  /// The parts of a role, in the order of issue.
  const std::vector<Part> &of(uint32_t role) const { return parts_[role]; }
  const Part &at(Participation member) const { return parts_[member.role][member.index]; }
  const std::vector<Participation> &membersOf(uint32_t operation) const { return members_[operation]; }

  /// For each part of the role, the parts that a rank must finish before it begins that part: only the last one of each
  /// stream, which implies the others. Parts are indices into of(role); all are smaller than that of the part itself.
  std::vector<std::vector<uint32_t>> predecessors(uint32_t role, IssueMode mode) const;

  /// Describes the first rank of the role: "rank 4 (pp=1, dp=0)".
  std::string rankOf(uint32_t role) const;
  std::string describe(Participation member) const;

private:
  using Members = std::vector<Participation>;
  /// The communicator, the sender's role and the receiver's role.
  using Channel = std::tuple<uint32_t, uint32_t, uint32_t>;

  absl::Status matchCollectives(uint32_t communicator, const std::vector<Members> &byRole);
  absl::Status matchTransfers(const Channel &channel, const Members &sends, const Members &receives);
  absl::Status matchPair(Participation first, Participation second) const;
  void addOperation(const Members &members);

  const Timeline &timeline_;
  const fbs::Plan &plan_;
  std::vector<uint32_t> entries_; // index: role
  uint64_t partCount_ = 0;
  std::vector<std::vector<Part>> parts_;
  std::vector<Members> members_;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_COMMUNICATIONS_H
