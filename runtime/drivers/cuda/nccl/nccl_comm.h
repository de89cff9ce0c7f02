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
  // `exchange` belongs to the members and must outlive this object.
  NcclComm(const NcclApi& api, hal::Exchange& exchange)
      : api_(api), exchange_(exchange), target_(new Target{.name = exchange.name()}) {}
  // If this object was connected, Finish or Abort must have been called.
  ~NcclComm() = default;
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // Connect the members by an id that one of them made, or from a communicator with the same members in the same order.
  // All members call it, and wait for each other at most as long as the exchange does. The card's context is current.
  absl::Status Connect(const ncclUniqueId& id);
  absl::Status SplitFrom(NcclComm& parent);

  // Calls function(comm), and waits until NCCL has completed it or Close was called. There is no other limit, because
  // the device's watch calls Close after the exchange's timeout.
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

  // Returns the error that NCCL found by itself, or OK.
  absl::Status AsyncError();
  // Does the same without waiting: returns OK while another thread is in a call.
  absl::Status AsyncErrorUnlessBusy();

  // Waits a short time until all members finish, and frees the communicator; after an error it does not wait. `begun`
  // is the number of operations that this member began.
  absl::Status Finish(uint64_t begun);

  // Refuses calls from now on, and waits up to 5 s for a call under way; Abort ends a longer call.
  void Close();
  // Call it after Close. Ends the communicator's work on the card and frees it, at the end of a group of NCCL if one is
  // open. The caller must then call the returned function, which frees the remains of splits that failed.
  [[nodiscard]] std::function<void()> Abort();

 private:
  // Holds the lock during a call, so that there is one call at a time.
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
  // Does the same for a call in which NCCL waits for all members. The exchange sees it as the barrier `number`.
  absl::Status Meet(ncclResult_t result, absl::string_view name, uint64_t number, std::chrono::seconds limit);
  // Both need the lock.
  ncclResult_t State();
  absl::Status Error();
  absl::Status Aborted() const;
  ncclConfig_t Config() const;
  // Returns true if this object owned `target`; the caller must then free it.
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
