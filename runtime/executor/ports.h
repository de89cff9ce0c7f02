#ifndef BOWLINE_RUNTIME_EXECUTOR_PORTS_H_
#define BOWLINE_RUNTIME_EXECUTOR_PORTS_H_

// The buffers behind the ports of a rank's entries. Private to runtime/executor.

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/executor/tensor_ref.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// Callers identify a port by its first buffer. Each port of an entry with two runs in flight has two buffers, and runs
// alternate between them. The host writes the buffer of the next run, and reads the buffer of the run last waited for.
class Ports {
 public:
  // `plan` is verified, and outlives this.
  Ports(const fbs::Plan& plan, uint32_t role);

  // Returns whether the runs of an entry alternate between two buffers per port.
  bool Alternates(uint32_t entry) const { return plan_.entries()->Get(entry)->in_flight() > 1; }
  // The parity of an entry's next run: 0 if it uses the first buffer of each port, 1 if it uses the second.
  uint32_t NextParity(uint32_t entry) const { return Alternates(entry) ? begun_[entry] % 2 : 0; }

  // The buffer that the host has to access for a tensor now.
  struct Place {
    uint32_t buffer = 0;
    int entry = -1;  // the entry whose runs alternate between this buffer and another one; -1: all runs use it
    uint32_t parity = 0;
  };
  Place PlaceOf(uint32_t buffer) const;

  // Returns whether the buffer is an input of some entry. The host writes an input as a whole, within its limit.
  bool IsInput(uint32_t buffer) const { return inputs_.count(buffer) > 0; }
  // Checks that `bytes` cover the whole input and that each element lies within the input's limit. The error
  // kInvalidArgument names the buffer or, for an element, entry, port and element.
  absl::Status CheckInput(const TensorRef& tensor, absl::Span<const uint8_t> bytes) const;
  void MarkWritten(const TensorRef& tensor, absl::Span<const uint8_t> bytes);

  // Returns kFailedPrecondition if an input was not written since the last run, and no output of that run feeds it.
  // Returns kInvalidArgument if inputs break the entry's promise about sequences (runtime/plan/sequences.h).
  absl::Status CheckInputs(const fbs::Entry& entry, uint32_t index) const;

  // A copy from an output of the previous run to an input of the run that begins now.
  struct Copy {
    uint32_t from = 0, to = 0;  // buffers
  };
  // Begins a run of the entry. Sets `copies` to the copies from outputs of the previous run into the inputs that they
  // feed (Entry.feeds), except for inputs that the caller wrote. Then marks all inputs as unwritten, except those of
  // other entries with two runs in flight. Allocates nothing once the capacity of `copies` suffices.
  void Begin(uint32_t entry, std::vector<Copy>& copies);
  // Ends the run of this parity: from now on the host reads its outputs.
  void End(uint32_t entry, uint32_t parity) { ended_[entry] = parity; }

 private:
  struct Input {
    uint32_t entry = 0, port = 0;  // the first port with this limit, for messages
    int64_t limit = 0;             // the smallest limit of its ports; 0: none
    std::vector<bool> written;     // by slot
  };
  struct Alternating {
    uint32_t entry = 0, second = 0;
    bool is_input = false;
  };

  bool IsWritten(uint32_t buffer) const;
  absl::Status CheckSequencesOf(const fbs::Entry& entry) const;

  const fbs::Plan& plan_;
  std::map<uint32_t, Input> inputs_;             // by buffer
  std::map<uint32_t, Alternating> alternating_;  // by first buffer
  // By first buffer: the values last written to the inputs that Entry.sequences constrains together.
  std::map<uint32_t, std::vector<int32_t>> held_;
  std::vector<uint64_t> begun_;  // by entry: number of runs that began
  std::vector<uint32_t> ended_;  // by entry: parity of the run last waited for
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_PORTS_H_
