#ifndef BOWLINE_RUNTIME_TRAIN_AGREEMENT_H_
#define BOWLINE_RUNTIME_TRAIN_AGREEMENT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
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
  Agreement();
  Agreement(Agreement&&) noexcept;
  Agreement& operator=(Agreement&&) noexcept;
  ~Agreement();
  // `group` may be null for a run of one rank. The group outlives the result, and waits for a rank as long as
  // `timeout`.
  static absl::StatusOr<Agreement> Create(RankGroup* group, std::chrono::nanoseconds timeout = std::chrono::minutes(5));

  int rank() const { return everyone_ == nullptr ? 0 : everyone_->self(); }
  int ranks() const { return everyone_ == nullptr ? 1 : everyone_->size(); }

  // Whether the ranks can agree no more, since one is gone or gave up.
  bool IsBroken() const { return everyone_ != nullptr && !everyone_->status().ok(); }

  // Returns whether `mine` is true on any rank. No allocation.
  absl::StatusOr<bool> AnyOf(bool mine);

  // The number that rank 0 gives, which must be at least 0; nothing, on all ranks, if one of them does not `go_on`. No
  // allocation.
  absl::StatusOr<std::optional<int32_t>> NumberOfRankZero(int32_t mine, bool go_on);

  // How many ranks run on the machine of this one, itself among them.
  absl::StatusOr<int> RanksOfThisMachine();

  // OK when `mine` is OK on every rank. Else, on every rank, the error of the first one that has one, naming it. Where
  // the ranks do not come to it at about the same time, AllOkAfter is to be called.
  absl::Status AllOk(const absl::Status& mine);

  // AllOk of the result of `work`, which may take much longer than a rank is waited for, and does not use this object.
  // Meanwhile a thread of the rank answers the others, so that a rank at work is not taken for one that is gone. After
  // half of the timeout, or a few seconds, and then every 10 seconds rank 0 notes ranks still at work: "waiting for
  // rank 3, which is DOING". Costs as much as AllOk where the work is short. No allocation but at the first call, and
  // for errors.
  absl::Status AllOkAfter(absl::string_view doing, absl::FunctionRef<absl::Status()> work);

  // AnyOf of the result of `work`, likewise.
  absl::StatusOr<bool> AnyOfAfter(absl::string_view doing, absl::FunctionRef<bool()> work);

  // Where the notes of these two go; nowhere at first.
  void SetNotes(std::function<void(absl::string_view)> notes) { notes_ = std::move(notes); }

  // The text that rank 0 gives; the texts of other ranks are ignored.
  absl::StatusOr<std::string> FromRankZero(absl::string_view text);

 private:
  class Deputy;
  class Result;

  // Replaces each value by the largest of all ranks' values.
  absl::Status Max(int32_t* values, size_t count);
  absl::StatusOr<std::string> FromRank(int rank, absl::string_view text);
  // The error of the rank with the largest `first`, the number of ranks from it on; 0: OK.
  absl::Status ErrorOf(int32_t first, const absl::Status& mine);
  // Returns the largest number that `work`, which takes its time, has on any rank; at least 0.
  absl::StatusOr<int32_t> MaxAfter(absl::string_view doing, absl::FunctionRef<int32_t()> work);
  // Meets the others again and again until all have a result, of which it returns the largest.
  absl::StatusOr<int32_t> MeetUntilAll(Result& mine, absl::string_view doing);

  std::unique_ptr<hal::Exchange> everyone_;  // null: one rank
  std::chrono::nanoseconds interval_{};      // of meetings of ranks at work
  std::function<void(absl::string_view)> notes_;
  std::unique_ptr<Deputy> deputy_;  // null before the first work
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_AGREEMENT_H_
