#include "runtime/drivers/cuda/nccl/nccl_watch.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline {

NcclWatch::~NcclWatch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::Status NcclWatch::Add(Member* member) {
  const std::lock_guard<std::mutex> lock(mutex_);
  BOWLINE_RETURN_IF_ERROR(failure_);
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread(&NcclWatch::Work, this);
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "cannot start a thread that watches communicators: ", error.what(), "; run fewer ranks on this machine"));
    }
  }
  members_.push_back(member);
  return absl::OkStatus();
}

void NcclWatch::Remove(Member* member) {
  const std::lock_guard<std::mutex> lock(mutex_);
  members_.erase(std::remove(members_.begin(), members_.end(), member), members_.end());
}

absl::Status NcclWatch::failure() const {
  if (!has_failed()) return absl::OkStatus();
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

absl::Status NcclWatch::Fail(absl::Status why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.ok()) {
    CloseAll(std::move(why));
    changed_.notify_all();
  }
  return failure_;
}

void NcclWatch::CloseAll(absl::Status why) {
  failure_ = std::move(why);
  // Before the card goes on, so that threads that wait for the card find the error.
  has_failed_.store(true, std::memory_order_release);
  for (Member* const member : members_) member->Close();
}

void NcclWatch::AbortAll(std::unique_lock<std::mutex>& lock) {
  aborted_ = true;
  // In one group: to free one communicator may take all of the card's other work to end.
  std::vector<std::function<void()>> afterwards;
  api_.ncclGroupStart();
  for (Member* const member : members_) afterwards.push_back(member->Abort());
  // ncclGroupEnd ends the operations under way. Threads that wait for them then ask for the failure and destroy graphs.
  lock.unlock();
  api_.ncclGroupEnd();
  for (const std::function<void()>& function : afterwards) function();
  lock.lock();
}

void NcclWatch::Work() {
  absl::Status status = card_->MakeCurrent();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    for (Member* const member : members_) {
      if (!failure_.ok()) break;
      if (status.ok()) status = member->Look();
      if (!status.ok()) CloseAll(status);
    }
    if (!failure_.ok() && !aborted_) AbortAll(lock);
    changed_.wait_for(lock, kPeriod, [this] { return stop_ || (!failure_.ok() && !aborted_); });
  }
}

}  // namespace bowline
