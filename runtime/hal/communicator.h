#ifndef BOWLINE_RUNTIME_HAL_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_HAL_COMMUNICATOR_H_

#include <cstddef>

#include "absl/types/span.h"
#include "kernels/registry/registry.h"
#include "runtime/base/status.h"
#include "runtime/hal/stream.h"

namespace bowline::hal {

enum class ReduceOp { kSum, kMax };

// One of the tensors that an operation moves: device addresses, and a number of elements.
struct Piece {
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
};

// An ordered set of ranks that exchange data, as one of them sees it.
class Communicator {
 public:
  virtual ~Communicator() = default;

  // This rank's place among the members, and how many there are. Peers below are places too.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Into the stream. Several pieces are one operation: the cost of starting it is paid once.
  //   AllReduce:     receive[count]        = op over ranks of send[count]
  //   AllGather:     receive[size * count] = concatenation of every rank's send[count], in the order of ranks
  //   ReduceScatter: receive[count]        = this rank's part of op over ranks of send[size * count]
  //   AllToAll:      receive[size * count] = concatenation of this rank's parts of every rank's send[size * count]
  // Part r of x[size * count] is x[r * count, (r + 1) * count).
  virtual absl::Status AllReduce(Stream& stream, absl::Span<const Piece> pieces, kernels::DType dtype, ReduceOp op) = 0;
  virtual absl::Status AllGather(Stream& stream, absl::Span<const Piece> pieces, kernels::DType dtype) = 0;
  virtual absl::Status ReduceScatter(Stream& stream, absl::Span<const Piece> pieces, kernels::DType dtype,
                                     ReduceOp op) = 0;
  virtual absl::Status AllToAll(Stream& stream, absl::Span<const Piece> pieces, kernels::DType dtype) = 0;

  // send[count] of each of one rank's pieces goes to receive[count] of its peer's. Nothing is buffered: a send does not
  // end before its peer receives. Two ranks that both send first wait for each other, which is an error (see below).
  virtual absl::Status Send(Stream& stream, absl::Span<const Piece> pieces, kernels::DType dtype, int peer) = 0;
  virtual absl::Status Receive(Stream& stream, absl::Span<const Piece> pieces, kernels::DType dtype, int peer) = 0;

  // Ends when every rank is there. Synchronize the stream to hold the caller.
  virtual absl::Status Barrier(Stream& stream) = 0;

  // Contract
  //   Order: operations of one communicator are in one stream, or ordered by events, and every rank issues the same
  //   ones in the same order; sends and receives concern two ranks only. Types: reductions take f32, f64, bf16, i32 and
  //   i64; all else takes every type. Integer sums wrap. bf16 is summed in f32 and rounded once. The maximum of
  //   anything and a NaN is a NaN. Determinism: the ranks' values are combined in the order of ranks; all ranks get the
  //   same bits, in every run. Memory: a single piece is copied; an array of several must stay until the stream was
  //   synchronised. In place is AllReduce with receive == send; AllGather with send == this rank's part of receive;
  //   ReduceScatter with receive == this rank's part of send. Other overlaps are not allowed. Until the operation ends
  //   other members may read `send`. Nothing is allocated after the first use. Errors at the call: kInvalidArgument for
  //   a type, a peer or a size that is not possible. Errors of the stream: kInvalidArgument when members issue
  //   operations that do not belong together (kind, reduction, type, counts, peer), naming two of them and what each
  //   called. kDeadlineExceeded when a member does not come in time, saying who waits for whom: rank, operation, and
  //   its number on this communicator, from 0. kUnavailable, with the same, when a member's process died, was stopped
  //   or cannot be reached. After an error the ranks cannot know where they are: all communicators made with this one
  //   are broken, and what waits on them, or is issued later, ends with the same error.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_COMMUNICATOR_H_
