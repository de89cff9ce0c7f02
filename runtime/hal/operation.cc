#include "runtime/hal/operation.h"

#include "absl/strings/str_cat.h"

namespace bowline::hal {
namespace {

const char* NameOf(const Operation& operation) {
  const bool sum = operation.op == ReduceOp::kSum;
  switch (operation.kind) {
    case OperationKind::kAllReduce:
      return sum ? "all_reduce(sum)" : "all_reduce(max)";
    case OperationKind::kAllGather:
      return "all_gather";
    case OperationKind::kReduceScatter:
      return sum ? "reduce_scatter(sum)" : "reduce_scatter(max)";
    case OperationKind::kAllToAll:
      return "all_to_all";
    case OperationKind::kSend:
      return "send";
    case OperationKind::kReceive:
      return "receive";
    case OperationKind::kBarrier:
      return "barrier";
    case OperationKind::kNone:
      break;
  }
  return "nothing";
}

}  // namespace

bool CanReduce(kernels::DType dtype) {
  switch (dtype) {
    case kernels::DType::kF32:
    case kernels::DType::kF64:
    case kernels::DType::kBF16:
    case kernels::DType::kI32:
    case kernels::DType::kI64:
      return true;
    default:
      return false;
  }
}

int Operation::SendParts(int members) const {
  switch (kind) {
    case OperationKind::kReduceScatter:
    case OperationKind::kAllToAll:
      return members;
    case OperationKind::kReceive:
    case OperationKind::kBarrier:
    case OperationKind::kNone:
      return 0;
    default:
      return 1;
  }
}

int Operation::ReceiveParts(int members) const {
  switch (kind) {
    case OperationKind::kAllGather:
    case OperationKind::kAllToAll:
      return members;
    case OperationKind::kSend:
    case OperationKind::kBarrier:
    case OperationKind::kNone:
      return 0;
    default:
      return 1;
  }
}

uint64_t Operation::Pack() const {
  return static_cast<uint64_t>(kind) | static_cast<uint64_t>(dtype) << 8 | static_cast<uint64_t>(op) << 15 |
         static_cast<uint64_t>(peer + 1) << 16 | static_cast<uint64_t>(number) << 32;
}

Operation Operation::Unpack(uint64_t word) {
  Operation operation;
  // The word may come from another process.
  if ((word & 0xff) > static_cast<uint64_t>(OperationKind::kBarrier) ||
      (word >> 8 & 0x7f) > static_cast<uint64_t>(kernels::DType::kBool)) {
    return operation;
  }
  operation.kind = static_cast<OperationKind>(word & 0xff);
  operation.dtype = static_cast<kernels::DType>(word >> 8 & 0x7f);
  operation.op = static_cast<ReduceOp>(word >> 15 & 1);
  operation.peer = static_cast<int>(word >> 16 & 0xffff) - 1;
  operation.number = static_cast<uint32_t>(word >> 32);
  return operation;
}

std::string Describe(const Operation& operation, uint64_t total, int peer_rank) {
  std::string text = NameOf(operation);
  if (operation.kind == OperationKind::kNone || operation.kind == OperationKind::kBarrier) return text;
  absl::StrAppend(&text, " of ", total, " ", std::string(kernels::NameOf(operation.dtype)));
  if (operation.kind == OperationKind::kSend) absl::StrAppend(&text, " to rank ", peer_rank);
  if (operation.kind == OperationKind::kReceive) absl::StrAppend(&text, " from rank ", peer_rank);
  return text;
}

}  // namespace bowline::hal
