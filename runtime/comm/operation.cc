#include "runtime/comm/operation.h"

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

const char* NameOf(const Operation& operation) {
  const bool sum = operation.op == hal::ReduceOp::kSum;
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
  operation.op = static_cast<hal::ReduceOp>(word >> 15 & 1);
  operation.peer = static_cast<int>(word >> 16 & 0xffff) - 1;
  operation.number = static_cast<uint32_t>(word >> 32);
  return operation;
}

uint64_t TotalOf(absl::Span<const hal::Piece> pieces) {
  uint64_t total = 0;
  for (const hal::Piece& piece : pieces) total += piece.count;
  return total;
}

std::string Describe(const Operation& operation, uint64_t total, int peer_rank) {
  std::string text = NameOf(operation);
  if (operation.kind == OperationKind::kNone || operation.kind == OperationKind::kBarrier) return text;
  absl::StrAppend(&text, " of ", total, " ", std::string(kernels::NameOf(operation.dtype)));
  if (operation.kind == OperationKind::kSend) absl::StrAppend(&text, " to rank ", peer_rank);
  if (operation.kind == OperationKind::kReceive) absl::StrAppend(&text, " from rank ", peer_rank);
  return text;
}

std::chrono::nanoseconds TimeOnLink(const LinkOptions& link, const Operation& operation, uint64_t total, int members) {
  const int others = members - 1;
  const double bytes = static_cast<double>(total) * static_cast<double>(kernels::SizeOf(operation.dtype));
  switch (operation.kind) {
    case OperationKind::kAllReduce:
      return LinkTime(link, 2 * others, bytes * 2 * others / members);
    case OperationKind::kAllGather:
    case OperationKind::kReduceScatter:
    case OperationKind::kAllToAll:
      return LinkTime(link, others, bytes * others);  // (n-1)/n of n parts
    case OperationKind::kBarrier:
      return LinkTime(link, 2 * others, 0);
    default:
      return LinkTime(link, 1, bytes);
  }
}

}  // namespace bowline
