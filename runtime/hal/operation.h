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
//   kBarrier        no pieces; ends when every member is there
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

// Values are those of collectives::Parameter::kReduction.
enum class ReduceOp : uint8_t { kSum, kMax };

// An operation without its pieces. Pack puts it into one word, which other threads may read at any time.
struct Operation {
  OperationKind kind = OperationKind::kNone;
  kernels::DType dtype = kernels::DType::kF32;
  uint16_t parameter = 0;  // the collectives::Parameter of a collective that has one
  int peer = -1;           // place of the other member of a send or receive
  uint32_t number = 0;     // counts this member's operations on this communicator, from 0, modulo 2^32

  static Operation Reduction(OperationKind kind, kernels::DType dtype, ReduceOp op) {
    return {kind, dtype, static_cast<uint16_t>(op)};
  }

  bool concerns_two() const { return kind == OperationKind::kSend || kind == OperationKind::kReceive; }
  // The definition of the collective; null if the operation is none.
  const collectives::Definition* collective() const {
    const size_t index = static_cast<size_t>(kind) - 1;
    return index < collectives::kCount ? &collectives::kDefinitions[index] : nullptr;
  }
  bool reduces() const { return collective() != nullptr && collective()->reduces(); }
  ReduceOp op() const { return static_cast<ReduceOp>(parameter); }
  // Returns whether both can be the same collective, counts aside.
  bool Matches(const Operation& other) const {
    return kind == other.kind && dtype == other.dtype && parameter == other.parameter;
  }

  // The elements of `send`, and of `receive`, for each element that a piece counts, among `members` members.
  int SendParts(int members) const;
  int ReceiveParts(int members) const;

  uint64_t Pack() const;  // 0 for kNone alone
  static Operation Unpack(uint64_t word);
};

// "all_reduce(sum) of 12 f32", "send of 3 bf16 to rank 2". `peer_rank` is the rank behind operation.peer.
std::string Describe(const Operation& operation, uint64_t total, int peer_rank);

// The sum of the elements that all pieces count.
template <typename Piece>
uint64_t TotalOf(absl::Span<const Piece> pieces) {
  uint64_t total = 0;
  for (const Piece& piece : pieces) total += piece.count;
  return total;
}

// Contract
//   An operation is a value that owns nothing; all functions but Describe allocate nothing, and any thread may call
//   them. No function fails. Describe and Unpack take the input of another process: a word that is no operation becomes
//   kNone. Otherwise Unpack(Pack()) is the operation, with the peer of a send or receive (at most 65534), and with the
//   parameter of others. That a type, a peer or a parameter is possible among the members is for CheckOperation
//   (communicator.h) to say, which every driver calls before it moves anything.

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_OPERATION_H_
