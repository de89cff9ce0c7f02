#include "runtime/drivers/cuda/nccl/nccl_communicator.h"

#include <string>
#include <thread>

#include "runtime/drivers/cuda/nccl/nccl_types.h"

namespace bowline {
namespace {

// The state word that the stream writes: whether an operation is under way, the index of the operation, and whether the
// index is that of an operation in a recording. An index counts operations from 1, modulo 2^30.
constexpr uint32_t kUnderWay = 1, kRecorded = uint32_t{1} << 31;
constexpr uint32_t StateOf(uint32_t index) { return index << 1 & ~kRecorded; }
constexpr uint32_t IndexOf(uint32_t state) { return (state & ~kRecorded) >> 1; }
constexpr size_t kPlaceBytes = 8;

const void* PointerOf(hal::DeviceAddress address) { return reinterpret_cast<const void*>(address); }
void* WritablePointerOf(hal::DeviceAddress address) { return reinterpret_cast<void*>(address); }

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Communicator>> NcclCommunicator::Create(const NcclApi& api, CudaMemory* memory,
                                                                            NcclWatch* watch,
                                                                            std::unique_ptr<hal::Exchange> exchange,
                                                                            std::shared_ptr<NcclComm> comm) {
  std::unique_ptr<NcclCommunicator> made(
      new NcclCommunicator(api, memory, watch, std::move(exchange), std::move(comm)));
  made->submitted_.resize(kRemembered);
  made->replays_.resize(kRemembered);
  BOWLINE_ASSIGN_OR_RETURN(made->place_, memory->Allocate(kPlaceBytes, hal::MemorySpace::kPinnedHost));
  BOWLINE_RETURN_IF_ERROR(made->place_->Write(0, std::vector<uint8_t>(kPlaceBytes, 0)));
  BOWLINE_ASSIGN_OR_RETURN(made->word_, memory->Allocate(sizeof(uint32_t), hal::MemorySpace::kDevice));
  BOWLINE_RETURN_IF_ERROR(watch->Add(made.get()));
  memory->AddListener(made.get());
  made->watched_ = true;
  return std::unique_ptr<hal::Communicator>(std::move(made));
}

NcclCommunicator::~NcclCommunicator() {
  if (watched_) {
    watch_->Remove(this);
    memory_->RemoveListener(this);
  }
  if (!memory_->card().MakeCurrent().ok() || watch_->has_failed() || !exchange_->status().ok()) {
    comm_->Close();
    comm_->Abort()();
    return;
  }
  while (!registered_.empty()) BeforeFree(registered_.begin()->first);
  // The others have to end, too, so that they have all data that this rank sent.
  if (const absl::Status ended = comm_->Finish(collectives_ + 1); !ended.ok()) watch_->Fail(ended).IgnoreError();
}

absl::Status NcclCommunicator::Reserve(const hal::Operation& operation, absl::Span<const hal::Piece> pieces) {
  BOWLINE_RETURN_IF_ERROR(hal::CheckOperation(*exchange_, operation, pieces));
  for (const hal::Piece& piece : pieces) {
    if (piece.count == 0) continue;
    if (operation.SendParts(size()) > 0) BOWLINE_RETURN_IF_ERROR(Register(piece.send));
    if (operation.ReceiveParts(size()) > 0) BOWLINE_RETURN_IF_ERROR(Register(piece.receive));
  }
  return absl::OkStatus();
}

absl::Status NcclCommunicator::Register(hal::DeviceAddress address) {
  const std::optional<CudaMemory::Range> range = memory_->AllocationOf(address);
  if (!range.has_value() || registered_.contains(range->begin)) return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(memory_->card().MakeCurrent());
  void* handle = nullptr;
  const absl::Status status = comm_->Call("ncclCommRegister", [&](ncclComm_t comm) {
    return api_.ncclCommRegister(comm, WritablePointerOf(range->begin), range->bytes, &handle);
  });
  BOWLINE_RETURN_IF_ERROR(exchange_->status());
  // It is faster where NCCL can make use of it, and right without.
  registered_[range->begin] = status.ok() ? handle : nullptr;
  return absl::OkStatus();
}

void NcclCommunicator::BeforeFree(CUdeviceptr memory) {
  const auto found = registered_.find(memory);
  if (found == registered_.end()) return;
  void* const handle = found->second;
  registered_.erase(found);
  if (handle == nullptr || watch_->has_failed()) return;
  comm_->Call("ncclCommDeregister", [&](ncclComm_t comm) { return api_.ncclCommDeregister(comm, handle); })
      .IgnoreError();
}

absl::Status NcclCommunicator::Issue(hal::Stream& stream, const hal::Operation& operation,
                                     absl::Span<const hal::Piece> pieces) {
  BOWLINE_RETURN_IF_ERROR(hal::CheckOperation(*exchange_, operation, pieces));
  if (watch_->has_failed()) return watch_->failure();
  std::array<uint64_t, 6> parameters = {operation.Pack(), pieces.size()};
  if (pieces.size() == 1) {
    parameters[2] = pieces[0].send;
    parameters[3] = pieces[0].receive;
    parameters[4] = pieces[0].count;
  } else {
    parameters[2] = reinterpret_cast<uint64_t>(pieces.data());
  }
  return static_cast<CudaStream&>(stream).Add(*this, parameters);
}

absl::Status NcclCommunicator::Submit(CUstream stream, uint64_t label, const CudaRecording* recording,
                                      const std::array<uint64_t, 6>& parameters) {
  const hal::Operation operation = hal::Operation::Unpack(parameters[0]);
  const auto count = static_cast<size_t>(parameters[1]);
  const hal::Piece single = {parameters[2], parameters[3], static_cast<size_t>(parameters[4])};
  const auto* const pieces = count == 1 ? &single : reinterpret_cast<const hal::Piece*>(parameters[2]);
  Submitted submitted = {.operation = operation, .elements = hal::TotalOf(absl::Span<const hal::Piece>(pieces, count))};
  if (recording == nullptr) submitted.label = label;
  const uint32_t state = Enter(submitted, recording);
  BOWLINE_RETURN_IF_ERROR(Mark(stream, state));
  const absl::Status status =
      comm_->Call("NCCL", [&](ncclComm_t comm) { return Enqueue(operation, {pieces, count}, comm, stream); });
  if (!status.ok()) {
    return watch_->Fail(Complain(status));
  }
  return Mark(stream, state & ~kUnderWay);
}

uint32_t NcclCommunicator::Enter(Submitted submitted, const CudaRecording* recording) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t collective = submitted.operation.concerns_two() ? 0 : 1;
  if (recording == nullptr) {
    submitted.operation.number = next_number_++;
    submitted.collectives = collectives_ += collective;
    submitted_[submitted.operation.number % kRemembered] = submitted;
    return StateOf(next_number_) | kUnderWay;
  }
  Recorded& own = recordings_[recording];
  submitted.operation.number = own.operations++;
  submitted.collectives = own.collectives += collective;
  recorded_.push_back(submitted);
  return StateOf(first_recorded_ + static_cast<uint32_t>(recorded_.size() - 1)) | kRecorded | kUnderWay;
}

absl::Status NcclCommunicator::BeginReplay(CUstream stream, const CudaRecording* recording) {
  if (watch_->has_failed()) return watch_->failure();
  uint32_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Recorded& own = recordings_[recording];
    number = replays_begun_++;
    replays_[number % kRemembered] = {next_number_, collectives_, collectives_ + own.collectives};
    next_number_ += own.operations;
    collectives_ += own.collectives;
  }
  return BOWLINE_CUDA(memory_->card().api(), cuStreamWriteValue64, stream, place_->address(),
                      uint64_t{number} << 32 | kRecorded, CU_STREAM_WRITE_VALUE_DEFAULT);
}

