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

// One tensor of an operation: host memory to send from and to receive into, and its element count.
struct HostPiece {
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
};

// An ordered set of ranks, the members, that exchange bytes of host memory. Each object is the end of one member.
// Devices create their communicators from it (Device::CreateCommunicator): a device that works in host memory moves all
// data through it; a device with a communication library exchanges the bytes that set up that library.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const std::string& name() const = 0;
  // The ranks of all members in the run, and the index of this member among them.
  virtual const std::vector<int>& ranks() const = 0;
  virtual int self() const = 0;
  int size() const { return static_cast<int>(ranks().size()); }

  // Runs an operation, which must be possible (CheckOperation), to its end on the calling thread. Several pieces are
  // one operation and pay its start-up cost once. Run sets operation.number.
  virtual absl::Status Run(Operation operation, absl::Span<const HostPiece> pieces) = 0;

  // Breaks the run: all operations of all ranks, later ones included, fail with the run's first error, `why` or an
  // earlier one. Returns that first error. For a device that finds out by itself that a peer is gone.
  virtual absl::Status Break(absl::Status why) = 0;

  // OK, or the error that broke the run.
  virtual absl::Status status() const = 0;

  // A device whose own library moves the data calls this every few milliseconds, in place of Run. It reports this
  // member's current operation with its number, or kNone; the operation's elements; and how many operations of all
  // members this member has begun with the library so far. The exchange detects and explains late ranks as Run does, by
  // the time since an operation was first reported. Returns status().
  virtual absl::Status Report(const Operation& operation, uint64_t elements, uint64_t collectives) = 0;

  // Reports an error of the communication library, such as NCCL, that a lost rank may have caused: ends the exchange as
  // Break does, and returns a message that says which rank waits for which, and names the lost rank if there is one.
  virtual absl::Status Complain(const std::string& failure) = 0;

  // Returns whether operations take as long as on an emulated link. Only Run emulates links.
  virtual bool emulates_link() const = 0;

  // Contract
  //   Order: a member runs one operation at a time, and all members run the same ones in the same order; sends and
  //   receives concern two members only. Types: reductions take the types of CanReduce (types/element_type.h); all else
  //   takes every type. Integer sums wrap. 16-bit values are summed in f32, and the sum is rounded once. The maximum of
  //   a NaN and any value is a NaN. Determinism: values are combined in the order of ranks, so all members get the same
  //   bits, in every run. In place: kAllReduce allows receive == send; kAllGather, send == this member's chunk of
  //   receive; kReduceScatter, receive == this member's chunk of send. No other overlap is allowed. Other members may
  //   read `send` until the operation ends. Nothing is allocated after the first use. Errors: kInvalidArgument if
  //   members run operations that do not match (kind, reduction, type, counts, peer), naming two members and the call
  //   of each. kDeadlineExceeded if a member is late, naming who waits for whom: rank, operation, and its number on
  //   this communicator, from 0. kUnavailable, with the same, if a member's process died, was stopped or cannot be
  //   reached. After an error of one member the state of the others is unknown, so it breaks all communicators of the
  //   group (runtime/comm/group.h): calls that wait on them, or come later, return the same error.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_EXCHANGE_H_
