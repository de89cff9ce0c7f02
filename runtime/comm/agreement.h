#ifndef BOWLINE_RUNTIME_COMM_AGREEMENT_H_
#define BOWLINE_RUNTIME_COMM_AGREEMENT_H_

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

// Lets all ranks of a run decide together from facts that each rank knows alone, such as a signal that one rank
// received or a file that it could not write. All ranks must call the same methods in the same order; each call waits
// for all ranks. If the group is broken, each method returns the group's error.
class Agreement {
 public:
  // Makes the agreement of a run with one rank.
  Agreement();
  Agreement(Agreement&&) noexcept;
  Agreement& operator=(Agreement&&) noexcept;
  ~Agreement();
  // `group` may be null for a run with one rank; otherwise it must outlive the result. `timeout` must be the time for
  // which the group waits for a rank.
  static absl::StatusOr<Agreement> Create(RankGroup* group, std::chrono::nanoseconds timeout = std::chrono::minutes(5));

  int rank() const { return everyone_ == nullptr ? 0 : everyone_->self(); }
  int ranks() const { return everyone_ == nullptr ? 1 : everyone_->size(); }

  // Returns whether the ranks can no longer agree, because one is gone or gave up.
  bool IsBroken() const { return everyone_ != nullptr && !everyone_->status().ok(); }

  // Returns whether `mine` is true on any rank. No allocation.
  absl::StatusOr<bool> AnyOf(bool mine);

  // Returns rank 0's `mine`, which must be at least 0 and below INT32_MAX; nothing, on all ranks, if any rank passes
  // false as `go_on`. No allocation.
  absl::StatusOr<std::optional<int32_t>> NumberOfRankZero(int32_t mine, bool go_on);

  // Returns how many ranks, including this one, run on the machine of this rank.
  absl::StatusOr<int> RanksOfThisMachine();

  // Returns OK if `mine` is OK on every rank. Otherwise returns, on every rank, the error of the lowest rank that has
  // one, with that rank's number. Use AllOkAfter where ranks may call it at different times.
  absl::Status AllOk(const absl::Status& mine);

  // Runs `work`, which must not use this object, and returns AllOk of its result. `work` may take much longer
  // than the timeout: meanwhile a thread answers the other ranks, so that they do not take this one for dead.
  // Rank 0 notes ranks that are still at work, "waiting for rank 3, which is DOING", first after half of the
  // timeout (at most 4 seconds), then every 10 seconds. Short work costs no more than AllOk. Allocates only in
  // the first call and for errors.
  absl::Status AllOkAfter(absl::string_view doing, absl::FunctionRef<absl::Status()> work);

  // As AllOkAfter, but returns AnyOf of the result of `work`.
  absl::StatusOr<bool> AnyOfAfter(absl::string_view doing, absl::FunctionRef<bool()> work);

  // Sets the receiver of the notes of AllOkAfter and AnyOfAfter. Without one they are dropped.
  void SetNotes(std::function<void(absl::string_view)> notes) { notes_ = std::move(notes); }

  // Returns the `text` of rank 0 on all ranks and ignores the others.
  absl::StatusOr<std::string> FromRankZero(absl::string_view text);

 private:
  class Deputy;
  class Result;

  // Replaces each value by the largest of all ranks' values.
  absl::Status Max(int32_t* values, size_t count);
  absl::StatusOr<std::string> FromRank(int rank, absl::string_view text);
  // Returns the error of rank `ranks() - first`, where `first` has the largest value of all ranks; OK for 0.
  absl::Status ErrorOf(int32_t first, const absl::Status& mine);
  // Returns the largest result of `work`, which may take long, on any rank; results are at least 0.
  absl::StatusOr<int32_t> MaxAfter(absl::string_view doing, absl::FunctionRef<int32_t()> work);
  // Exchanges progress with the other ranks until all have a result, and returns the largest one.
  absl::StatusOr<int32_t> MeetUntilAll(Result& mine, absl::string_view doing);

  std::unique_ptr<hal::Exchange> everyone_;  // null: one rank
  std::chrono::nanoseconds interval_{};      // time between two exchanges of ranks at work
  std::function<void(absl::string_view)> notes_;
  std::unique_ptr<Deputy> deputy_;  // null before the first call of MaxAfter
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_AGREEMENT_H_
