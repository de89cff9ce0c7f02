#include "runtime/comm/loopback/loopback_communicator.h"

#include "absl/strings/str_cat.h"
#include "runtime/comm/loopback/reduce.h"

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

absl::Status LoopbackCommunicator::AllReduce(hal::Stream& stream, absl::Span<const hal::Piece> pieces,
                                             kernels::DType dtype, hal::ReduceOp op) {
  return Issue(stream, Make(OperationKind::kAllReduce, dtype, op), pieces);
}

absl::Status LoopbackCommunicator::AllGather(hal::Stream& stream, absl::Span<const hal::Piece> pieces,
                                             kernels::DType dtype) {
  return Issue(stream, Make(OperationKind::kAllGather, dtype), pieces);
}

absl::Status LoopbackCommunicator::ReduceScatter(hal::Stream& stream, absl::Span<const hal::Piece> pieces,
                                                 kernels::DType dtype, hal::ReduceOp op) {
  return Issue(stream, Make(OperationKind::kReduceScatter, dtype, op), pieces);
}

absl::Status LoopbackCommunicator::AllToAll(hal::Stream& stream, absl::Span<const hal::Piece> pieces,
                                            kernels::DType dtype) {
  return Issue(stream, Make(OperationKind::kAllToAll, dtype), pieces);
}

absl::Status LoopbackCommunicator::Send(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                                        int peer) {
  Operation operation = Make(OperationKind::kSend, dtype);
  operation.peer = peer;
  return Issue(stream, operation, pieces);
}

absl::Status LoopbackCommunicator::Receive(hal::Stream& stream, absl::Span<const hal::Piece> pieces,
                                           kernels::DType dtype, int peer) {
  Operation operation = Make(OperationKind::kReceive, dtype);
  operation.peer = peer;
  return Issue(stream, operation, pieces);
}

absl::Status LoopbackCommunicator::Barrier(hal::Stream& stream) {
  return Issue(stream, Make(OperationKind::kBarrier, kernels::DType::kU8), {});
}

absl::Status LoopbackCommunicator::Check(const Operation& operation, absl::Span<const hal::Piece> pieces) const {
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("communicator '", channel_->name(), "', rank ", channel_->ranks()[self_], ": ", why));
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

absl::Status LoopbackCommunicator::Issue(hal::Stream& stream, const Operation& operation,
                                         absl::Span<const hal::Piece> pieces) {
  BOWLINE_RETURN_IF_ERROR(Check(operation, pieces));
  hal::HostCall call;
  call.run = &LoopbackCommunicator::Run;
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

absl::Status LoopbackCommunicator::Run(const hal::HostCall& call) {
  const auto* self = static_cast<const LoopbackCommunicator*>(call.context);
  const Operation operation = Operation::Unpack(call.parameters[0]);
  if (call.parameters[1] != 1) {
    const auto* pieces = reinterpret_cast<const hal::Piece*>(call.parameters[2]);
    return self->channel_->Run(self->self_, operation, {pieces, static_cast<size_t>(call.parameters[1])});
  }
  const hal::Piece piece = {reinterpret_cast<const void*>(call.parameters[2]),
                            reinterpret_cast<void*>(call.parameters[3]), static_cast<size_t>(call.parameters[4])};
  return self->channel_->Run(self->self_, operation, {&piece, 1});
}

}  // namespace bowline
