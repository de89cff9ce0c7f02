#include "runtime/drivers/cuda/nccl/nccl_comm.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

// How long a communicator waits at its end for the other members. They have had what this one sent by then, unless they
// are that late; and a rank that ends with an error has yet to say so, for which the others wait.
constexpr std::chrono::seconds kFinishLimit{2};
// How long a call is waited for before it is aborted. NCCL's end soon, unless one needs the card while that is busy.
constexpr std::chrono::seconds kCallLimit{5};
constexpr std::chrono::seconds kNoLimit = std::chrono::hours(24 * 365);

// Lets other threads run: briefly at first, as most waits are short.
void Pause(int round) {
  if (round < 100) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(round < 1000 ? 20 : 1000));
}

}  // namespace

ncclConfig_t NcclComm::Config() const {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = target_->name.c_str();
  return config;
}

absl::Status NcclComm::Aborted() const {
  BOWLINE_RETURN_IF_ERROR(exchange_.status());
  return absl::CancelledError(absl::StrCat("communicator '", exchange_.name(), "' was aborted"));
}

ncclResult_t NcclComm::State() {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = api_.ncclCommGetAsyncError(target_->comm, &state);
  return result == ncclSuccess ? state : result;
}

absl::Status NcclComm::Error() { return closed_.load() ? Aborted() : NcclStatus(api_, State(), "NCCL", target_->comm); }

absl::Status NcclComm::AsyncError() {
  const std::lock_guard<std::timed_mutex> lock(mutex_);
  return Error();
}

absl::Status NcclComm::AsyncErrorUnlessBusy() {
  const std::unique_lock<std::timed_mutex> lock(mutex_, std::try_to_lock);
  return lock.owns_lock() ? Error() : absl::OkStatus();
}

absl::Status NcclComm::Settle(ncclResult_t result, absl::string_view name) {
  for (int round = 0; result == ncclInProgress; ++round) {
    Pause(round);
    const Use use(*this);
    if (!use.allowed()) return Aborted();
    result = State();
  }
  const Use use(*this);
  return use.allowed() ? NcclStatus(api_, result, name, target_->comm) : Aborted();
}

absl::Status NcclComm::Meet(ncclResult_t result, absl::string_view name, uint64_t number, std::chrono::seconds limit) {
  hal::Operation meeting;
  meeting.kind = hal::OperationKind::kBarrier;
  meeting.number = static_cast<uint32_t>(number);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (int round = 0; result == ncclInProgress; ++round) {
    BOWLINE_RETURN_IF_ERROR(exchange_.Report(meeting, 0, number + 1));
    if (std::chrono::steady_clock::now() > deadline) return absl::DeadlineExceededError(name);
    Pause(round);
    const std::lock_guard<std::timed_mutex> lock(mutex_);
    result = State();
  }
  BOWLINE_RETURN_IF_ERROR(NcclStatus(api_, result, name, target_->comm));
  return exchange_.Report({}, 0, number + 1);
}

absl::Status NcclComm::Connect(const ncclUniqueId& id) {
  ncclConfig_t config = Config();
  const ncclResult_t result =
      api_.ncclCommInitRankConfig(&target_->comm, exchange_.size(), id, exchange_.self(), &config);
  absl::Status status = NcclStatus(api_, result, "ncclCommInitRankConfig", target_->comm);
  if (status.ok() && target_->comm == nullptr) {
    status = absl::InternalError("ncclCommInitRankConfig: NCCL made no communicator");
  }
  if (status.ok()) status = Meet(result, "ncclCommInitRankConfig", 0, kNoLimit);
  if (!status.ok()) Abort()();
  return status;
}

absl::Status NcclComm::SplitFrom(NcclComm& parent) {
  ncclConfig_t config = Config();
  // All members have one colour; NCCL writes the target on its own thread, before the parent has done its part, and
  // when the parent is aborted. So the parent keeps it until it is known to be there.
  const absl::Status split = parent.Call("ncclCommSplit", [&](ncclComm_t comm) {
    {
      const std::lock_guard<std::mutex> lock(parent.splits_mutex_);
      parent.splits_.push_back(target_);
    }
    return api_.ncclCommSplit(comm, /*color=*/0, exchange_.self(), &target_->comm, &config);
  });
  BOWLINE_RETURN_IF_ERROR(split);
  if (!parent.Claim(target_)) return parent.Aborted();
  if (target_->comm == nullptr) return absl::InternalError("ncclCommSplit: NCCL made no communicator");
  absl::Status status = Meet(ncclInProgress, "ncclCommSplit", 0, kNoLimit);
  if (!status.ok()) Abort()();
  return status;
}

bool NcclComm::Claim(const std::shared_ptr<Target>& target) {
  const std::lock_guard<std::mutex> lock(splits_mutex_);
  const auto found = std::find(splits_.begin(), splits_.end(), target);
  if (found == splits_.end()) return false;
  splits_.erase(found);
  return true;
}

absl::Status NcclComm::Finish(uint64_t begun) {
  Close();
  if (target_->comm == nullptr || freed_) return absl::OkStatus();
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard<std::timed_mutex> lock(mutex_);
    result = api_.ncclCommFinalize(target_->comm);
  }
  const absl::Status status = Meet(result, "ncclCommFinalize", begun + 1, kFinishLimit);
  if (!status.ok()) {
    Abort()();
    return status;
  }
  freed_ = true;
  api_.ncclCommDestroy(target_->comm);
  Abort()();  // frees the remains of splits
  return absl::OkStatus();
}

void NcclComm::Close() {
  closed_.store(true);
  if (mutex_.try_lock_for(kCallLimit)) mutex_.unlock();
}

std::function<void()> NcclComm::Abort() {
  closed_.store(true);
  Targets left;
  {
    const std::lock_guard<std::mutex> lock(splits_mutex_);
    left.swap(splits_);
  }
  // Without the lock, which a call may hold that ends by this alone.
  if (target_->comm != nullptr && !std::exchange(freed_, true)) api_.ncclCommAbort(target_->comm);
  return [&api = api_, left = std::move(left)] {
    for (const std::shared_ptr<Target>& target : left) {
      if (target->comm != nullptr) api.ncclCommAbort(target->comm);
    }
  };
}

}  // namespace bowline
