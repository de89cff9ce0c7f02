#ifndef BOWLINE_RUNTIME_EXECUTOR_PORTS_H_
#define BOWLINE_RUNTIME_EXECUTOR_PORTS_H_

// What is behind the ports of a rank's entries. Private to runtime/executor.

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

struct TensorRef;

// Callers know a port by its first buffer. Of entries with two runs in flight each port has two, which runs take in
// turn: what is written is for the next run, and what is read is of the run that was waited for last.
class Ports {
 public:
  // `plan` is verified, and outlives this.
  Ports(const fbs::Plan& plan, uint32_t role);

  // Whether the runs of an entry take buffers in turn.
  bool Alternates(uint32_t entry) const { return plan_.entries()->Get(entry)->in_flight() > 1; }
  // Which of its buffers the next run of an entry takes, 0 or 1.
  uint32_t NextParity(uint32_t entry) const { return Alternates(entry) ? begun_[entry] % 2 : 0; }

  // Where a tensor is now: for the host to write, or to read.
  struct Place {
    uint32_t buffer = 0;
    int entry = -1;  // whose runs take the buffer in turn with another; -1: one for all runs
    uint32_t parity = 0;
  };
  Place PlaceOf(uint32_t buffer) const;

  // Whether a tensor is an input of some entry. Those are written as a whole, within their limits.
  bool IsInput(uint32_t buffer) const { return inputs_.count(buffer) > 0; }
  // kInvalidArgument naming entry, port and element.
  absl::Status CheckInput(const TensorRef& tensor, absl::Span<const uint8_t> bytes) const;
  void MarkWritten(const TensorRef& tensor);

  // kFailedPrecondition for an input that was neither written since the last run nor computed by it.
  absl::Status CheckInputs(const fbs::Entry& entry, uint32_t index) const;

  // The value of `from` becomes that of `to` before the run that begins now.
  struct Copy {
    uint32_t from = 0, to = 0;  // buffers
  };
  // Copies for inputs that were not written, in `copies`; then the run has taken the inputs, and others are not written
  // any more. Allocates nothing once `copies` is large enough.
  void Begin(uint32_t entry, std::vector<Copy>& copies);
  // The outputs of the run of this parity are those that are read from now on.
  void End(uint32_t entry, uint32_t parity) { ended_[entry] = parity; }

 private:
  struct Input {
    uint32_t entry = 0, port = 0;  // the first with this limit, for messages
    int64_t limit = 0;             // 0: none
    std::vector<bool> written;     // by slot
  };
  struct Alternating {
    uint32_t entry = 0, second = 0;
    bool is_input = false;
  };

  bool IsWritten(uint32_t buffer) const;

  const fbs::Plan& plan_;
  std::map<uint32_t, Input> inputs_;             // by buffer
  std::map<uint32_t, Alternating> alternating_;  // by first buffer
  std::vector<uint64_t> begun_;                  // runs, by entry
  std::vector<uint32_t> ended_;                  // parity of the run that was waited for last, by entry
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_PORTS_H_