void NcclCommunicator::Forget(const CudaRecording* recording) {
  const std::lock_guard<std::mutex> lock(mutex_);
  recordings_.erase(recording);
  if (!recordings_.empty()) return;
  first_recorded_ += static_cast<uint32_t>(recorded_.size());
  recorded_.clear();
}

absl::Status NcclCommunicator::Mark(CUstream stream, uint32_t state) {
  return BOWLINE_CUDA(memory_->card().api(), cuStreamWriteValue32, stream, place_->address(), state,
                      CU_STREAM_WRITE_VALUE_DEFAULT);
}

ncclResult_t NcclCommunicator::Enqueue(const hal::Operation& operation, absl::Span<const hal::Piece> pieces,
                                       ncclComm_t comm, CUstream stream) {
  if (operation.kind == hal::OperationKind::kBarrier) {
    return api_.ncclAllReduce(PointerOf(word_->address()), WritablePointerOf(word_->address()), 1, ncclUint32, ncclSum,
                              comm, reinterpret_cast<cudaStream_t>(stream));
  }
  ncclResult_t result = api_.ncclGroupStart();
  if (result != ncclSuccess) return result;
  for (const hal::Piece& piece : pieces) {
    if (piece.count == 0) continue;
    if (result = EnqueuePiece(operation, piece, comm, stream); result != ncclSuccess) break;
  }
  const ncclResult_t ended = api_.ncclGroupEnd();
  return result == ncclSuccess ? ended : result;
}

