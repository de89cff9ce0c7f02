#ifndef BOWLINE_RUNTIME_HAL_OPERATION_H_
#define BOWLINE_RUNTIME_HAL_OPERATION_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "kernels/registry/collectives.h"
#include "kernels/registry/registry.h"

namespace bowline::hal {

// The effect of each operation on the pieces of a member, for n members:
//   kAllReduce      receive[count]     = op over members of send[count]
//   kAllGather      receive[n * count] = concatenation of every member's send[count], in the order of members
//   kReduceScatter  receive[count]     = this member's chunk of op over members of send[n * count]
//   kAllToAll       receive[n * count] = concatenation of this member's chunk of every member's send[n * count]
//   kPermute        receive[count] = send[count] of the member `parameter` places before this one on a ring of all
//   kSend           send[count] goes to the peer's receive[count]
//   kReceive        receive[count] = the peer's send[count]
//   kBarrier        no pieces; ends when every member has begun it
// Chunk r of x[n * count] is x[r * count, (r + 1) * count). Nothing is buffered: a send does not end before its peer
// receives. Two members that both send first wait for each other, which is an error.
enum class OperationKind : uint8_t {
  kNone,
  // The collectives of kernels/registry/collectives.h, in its order.
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kPermute,
  kSend,
  kReceive,
  kBarrier,
};

static_assert(static_cast<size_t>(OperationKind::kSend) == collectives::kCount + 1, "a collective has no operation");

constexpr OperationKind KindOf(collectives::Kind kind) {
  return static_cast<OperationKind>(static_cast<uint8_t>(kind) + 1);
}

// The values equal those of collectives::Parameter::kReduction.
enum class ReduceOp : uint8_t { kSum, kMax };

// An operation without its pieces. Pack encodes it in one word, which other threads may read at any time.
struct Operation {
  OperationKind kind = OperationKind::kNone;
  kernels::DType dtype = kernels::DType::kF32;
  uint16_t parameter = 0;  // the collectives::Parameter of a collective that has one
  int peer = -1;           // index of the other member of a send or receive
  uint32_t number = 0;     // counts this member's operations on this communicator, from 0, modulo 2^32

  static Operation Reduction(OperationKind kind, kernels::DType dtype, ReduceOp op) {
    return {kind, dtype, static_cast<uint16_t>(op)};
  }

  bool concerns_two() const { return kind == OperationKind::kSend || kind == OperationKind::kReceive; }
  // The definition of the collective; null if the operation is not a collective.
  const collectives::Definition* collective() const {
    const size_t index = static_cast<size_t>(kind) - 1;
    return index < collectives::kCount ? &collectives::kDefinitions[index] : nullptr;
  }
  bool reduces() const { return collective() != nullptr && collective()->reduces(); }
  ReduceOp op() const { return static_cast<ReduceOp>(parameter); }
  // Returns whether two members' operations can be the same collective, apart from their counts.
  bool Matches(const Operation& other) const {
    return kind == other.kind && dtype == other.dtype && parameter == other.parameter;
  }

  // The elements of `send`, and those of `receive`, for each element of Piece::count, among `members` members.
  int SendParts(int members) const;
  int ReceiveParts(int members) const;

  uint64_t Pack() const;  // 0 for kNone alone
  static Operation Unpack(uint64_t word);
};

// "all_reduce(sum) of 12 f32", "send of 3 bf16 to rank 2". `total` is TotalOf(pieces); `peer_rank` is the peer's rank.
std::string Describe(const Operation& operation, uint64_t total, int peer_rank);

// The sum of the counts of all pieces.
template <typename Piece>
uint64_t TotalOf(absl::Span<const Piece> pieces) {
  uint64_t total = 0;
  for (const Piece& piece : pieces) total += piece.count;
  return total;
}

// Contract
//   An operation is a value that owns nothing. All functions but Describe allocate nothing, none fails, and any thread
//   may call them. Unpack accepts any word, because a word may come from another process: one that encodes no operation
//   becomes kNone. Unpack(Pack()) restores the operation: the peer of a send or receive (at most 65534), the parameter
//   of all other kinds. CheckOperation (communicator.h) decides whether the members can run it; every driver calls that
//   before it moves anything.

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_OPERATION_H_
