#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_COMM_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_COMM_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/drivers/cuda/nccl/nccl_api.h"
#include "runtime/hal/exchange.h"

namespace bowline {

// A communicator of NCCL that never blocks. If NCCL has not completed a call when it returns, a thread of NCCL
// completes it, and the caller may call nothing else of the communicator meanwhile.
//
// A lock lets one thread at a time call NCCL, also to read its state, because NCCL joins its own thread in that call.
// The lock is free while NCCL works between two calls. Any thread may close and abort: both refuse later calls, and
// wait a few seconds for a call under way.
class NcclComm {
 public:
  // `exchange` is that of the members, and outlives it.
  NcclComm(const NcclApi& api, hal::Exchange& exchange)
      : api_(api), exchange_(exchange), target_(new Target{.name = exchange.name()}) {}
  // Finish or Abort must have been called if it was connected.
  ~NcclComm() = default;
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // Connect the members, all of which call it: by an id that one of them made, or from a communicator with the same
  // members in the same order. Wait for them, at most as long as the exchange does. The card's context is current.
  absl::Status Connect(const ncclUniqueId& id);
  absl::Status SplitFrom(NcclComm& parent);

  // Calls function(comm), and waits until NCCL is done with it, or someone closes this: there is no other limit, as the
  // watch of the device closes it when the exchange's timeout is over.
  template <typename Function>
  absl::Status Call(absl::string_view name, Function function) {
    ncclResult_t result = ncclSuccess;
    {
      const Use use(*this);
      if (!use.allowed()) return Aborted();
      result = function(target_->comm);
    }
    return Settle(result, name);
  }

  // The error that NCCL found by itself, if there is one.
  absl::Status AsyncError();
  // The same; OK while another thread is in a call, for which it does not wait.
  absl::Status AsyncErrorUnlessBusy();

  // Ends it when all members do, and frees it; after a short while or an error without them. `begun` is the number of
  // operations that it began.
  absl::Status Finish(uint64_t begun);

  // Refuses calls from now on, and waits up to 5 s for a call under way; Abort ends a longer call.
  void Close();
  // Call it after Close. Ends the communicator's work on the card and frees it, at the end of a group of NCCL if one is
  // open. The caller must then call the returned function, which frees the remains of splits that failed.
  [[nodiscard]] std::function<void()> Abort();

 private:
  // A call, one at a time.
  class Use {
   public:
    explicit Use(NcclComm& comm) : lock_(comm.mutex_), allowed_(!comm.closed_.load()) {}
    bool allowed() const { return allowed_; }

   private:
    const std::lock_guard<std::timed_mutex> lock_;
    const bool allowed_;
  };

  // The data that NCCL may read and write on a thread of its own, also after this object is gone.
  struct Target {
    std::string name;
    ncclComm_t comm = nullptr;
  };
  using Targets = std::vector<std::shared_ptr<Target>>;

  // Waits while NCCL is busy.
  absl::Status Settle(ncclResult_t result, absl::string_view name);
  // The same where NCCL waits for all members, which the exchange learns as a barrier with this number.
  absl::Status Meet(ncclResult_t result, absl::string_view name, uint64_t number, std::chrono::seconds limit);
  // Under the lock.
  ncclResult_t State();
  absl::Status Error();
  absl::Status Aborted() const;
  ncclConfig_t Config() const;
  // Returns whether `target` was this one's to free, and is the caller's from now on.
  bool Claim(const std::shared_ptr<Target>& target);

  const NcclApi& api_;
  hal::Exchange& exchange_;
  std::timed_mutex mutex_;  // held in calls
  std::atomic<bool> closed_{false};
  std::shared_ptr<Target> target_;
  bool freed_ = false;
  std::mutex splits_mutex_;
  Targets splits_;  // communicators being split from it, and failed splits
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_COMM_H_
