#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_COMMUNICATOR_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/drivers/cuda/card/cuda_memory.h"
#include "runtime/drivers/cuda/card/cuda_stream.h"
#include "runtime/drivers/cuda/nccl/nccl_comm.h"
#include "runtime/drivers/cuda/nccl/nccl_watch.h"
#include "runtime/hal/communicator.h"

namespace bowline {

// A communicator whose operations NCCL runs, on the card, from memory of the card. An operation of several pieces, or
// with sends and receives, is one group of NCCL calls.
//
// Before and after each operation the stream writes its progress to a word of the host's memory. The word tells in
// which operation a rank is stuck. A recording writes the same words in each replay, so the stream also writes the
// number of the replay before each replay.
class NcclCommunicator : public hal::Communicator,
                         private StreamOperation,
                         private NcclWatch::Member,
                         private MemoryListener {
 public:
  // `comm` is connected. `memory` and `watch` are the device's, and outlive it.
  static absl::StatusOr<std::unique_ptr<hal::Communicator>> Create(const NcclApi& api, CudaMemory* memory,
                                                                   NcclWatch* watch,
                                                                   std::unique_ptr<hal::Exchange> exchange,
                                                                   std::shared_ptr<NcclComm> comm);
  ~NcclCommunicator() override;

  int rank() const override { return exchange_->self(); }
  int size() const override { return exchange_->size(); }
  bool CanRecord() const override { return true; }
  // Also registers the allocations in which the pieces lie, so that NCCL may read and write them in place.
  absl::Status Reserve(const hal::Operation& operation, absl::Span<const hal::Piece> pieces) override;
  absl::Status Issue(hal::Stream& stream, const hal::Operation& operation,
                     absl::Span<const hal::Piece> pieces) override;

 private:
  NcclCommunicator(const NcclApi& api, CudaMemory* memory, NcclWatch* watch, std::unique_ptr<hal::Exchange> exchange,
                   std::shared_ptr<NcclComm> comm)
      : api_(api), memory_(memory), watch_(watch), exchange_(std::move(exchange)), comm_(std::move(comm)) {}

  // An operation that was handed to CUDA. In a recording, its number and the collectives count from the beginning of a
  // replay.
  struct Submitted {
    hal::Operation operation;
    uint64_t elements = 0;
    uint64_t collectives = 0;       // operations of all members up to this one
    std::optional<uint64_t> label;  // commands of a recording have none
  };
  // The operations of a recording.
  struct Recorded {
    uint32_t operations = 0;
    uint64_t collectives = 0;
  };
  struct Replay {
    uint32_t first_number = 0;
    uint64_t collectives_before = 0, collectives_after = 0;
  };
  // The progress of the card.
  struct Place {
    std::optional<Submitted> under_way;
    uint64_t collectives = 0;  // begun
  };
  static constexpr size_t kRemembered = 4096;  // more than streams of a card hold

  // StreamOperation
  absl::Status Submit(CUstream stream, uint64_t label, const CudaRecording* recording,
                      const std::array<uint64_t, 6>& parameters) override;
  absl::Status BeginReplay(CUstream stream, const CudaRecording* recording) override;
  void Forget(const CudaRecording* recording) override;
  bool HasFailed() override { return watch_->has_failed() || !comm_->AsyncError().ok(); }
  absl::Status Failure(std::optional<uint64_t>* label) override;
  // NcclWatch::Member
  absl::Status Look() override;
  void Close() override;
  std::function<void()> Abort() override { return comm_->Abort(); }
  // MemoryListener
  void BeforeFree(CUdeviceptr memory) override;

  // Reports the card's operation to the exchange.
  absl::Status Report();
  // Tells all ranks of an error that NCCL found; returns the error that broke the run.
  absl::Status Complain(const absl::Status& found);
  absl::Status Register(hal::DeviceAddress address);
  // Counts an operation, and returns the word that the stream writes while it is under way.
  uint32_t Enter(Submitted submitted, const CudaRecording* recording);
  Place WhereTheCardIs() const;
  absl::Status Mark(CUstream stream, uint32_t state);
  ncclResult_t Enqueue(const hal::Operation& operation, absl::Span<const hal::Piece> pieces, ncclComm_t comm,
                       CUstream stream);
  ncclResult_t EnqueuePiece(const hal::Operation& operation, const hal::Piece& piece, ncclComm_t comm, CUstream stream);

  const NcclApi& api_;
  CudaMemory* memory_;
  NcclWatch* watch_;
  std::unique_ptr<hal::Exchange> exchange_;
  std::shared_ptr<NcclComm> comm_;
  std::unique_ptr<hal::Allocation> place_;   // pinned, of 8 bytes: the state, and the number of the replay
  std::unique_ptr<hal::Allocation> word_;    // the value that a barrier sums
  std::map<CUdeviceptr, void*> registered_;  // handles by allocation; null: NCCL did not want it
  bool watched_ = false;
  mutable std::mutex mutex_;  // guards the members below
  uint32_t next_number_ = 0, replays_begun_ = 0;
  uint64_t collectives_ = 0;
  std::vector<Submitted> submitted_;  // by number, modulo its size
  std::vector<Replay> replays_;       // by number, modulo its size
  // Operations in recordings, from `first_recorded_` on; 0 is the begin of a replay. They go when no recording is left.
  std::deque<Submitted> recorded_;
  uint32_t first_recorded_ = 1;
  std::map<const CudaRecording*, Recorded> recordings_;
  // The label of the operation that was under way when all was ended.
  std::optional<uint64_t> failed_label_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_NCCL_NCCL_COMMUNICATOR_H_
