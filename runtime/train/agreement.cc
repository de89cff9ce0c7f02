#include "runtime/train/agreement.h"

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/comm/hash.h"

namespace bowline {

// Becomes true once, and wakes who waits for it.
class Agreement::Flag {
 public:
  void Set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  // Whether it is true, at the latest after `limit`.
  bool WaitFor(std::chrono::nanoseconds limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

absl::StatusOr<Agreement> Agreement::Create(RankGroup* group, std::chrono::nanoseconds timeout) {
  Agreement agreement;
  // Far more often than the others give up, even where threads run late.
  agreement.interval_ = std::min<std::chrono::nanoseconds>(timeout / 8, std::chrono::seconds(1));
  if (group == nullptr || group->ranks() == 1) return agreement;
  std::vector<int> everyone(static_cast<size_t>(group->ranks()));
  std::iota(everyone.begin(), everyone.end(), 0);
  BOWLINE_ASSIGN_OR_RETURN(agreement.everyone_, group->CreateExchange("agreement", everyone));
  return agreement;
}

absl::Status Agreement::Max(int32_t* values, size_t count) {
  const auto largest =
      hal::Operation::Reduction(hal::OperationKind::kAllReduce, kernels::DType::kI32, hal::ReduceOp::kMax);
  const hal::HostPiece piece = {values, values, count};
  return everyone_->Run(largest, {&piece, 1});
}

absl::StatusOr<bool> Agreement::AnyOf(bool mine) {
  if (everyone_ == nullptr) return mine;
  int32_t flag = mine ? 1 : 0;
  BOWLINE_RETURN_IF_ERROR(Max(&flag, 1));
  return flag != 0;
}

absl::StatusOr<std::optional<int32_t>> Agreement::NumberOfRankZero(int32_t mine, bool go_on) {
  if (everyone_ == nullptr) return go_on ? std::optional<int32_t>(mine) : std::nullopt;
  int32_t number = !go_on ? INT32_MAX : rank() == 0 ? mine : -1;
  BOWLINE_RETURN_IF_ERROR(Max(&number, 1));
  return number == INT32_MAX ? std::nullopt : std::optional<int32_t>(number);
}

absl::StatusOr<int> Agreement::RanksOfThisMachine() {
  if (everyone_ == nullptr) return 1;
  // A number of the machine since it was started.
  std::string boot;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, boot);
  std::vector<int32_t> machines(static_cast<size_t>(ranks()), 0);
  const auto machine = static_cast<int32_t>(HashOf(boot) >> 33);
  machines[rank()] = machine;
  BOWLINE_RETURN_IF_ERROR(Max(machines.data(), machines.size()));
  return static_cast<int>(std::count(machines.begin(), machines.end(), machine));
}

absl::StatusOr<std::string> Agreement::FromRank(int rank, absl::string_view text) {
  if (everyone_ == nullptr) return std::string(text);
  if (this->rank() != rank) text = {};
  auto size = static_cast<int32_t>(std::min<size_t>(text.size(), INT32_MAX));
  BOWLINE_RETURN_IF_ERROR(Max(&size, 1));
  // One character per number: texts are short, and every communicator reduces i32.
  std::vector<int32_t> characters(static_cast<size_t>(size), 0);
  for (size_t i = 0; i < text.size() && i < characters.size(); ++i) characters[i] = static_cast<uint8_t>(text[i]);
  if (size > 0) BOWLINE_RETURN_IF_ERROR(Max(characters.data(), characters.size()));
  std::string result;
  for (const int32_t character : characters) result.push_back(static_cast<char>(character));
  return result;
}

absl::StatusOr<std::string> Agreement::FromRankZero(absl::string_view text) { return FromRank(0, text); }

absl::Status Agreement::AllOk(const absl::Status& mine) {
  if (everyone_ == nullptr) return mine;
  // The first rank is the one with the largest distance from the end.
  int32_t first = mine.ok() ? 0 : ranks() - rank();
  BOWLINE_RETURN_IF_ERROR(Max(&first, 1));
  if (first == 0) return absl::OkStatus();
  const int failed = ranks() - first;
  int32_t code = failed == rank() ? static_cast<int32_t>(mine.code()) : 0;
  BOWLINE_RETURN_IF_ERROR(Max(&code, 1));
  BOWLINE_ASSIGN_OR_RETURN(const std::string message, FromRank(failed, mine.message()));
  return {static_cast<absl::StatusCode>(code), absl::StrCat("rank ", failed, ": ", message)};
}

absl::Status Agreement::MeetUntilAll(Flag& done, absl::string_view doing) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kNotes = std::chrono::seconds(10);
  auto next_note = Clock::now() + std::min<std::chrono::nanoseconds>(4 * interval_, kNotes);
  for (;;) {
    int32_t at_work = done.WaitFor(interval_) ? 0 : rank() + 1;
    BOWLINE_RETURN_IF_ERROR(Max(&at_work, 1));
    if (at_work == 0) return absl::OkStatus();
    if (Clock::now() < next_note) continue;
    next_note = Clock::now() + kNotes;
    if (rank() == 0 && notes_ != nullptr) notes_(absl::StrCat("waiting for rank ", at_work - 1, ", which is ", doing));
  }
}

absl::Status Agreement::AllOkAfter(absl::string_view doing, absl::FunctionRef<absl::Status()> work) {
  if (everyone_ == nullptr) return work();
  Flag done;
  absl::Status met, mine;
  std::thread meeting;
  try {
    meeting = std::thread([&] { met = MeetUntilAll(done, doing); });
  } catch (const std::system_error&) {
    // Without a thread the others have to wait.
  }
  mine = work();
  done.Set();
  if (meeting.joinable()) {
    meeting.join();
  } else {
    met = MeetUntilAll(done, doing);
  }
  BOWLINE_RETURN_IF_ERROR(met);
  return AllOk(mine);
}

}  // namespace bowline
