#ifndef BOWLINE_RUNTIME_COMM_OPERATION_H_
#define BOWLINE_RUNTIME_COMM_OPERATION_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "runtime/comm/link.h"
#include "runtime/hal/communicator.h"

namespace bowline {

enum class OperationKind : uint8_t {
  kNone,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSend,
  kReceive,
  kBarrier,
};

// What a member does on a communicator, in one word that other threads may read at any time.
struct Operation {
  OperationKind kind = OperationKind::kNone;
  kernels::DType dtype = kernels::DType::kF32;
  hal::ReduceOp op = hal::ReduceOp::kSum;
  int peer = -1;        // place of the other rank of a send or receive
  uint32_t number = 0;  // of this member's operations on this communicator, from 0, modulo 2^32

  bool concerns_two() const { return kind == OperationKind::kSend || kind == OperationKind::kReceive; }
  // Whether both can be the same collective, counts aside.
  bool Matches(const Operation& other) const { return kind == other.kind && dtype == other.dtype && op == other.op; }

  uint64_t Pack() const;  // 0 for kNone alone
  static Operation Unpack(uint64_t word);
};

// Elements of all pieces.
uint64_t TotalOf(absl::Span<const hal::Piece> pieces);

// "all_reduce(sum) of 12 f32", "send of 3 bf16 to rank 2". `peer_rank` is the rank behind operation.peer.
std::string Describe(const Operation& operation, uint64_t total, int peer_rank);

// What `operation` of `total` elements of one of `members` takes on a link.
std::chrono::nanoseconds TimeOnLink(const LinkOptions& link, const Operation& operation, uint64_t total, int members);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_OPERATION_H_
