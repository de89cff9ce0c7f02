#include "runtime/comm/host_communicator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/comm/reduce.h"

namespace bowline {
namespace {

// Of all members' parts of all pieces together, so that no product or sum overflows.
constexpr uint64_t kMaxBytes = uint64_t{1} << 60;

Operation Make(OperationKind kind, kernels::DType dtype) {
  Operation operation;
  operation.kind = kind;
  operation.dtype = dtype;
  return operation;
}

Operation Make(OperationKind kind, kernels::DType dtype, hal::ReduceOp op) {
  Operation operation = Make(kind, dtype);
  operation.op = op;
  return operation;
}

bool Reduces(const Operation& operation) {
  return operation.kind == OperationKind::kAllReduce || operation.kind == OperationKind::kReduceScatter;
}

}  // namespace

HostCommunicator::HostCommunicator(std::string name, std::vector<int> ranks, int self)
    : name_(std::move(name)), ranks_(std::move(ranks)), self_(self) {}

absl::Status HostCommunicator::AllReduce(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                                         hal::ReduceOp op) {
  return Issue(stream, Make(OperationKind::kAllReduce, dtype, op), pieces);
}

absl::Status HostCommunicator::AllGather(hal::Stream& stream, absl::Span<const hal::Piece> pieces,
                                         kernels::DType dtype) {
  return Issue(stream, Make(OperationKind::kAllGather, dtype), pieces);
}

absl::Status HostCommunicator::ReduceScatter(hal::Stream& stream, absl::Span<const hal::Piece> pieces,
                                             kernels::DType dtype, hal::ReduceOp op) {
  return Issue(stream, Make(OperationKind::kReduceScatter, dtype, op), pieces);
}

absl::Status HostCommunicator::AllToAll(hal::Stream& stream, absl::Span<const hal::Piece> pieces,
                                        kernels::DType dtype) {
  return Issue(stream, Make(OperationKind::kAllToAll, dtype), pieces);
}

absl::Status HostCommunicator::Send(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                                    int peer) {
  Operation operation = Make(OperationKind::kSend, dtype);
  operation.peer = peer;
  return Issue(stream, operation, pieces);
}

absl::Status HostCommunicator::Receive(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                                       int peer) {
  Operation operation = Make(OperationKind::kReceive, dtype);
  operation.peer = peer;
  return Issue(stream, operation, pieces);
}

absl::Status HostCommunicator::Barrier(hal::Stream& stream) {
  return Issue(stream, Make(OperationKind::kBarrier, kernels::DType::kU8), {});
}

absl::Status HostCommunicator::Check(const Operation& operation, absl::Span<const hal::Piece> pieces) const {
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("communicator '", name_, "', rank ", ranks_[self_], ": ", why));
  };
  if (operation.concerns_two() && (operation.peer < 0 || operation.peer >= size() || operation.peer == self_)) {
    return refuse(absl::StrCat("member ", self_, " of ", size(), " has no peer ", operation.peer));
  }
  if (Reduces(operation) && !CanReduce(operation.dtype)) {
    return refuse(absl::StrCat(std::string(kernels::NameOf(operation.dtype)),
                               " cannot be reduced; f32, f64, bf16, i32, i64 can"));
  }
  const uint64_t limit = kMaxBytes / static_cast<uint64_t>(size()) / kernels::SizeOf(operation.dtype);
  uint64_t total = 0;
  for (const hal::Piece& piece : pieces) {
    if (piece.count > limit - total) return refuse("more bytes than any machine has");
    total += piece.count;
    if (piece.count == 0) continue;
    if (operation.kind != OperationKind::kReceive && piece.send == nullptr) return refuse("nothing to send from");
    if (operation.kind != OperationKind::kSend && piece.receive == nullptr) return refuse("nowhere to receive to");
  }
  return absl::OkStatus();
}

absl::Status HostCommunicator::Issue(hal::Stream& stream, const Operation& operation,
                                     absl::Span<const hal::Piece> pieces) {
  BOWLINE_RETURN_IF_ERROR(Check(operation, pieces));
  hal::HostCall call;
  call.run = &HostCommunicator::RunCall;
  call.context = this;
  call.parameters[0] = operation.Pack();
  call.parameters[1] = pieces.size();
  if (pieces.size() == 1) {
    call.parameters[2] = reinterpret_cast<uintptr_t>(pieces[0].send);
    call.parameters[3] = reinterpret_cast<uintptr_t>(pieces[0].receive);
    call.parameters[4] = pieces[0].count;
  } else {
    call.parameters[2] = reinterpret_cast<uintptr_t>(pieces.data());
  }
  return stream.Call(call);
}

absl::Status HostCommunicator::RunCall(const hal::HostCall& call) {
  auto* self = static_cast<HostCommunicator*>(call.context);
  const Operation operation = Operation::Unpack(call.parameters[0]);
  if (call.parameters[1] != 1) {
    const auto* pieces = reinterpret_cast<const hal::Piece*>(call.parameters[2]);
    return self->Run(operation, {pieces, static_cast<size_t>(call.parameters[1])});
  }
  const hal::Piece piece = {reinterpret_cast<const void*>(call.parameters[2]),
                            reinterpret_cast<void*>(call.parameters[3]), static_cast<size_t>(call.parameters[4])};
  return self->Run(operation, {&piece, 1});
}

}  // namespace bowline
