#ifndef BOWLINE_RUNTIME_TRAIN_AGREEMENT_H_
#define BOWLINE_RUNTIME_TRAIN_AGREEMENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/comm/group.h"
#include "runtime/hal/exchange.h"

namespace bowline {

// Decisions of all ranks of a run together, where each knows something of its own: a signal that one of them got, a
// file that one of them could not write. All ranks call the same methods in the same order; each waits for all. Errors
// of the methods themselves are those of the group when it is broken.
class Agreement {
 public:
  // The agreement of a run of one rank.
  Agreement() = default;
  // `group` may be null for a run of one rank. The group outlives the result.
  static absl::StatusOr<Agreement> Create(RankGroup* group);

  int rank() const { return everyone_ == nullptr ? 0 : everyone_->self(); }
  int ranks() const { return everyone_ == nullptr ? 1 : everyone_->size(); }

  // Returns whether `mine` is true on any rank. No allocation.
  absl::StatusOr<bool> AnyOf(bool mine);

  // The number that rank 0 gives, which must be at least 0; nothing, on all ranks, if one of them does not `go_on`. No
  // allocation.
  absl::StatusOr<std::optional<int32_t>> NumberOfRankZero(int32_t mine, bool go_on);

  // OK when `mine` is OK on every rank. Else, on every rank, the error of the first one that has one, naming it.
  absl::Status AllOk(const absl::Status& mine);

  // The text that rank 0 gives; what the others give is not looked at.
  absl::StatusOr<std::string> FromRankZero(absl::string_view text);

 private:
  // Replaces each value by the largest of all ranks' values.
  absl::Status Max(int32_t* values, size_t count);
  absl::StatusOr<std::string> FromRank(int rank, absl::string_view text);

  std::unique_ptr<hal::Exchange> everyone_;  // null: one rank
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_AGREEMENT_H_
