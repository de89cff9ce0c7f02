#ifndef BOWLINE_RUNTIME_HAL_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_HAL_COMMUNICATOR_H_

#include <cstddef>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/hal/exchange.h"
#include "runtime/hal/memory.h"
#include "runtime/hal/operation.h"
#include "runtime/hal/stream.h"

namespace bowline::hal {

// One of the tensors that an operation moves: addresses of the device, 0 for none, and a number of elements.
struct Piece {
  DeviceAddress send = 0;
  DeviceAddress receive = 0;
  size_t count = 0;
};

// An ordered set of ranks that exchange data of their devices, as one of them sees it.
class Communicator {
 public:
  virtual ~Communicator() = default;

  // This rank's place among the members, and their number. Peers are places too.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns whether Device::Record can record operations, as it cannot where the host takes part in them.
  virtual bool CanRecord() const { return false; }

  // Allocates the memory that such an operation needs, so that issuing it allocates nothing.
  virtual absl::Status Reserve(const Operation& operation, absl::Span<const Piece> pieces) { return absl::OkStatus(); }

  // Puts an operation into the stream; see OperationKind for its effect.
  virtual absl::Status Issue(Stream& stream, const Operation& operation, absl::Span<const Piece> pieces) = 0;

  // Contract
  //   The contract of Exchange on types, order, determinism, operations in place, and errors holds here, with
  //   streams; but a device with a library of its own may combine values in another order, round intermediate values,
  //   and leave a NaN out of a maximum, as its driver says; all members get the same bits.
  //   Operations of one communicator are in one stream, or ordered by events. Synchronize the stream to hold the
  //   caller. Memory: a single piece is copied; an array of several must stay until the stream was synchronised.
  //   Bytes to send stay as they are until the operation ended in this stream, even where its members have them before.
  //   Nothing is allocated by an operation for which room was made, or which is no larger than one before. Errors at
  //   the call: kInvalidArgument for a type, a peer or a size that is not possible. All else is an error of the stream.
};

// kInvalidArgument, naming communicator and rank, for an operation that no members could do.
absl::Status CheckOperation(const Exchange& exchange, const Operation& operation, absl::Span<const Piece> pieces);

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_COMMUNICATOR_H_
