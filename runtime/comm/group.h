#ifndef BOWLINE_RUNTIME_COMM_GROUP_H_
#define BOWLINE_RUNTIME_COMM_GROUP_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/comm/link.h"
#include "runtime/hal/exchange.h"

namespace bowline {

// All ranks of a run, as one of them sees them. Subsets of the ranks meet here to exchange bytes.
class RankGroup {
 public:
  virtual ~RankGroup() = default;

  // This rank, and the number of ranks.
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // Creates the exchange of a communicator `name` of `members`, ranks of the group, this one among them. Each member
  // asks for its own, once, with the same members in the same order and the same link; any number of communicators may
  // have the same members. If ranks are processes, a member waits here for the others, so all members ask for
  // communicators that they share in the same order. Exchanges must be destroyed before the group. Operations take at
  // least as long as `link` would. Returns kInvalidArgument with the fault, kDeadlineExceeded with the members that did
  // not ask for it in time, or the error that broke the group.
  virtual absl::StatusOr<std::unique_ptr<hal::Exchange>> CreateExchange(absl::string_view name,
                                                                        absl::Span<const int> members,
                                                                        const LinkOptions& link = {}) = 0;

  // Ends all current and later operations of all ranks with `why`. A rank that cannot continue calls it, so that other
  // ranks do not wait for it. The first error stays. Does nothing if `why` is OK.
  virtual void Abort(absl::Status why) = 0;

  // Returns OK, or the error that broke the group.
  virtual absl::Status status() const = 0;

  // Contract
  //   All methods may be called from several threads. An error of any exchange breaks the group, on every rank.
};

// Returns kInvalidArgument unless `members` are different ranks below `ranks` and `rank` is among them.
absl::Status CheckMembers(int rank, int ranks, absl::string_view name, absl::Span<const int> members);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_GROUP_H_
