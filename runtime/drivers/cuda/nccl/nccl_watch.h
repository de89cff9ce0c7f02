#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_WATCH_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_WATCH_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/drivers/cuda/nccl/nccl_api.h"

namespace bowline {

// A thread of a device that watches its communicators. On the card, an operation of NCCL waits for other ranks without
// limit. The host then waits too, in a wait for a stream or in a launch into a full queue. This thread therefore
// detects that a rank is late or gone, and ends all communicators.
class NcclWatch {
 public:
  // A small part of the shortest timeout that a run may have.
  static constexpr std::chrono::milliseconds kPeriod{10};

  class Member {
   public:
    virtual ~Member() = default;
    // Reports the operation under way to the other ranks. Returns the error that broke the run or that NCCL found.
    virtual absl::Status Look() = 0;
    // Refuses operations from now on. Abort follows, when all members are closed.
    virtual void Close() = 0;
    // The watch calls the returned function after NCCL has ended the group of all aborts; the member may be gone then.
    virtual std::function<void()> Abort() = 0;
  };

  NcclWatch(const CudaCard* card, const NcclApi& api) : card_(card), api_(api) {}
  ~NcclWatch();
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;

  // Returns kResourceExhausted when the system has no thread for it.
  absl::Status Add(Member* member);
  // Nothing is called any more when this returns.
  void Remove(Member* member);

  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  // OK, or why all operations were ended.
  absl::Status failure() const;
  // All operations of all members end soon after this. The first error stays, and is returned.
  absl::Status Fail(absl::Status why);

 private:
  void Work();
  void CloseAll(absl::Status why);
  // Runs on the thread of the watch only: NCCL may wait in it until the owners of graphs destroy them. Unlocks.
  void AbortAll(std::unique_lock<std::mutex>& lock);

  const CudaCard* card_;
  const NcclApi& api_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<Member*> members_;
  absl::Status failure_;
  bool stop_ = false, aborted_ = false;
  std::atomic<bool> has_failed_{false};
  std::thread thread_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_WATCH_H_
