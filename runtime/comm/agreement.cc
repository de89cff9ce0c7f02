#include "runtime/comm/agreement.h"

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/comm/hash.h"

namespace bowline {

// The number that comes out of the work of this rank.
class Agreement::Result {
 public:
  void Set(int32_t value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    value_ = value;
    changed_.notify_all();
  }
  // Nothing while there is none after `limit`.
  std::optional<int32_t> WaitFor(std::chrono::nanoseconds limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return value_.has_value(); });
    return value_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<int32_t> value_;
};

// A thread that meets the others in place of a rank that is at work for longer than `interval`. It looks from time to
// time, so that work that is shorter wakes no thread.
class Agreement::Deputy {
 public:
  // Null when the system grants no thread; the others have to wait then.
  static std::unique_ptr<Deputy> Create(std::chrono::nanoseconds interval) {
    std::unique_ptr<Deputy> deputy(new Deputy(interval));
    try {
      deputy->thread_ = std::thread([self = deputy.get()] { self->Look(); });
    } catch (const std::system_error&) {
      return nullptr;
    }
    return deputy;
  }
  ~Deputy() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  // All outlive the work.
  void Begin(Agreement& agreement, Result& result, absl::string_view doing) {
    const std::lock_guard<std::mutex> lock(mutex_);
    agreement_ = &agreement;
    result_ = &result;
    doing_ = doing;
    begin_ = Clock::now();
  }

  // The work has its result. Returns that of the meeting, or nothing when the rank is to meet the others itself.
  std::optional<absl::StatusOr<int32_t>> End() {
    std::unique_lock<std::mutex> lock(mutex_);
    result_ = nullptr;
    changed_.wait(lock, [&] { return !meets_; });
    return std::exchange(met_, std::nullopt);
  }

 private:
  using Clock = std::chrono::steady_clock;

  explicit Deputy(std::chrono::nanoseconds interval) : interval_(interval) {}

  void Look() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!changed_.wait_for(lock, interval_ / 2, [&] { return ends_; })) {
      if (result_ == nullptr || met_.has_value() || Clock::now() - begin_ < interval_ / 2) continue;
      meets_ = true;
      Result& result = *result_;
      lock.unlock();
      absl::StatusOr<int32_t> met = agreement_->MeetUntilAll(result, doing_);
      lock.lock();
      met_ = std::move(met);
      meets_ = false;
      changed_.notify_all();
    }
  }

  const std::chrono::nanoseconds interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  Agreement* agreement_ = nullptr;
  Result* result_ = nullptr;  // null: no work
  absl::string_view doing_;
  Clock::time_point begin_;
  bool meets_ = false;
  std::optional<absl::StatusOr<int32_t>> met_;
  std::thread thread_;
};

Agreement::Agreement() = default;
Agreement::Agreement(Agreement&&) noexcept = default;
Agreement& Agreement::operator=(Agreement&&) noexcept = default;
Agreement::~Agreement() = default;

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
  return ErrorOf(first, mine);
}

absl::Status Agreement::ErrorOf(int32_t first, const absl::Status& mine) {
  if (first == 0) return absl::OkStatus();
  const int failed = ranks() - first;
  int32_t code = failed == rank() ? static_cast<int32_t>(mine.code()) : 0;
  BOWLINE_RETURN_IF_ERROR(Max(&code, 1));
  BOWLINE_ASSIGN_OR_RETURN(const std::string message, FromRank(failed, mine.message()));
  return {static_cast<absl::StatusCode>(code), absl::StrCat("rank ", failed, ": ", message)};
}

absl::StatusOr<int32_t> Agreement::MeetUntilAll(Result& mine, absl::string_view doing) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kNotes = std::chrono::seconds(10);
  auto next_note = Clock::now() + std::min<std::chrono::nanoseconds>(4 * interval_, kNotes);
  for (;;) {
    const std::optional<int32_t> result = mine.WaitFor(interval_);
    int32_t at_work_and_result[] = {result.has_value() ? 0 : rank() + 1, result.value_or(0)};
    BOWLINE_RETURN_IF_ERROR(Max(at_work_and_result, 2));
    const auto [at_work, largest] = at_work_and_result;
    if (at_work == 0) return largest;
    if (Clock::now() < next_note) continue;
    next_note = Clock::now() + kNotes;
    if (rank() == 0 && notes_ != nullptr) notes_(absl::StrCat("waiting for rank ", at_work - 1, ", which is ", doing));
  }
}

absl::StatusOr<int32_t> Agreement::MaxAfter(absl::string_view doing, absl::FunctionRef<int32_t()> work) {
  if (deputy_ == nullptr) deputy_ = Deputy::Create(interval_);
  Result result;
  if (deputy_ != nullptr) deputy_->Begin(*this, result, doing);
  result.Set(work());
  if (deputy_ != nullptr) {
    if (std::optional<absl::StatusOr<int32_t>> met = deputy_->End()) return *std::move(met);
  }
  return MeetUntilAll(result, doing);
}

absl::Status Agreement::AllOkAfter(absl::string_view doing, absl::FunctionRef<absl::Status()> work) {
  if (everyone_ == nullptr) return work();
  absl::Status mine;
  BOWLINE_ASSIGN_OR_RETURN(const int32_t first, MaxAfter(doing, [&]() -> int32_t {
                             mine = work();
                             return mine.ok() ? 0 : ranks() - rank();
                           }));
  return ErrorOf(first, mine);
}

absl::StatusOr<bool> Agreement::AnyOfAfter(absl::string_view doing, absl::FunctionRef<bool()> work) {
  if (everyone_ == nullptr) return work();
  BOWLINE_ASSIGN_OR_RETURN(const int32_t any, MaxAfter(doing, [&]() -> int32_t { return work() ? 1 : 0; }));
  return any != 0;
}

}  // namespace bowline
