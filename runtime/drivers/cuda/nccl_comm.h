#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_COMM_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_COMM_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/drivers/cuda/nccl_api.h"
#include "runtime/hal/exchange.h"

namespace bowline {

// One of NCCL's communicators, which never blocks: what NCCL has not done when a call returns, it does on a thread of
// its own, and nothing else may be asked of it meanwhile.
//
// One thread at a time calls, and another one may abort at any time: what is being called then is waited for, which is
// short, and what is called later is refused.
class NcclComm {
 public:
  // `exchange` is that of the members, and outlives it.
  NcclComm(const NcclApi& api, hal::Exchange& exchange) : api_(api), exchange_(exchange) {}
  // Finish or Abort must have been called if it was connected.
  ~NcclComm() = default;
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // Connect the members, all of which call it: by an id that one of them made, or from a communicator with the same
  // members in the same order. Wait for them, at most as long as the exchange does. The card's context is current.
  absl::Status Connect(const ncclUniqueId& id);
  absl::Status SplitFrom(NcclComm& parent);

  // Calls function(comm), and waits until NCCL is done with it.
  template <typename Function>
  absl::Status Call(absl::string_view name, Function function) {
    ncclResult_t result = ncclSuccess;
    {
      const Use use(*this);
      if (!use.allowed()) return Aborted();
      result = function(comm_);
    }
    return Settle(result, name);
  }

  // The error that NCCL found by itself, if there is one.
  absl::Status AsyncError();

  // Ends it when all members do, and frees it; after a short while or an error without them. `begun` is the number of
  // operations that it began.
  absl::Status Finish(uint64_t begun);

  // Refuses calls from now on, and waits for those under way.
  void Close();
  // After Close: ends whatever the card does for it, and frees it.
  void Abort();

 private:
  // A call that is under way.
  class Use {
   public:
    explicit Use(NcclComm& comm) : comm_(comm) { comm.calls_.fetch_add(1); }
    ~Use() { comm_.calls_.fetch_sub(1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    bool allowed() const { return !comm_.closed_.load(); }

   private:
    NcclComm& comm_;
  };

  // Waits while NCCL is busy.
  absl::Status Settle(ncclResult_t result, absl::string_view name);
  // The same where NCCL waits for all members, which the exchange learns as a barrier with this number.
  absl::Status Meet(ncclResult_t result, absl::string_view name, uint64_t number, std::chrono::seconds limit);
  ncclResult_t State();
  absl::Status Aborted() const;

  const NcclApi& api_;
  hal::Exchange& exchange_;
  ncclComm_t comm_ = nullptr;
  // Sequentially consistent: of a call that begins and of Close, one sees the other.
  std::atomic<bool> closed_{false};
  std::atomic<int> calls_{0};
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_COMM_H_
