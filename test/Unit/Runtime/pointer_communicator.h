#ifndef BOWLINE_TEST_UNIT_RUNTIME_POINTER_COMMUNICATOR_H_
#define BOWLINE_TEST_UNIT_RUNTIME_POINTER_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <utility>

#include "runtime/comm/group.h"
#include "runtime/drivers/host/host_memory.h"
#include "runtime/hal/device.h"

namespace bowline::testing {

// A communicator of a device whose addresses are pointers, such as the cpu driver's, on memory of the test.
class PointerCommunicator {
 public:
  static absl::StatusOr<std::unique_ptr<PointerCommunicator>> Create(RankGroup& group, hal::Device& device,
                                                                     absl::string_view name,
                                                                     absl::Span<const int> members,
                                                                     const LinkOptions& link = {}) {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Exchange> exchange, group.CreateExchange(name, members, link));
    hal::Exchange* of_it = exchange.get();
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Communicator> inner, device.CreateCommunicator(std::move(exchange)));
    return std::unique_ptr<PointerCommunicator>(new PointerCommunicator(of_it, std::move(inner)));
  }

  hal::Exchange& exchange() { return *exchange_; }
  int rank() const { return inner_->rank(); }
  int size() const { return inner_->size(); }

  using Pieces = absl::Span<const hal::HostPiece>;
  absl::Status AllReduce(hal::Stream& stream, Pieces pieces, kernels::DType dtype, hal::ReduceOp op) {
    return Issue(stream, hal::Operation::Reduction(hal::OperationKind::kAllReduce, dtype, op), pieces);
  }
  absl::Status AllGather(hal::Stream& stream, Pieces pieces, kernels::DType dtype) {
    return Issue(stream, {hal::OperationKind::kAllGather, dtype}, pieces);
  }
  absl::Status ReduceScatter(hal::Stream& stream, Pieces pieces, kernels::DType dtype, hal::ReduceOp op) {
    return Issue(stream, hal::Operation::Reduction(hal::OperationKind::kReduceScatter, dtype, op), pieces);
  }
  absl::Status AllToAll(hal::Stream& stream, Pieces pieces, kernels::DType dtype) {
    return Issue(stream, {hal::OperationKind::kAllToAll, dtype}, pieces);
  }
  absl::Status Permute(hal::Stream& stream, Pieces pieces, kernels::DType dtype, uint16_t shift) {
    return Issue(stream, {hal::OperationKind::kPermute, dtype, shift}, pieces);
  }
  absl::Status Send(hal::Stream& stream, Pieces pieces, kernels::DType dtype, int peer) {
    return Issue(stream, {.kind = hal::OperationKind::kSend, .dtype = dtype, .peer = peer}, pieces);
  }
  absl::Status Receive(hal::Stream& stream, Pieces pieces, kernels::DType dtype, int peer) {
    return Issue(stream, {.kind = hal::OperationKind::kReceive, .dtype = dtype, .peer = peer}, pieces);
  }
  absl::Status Barrier(hal::Stream& stream) {
    return Issue(stream, {hal::OperationKind::kBarrier, kernels::DType::kU8}, {});
  }

 private:
  PointerCommunicator(hal::Exchange* exchange, std::unique_ptr<hal::Communicator> inner)
      : exchange_(exchange), inner_(std::move(inner)) {}

  absl::Status Issue(hal::Stream& stream, const hal::Operation& operation, Pieces pieces) {
    // Pieces of pointers and of addresses are the same words (host_memory.h).
    return inner_->Issue(stream, operation, {reinterpret_cast<const hal::Piece*>(pieces.data()), pieces.size()});
  }

  hal::Exchange* exchange_;
  std::unique_ptr<hal::Communicator> inner_;
};

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_RUNTIME_POINTER_COMMUNICATOR_H_