ncclResult_t NcclCommunicator::EnqueuePiece(const hal::Operation& operation, const hal::Piece& piece, ncclComm_t comm,
                                            CUstream cu_stream) {
  auto* const stream = reinterpret_cast<cudaStream_t>(cu_stream);
  const void* const send = PointerOf(piece.send);
  void* const receive = WritablePointerOf(piece.receive);
  const size_t bytes = piece.count * kernels::SizeOf(operation.dtype);
  const int members = size(), self = rank();
  const ncclRedOp_t reduction = operation.op() == hal::ReduceOp::kMax ? ncclMax : ncclSum;
  const auto send_part = [&](int part, int peer) {
    return api_.ncclSend(PointerOf(piece.send + static_cast<size_t>(part) * bytes), bytes, kNcclByte, peer, comm,
                         stream);
  };
  const auto receive_part = [&](int part, int peer) {
    return api_.ncclRecv(WritablePointerOf(piece.receive + static_cast<size_t>(part) * bytes), bytes, kNcclByte, peer,
                         comm, stream);
  };
  ncclResult_t result = ncclSuccess;
  switch (operation.kind) {
    case hal::OperationKind::kAllReduce:
      return api_.ncclAllReduce(send, receive, piece.count, *NcclReduced(operation.dtype), reduction, comm, stream);
    case hal::OperationKind::kReduceScatter:
      return api_.ncclReduceScatter(send, receive, piece.count, *NcclReduced(operation.dtype), reduction, comm, stream);
    case hal::OperationKind::kAllGather:
      return api_.ncclAllGather(send, receive, bytes, kNcclByte, comm, stream);
    case hal::OperationKind::kAllToAll:
      for (int peer = 0; peer < members && result == ncclSuccess; ++peer) {
        result = send_part(peer, peer);
        if (result == ncclSuccess) result = receive_part(peer, peer);
      }
      return result;
    case hal::OperationKind::kPermute:
      result = send_part(0, (self + operation.parameter) % members);
      return result == ncclSuccess ? receive_part(0, (self + members - operation.parameter) % members) : result;
    case hal::OperationKind::kSend:
      return send_part(0, operation.peer);
    case hal::OperationKind::kReceive:
      return receive_part(0, operation.peer);
    default:
      return ncclInvalidArgument;
  }
}

NcclCommunicator::Place NcclCommunicator::WhereTheCardIs() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t word = __atomic_load_n(reinterpret_cast<const uint64_t*>(place_->host()), __ATOMIC_ACQUIRE);
  const auto state = static_cast<uint32_t>(word);
  Submitted last;
  if ((state & kRecorded) == 0) {
    last = submitted_[(IndexOf(state) - 1) % kRemembered];
  } else {
    const Replay& replay = replays_[(word >> 32) % kRemembered];
    if (IndexOf(state) == 0) return {std::nullopt, replay.collectives_before};
    const uint32_t index = IndexOf(state) - first_recorded_;
    // It was of a recording that is gone, which the card has left by then.
    if (index >= recorded_.size()) return {std::nullopt, replay.collectives_after};
    last = recorded_[index];
    last.operation.number += replay.first_number;
    last.collectives += replay.collectives_before;
  }
  return {(state & kUnderWay) == 0 ? std::nullopt : std::optional(last), last.collectives};
}

absl::Status NcclCommunicator::Look() {
  BOWLINE_RETURN_IF_ERROR(exchange_->status());
  // A call may take long, and this thread looks after other communicators, too.
  const absl::Status found = comm_->AsyncErrorUnlessBusy();
  return found.ok() ? Report() : Complain(found);
}

absl::Status NcclCommunicator::Complain(const absl::Status& found) {
  BOWLINE_RETURN_IF_ERROR(Report());
  // By then the other ranks have reported their operations, also on a busy machine.
  std::this_thread::sleep_for(25 * NcclWatch::kPeriod);
  return exchange_->Complain(std::string(found.message()));
}

absl::Status NcclCommunicator::Report() {
  // One more is the meeting of all members at which they were connected.
  const Place place = WhereTheCardIs();
  const Submitted in = place.under_way.value_or(Submitted());
  return exchange_->Report(in.operation, in.elements, place.collectives + 1);
}

void NcclCommunicator::Close() {
  comm_->Close();
  if (const Place place = WhereTheCardIs(); place.under_way.has_value()) failed_label_ = place.under_way->label;
}

absl::Status NcclCommunicator::Failure(std::optional<uint64_t>* label) {
  if (!watch_->has_failed()) {
    // NCCL may have ended an operation with an error before anybody looked.
    const absl::Status found = comm_->AsyncError();
    if (found.ok()) return found;
    watch_->Fail(Complain(found)).IgnoreError();
  }
  const absl::Status failure = watch_->failure();
  *label = failed_label_;
  return failure;
}

}  // namespace bowline
