#ifndef BOWLINE_RUNTIME_HAL_EXCHANGE_H_
#define BOWLINE_RUNTIME_HAL_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/hal/operation.h"

namespace bowline::hal {

// One of the tensors that an operation moves, in memory of the host, and a number of elements.
struct HostPiece {
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
};

// An ordered set of ranks that exchange bytes of the host's memory, as one of them sees it. Devices make their
// communicators from it (Device::CreateCommunicator): a device whose memory is the host's moves everything by it; one
// with a communication library of its own exchanges the bytes that the library needs to begin with.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const std::string& name() const = 0;
  // The members' ranks in the run, and this one's place among them.
  virtual const std::vector<int>& ranks() const = 0;
  virtual int self() const = 0;
  int size() const { return static_cast<int>(ranks().size()); }

  // Runs an operation, which is a possible one (CheckOperation), from its begin to its end, on the calling thread.
  // Several pieces are one operation: the cost of starting it is paid once. operation.number is filled in here.
  virtual absl::Status Run(Operation operation, absl::Span<const HostPiece> pieces) = 0;

  // Ends all operations of all ranks of the run, and all that come later, with `why`, and returns the error that did:
  // the first one stays. For a device that finds out by itself that a peer is gone.
  virtual absl::Status Break(absl::Status why) = 0;

  // OK, or the error that broke the run.
  virtual absl::Status status() const = 0;

  // For a device whose own library moves the data, instead of Run. Reports the current state of this member: the number
  // of its operation, or kNone; the operation's elements; and how many operations of all members this member has begun
  // with the library so far. The exchange finds and explains late ranks as Run does, by the time since an operation was
  // first reported: to be called every few milliseconds. Returns status().
  virtual absl::Status Report(const Operation& operation, uint64_t elements, uint64_t collectives) = 0;

  // Reports an error of the communication library, such as NCCL, that a lost rank may have caused: ends the exchange as
  // Break does, and returns a message that says which rank waits for which, and names the lost rank if there is one.
  virtual absl::Status Complain(const std::string& failure) = 0;

  // Returns whether operations take the time of a link that is emulated, which Run alone does.
  virtual bool emulates_link() const = 0;

  // Contract
  //   Order: one operation at a time, and every rank runs the same ones in the same order; sends and receives concern
  //   two ranks only. Types: reductions take those that CanReduce (types/element_type.h); all else takes every type.
  //   Integer sums wrap. Those of 16 bits are summed in f32 and rounded once. The maximum of anything and a NaN is a
  //   NaN. Determinism: the ranks' values are combined in the order of ranks; all ranks get the same bits, in every
  //   run. In place: kAllReduce may have receive == send; kAllGather, send == this rank's chunk of receive;
  //   kReduceScatter, receive == this rank's chunk of send. Other overlaps are not allowed. Until the operation ends
  //   other members may read `send`. Nothing is allocated after the first use. Errors: kInvalidArgument when members
  //   run operations that do not match (kind, reduction, type, counts, peer), naming two of them and the call of each.
  //   kDeadlineExceeded when a member does not come in time, saying who waits for whom: rank, operation, and its number
  //   on this communicator, from 0. kUnavailable, with the same, when a member's process died, was stopped or cannot be
  //   reached. After an error of a member's call, the ranks cannot know where they are: all communicators made with
  //   this one are broken, and calls that wait on them, or come later, end with the same error.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_EXCHANGE_H_
