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

// One tensor of an operation: the device addresses to send from and to receive into (0: none), and its element count.
struct Piece {
  DeviceAddress send = 0;
  DeviceAddress receive = 0;
  size_t count = 0;
};

// An ordered set of ranks, the members, whose devices exchange data. Each object is the end of one member.
class Communicator {
 public:
  virtual ~Communicator() = default;

  // The index of this rank among the members, and the number of members. Operation::peer is such an index, too.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns whether Device::Record can record operations. It cannot if the host takes part in them.
  virtual bool CanRecord() const { return false; }

  // Allocates the memory that this operation needs, so that Issue allocates nothing for it.
  virtual absl::Status Reserve(const Operation& operation, absl::Span<const Piece> pieces) { return absl::OkStatus(); }

  // Appends an operation to the stream. OperationKind describes its effect.
  virtual absl::Status Issue(Stream& stream, const Operation& operation, absl::Span<const Piece> pieces) = 0;

  // Contract
  //   The contract of Exchange on types, order, determinism, operations in place and errors holds here too, with
  //   streams in place of threads. A device with a communication library may combine values in another order, round
  //   intermediate values, and drop a NaN from a maximum, as its driver documents; all members still get the same bits.
  //   The caller issues the operations of one communicator in one stream, or orders them by events. Issue does not wait
  //   for the operation: Stream::Synchronize does. Issue copies a single piece; an array of several must stay alive
  //   until the stream was synchronised. Bytes to send must not change before the operation has ended in this stream,
  //   even if other members have them earlier. An operation allocates nothing after Reserve, or after one as large.
  //   Issue returns kInvalidArgument for an impossible type, peer or size. All other errors are errors of the stream.
};

// Returns kInvalidArgument, naming communicator and rank, unless the members of `exchange` can run the operation.
absl::Status CheckOperation(const Exchange& exchange, const Operation& operation, absl::Span<const Piece> pieces);

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_COMMUNICATOR_H_
