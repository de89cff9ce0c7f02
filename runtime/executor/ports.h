#ifndef BOWLINE_RUNTIME_EXECUTOR_PORTS_H_
#define BOWLINE_RUNTIME_EXECUTOR_PORTS_H_

// The buffers behind the ports of a rank's entries. Private to runtime/executor.

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

struct TensorRef;

// Callers know a port by its first buffer. Each port of an entry with two runs in flight has two buffers, which runs
// take in turn: the host writes the one of the next run, and reads the one of the run that was waited for last.
class Ports {
 public:
  // `plan` is verified, and outlives this.
  Ports(const fbs::Plan& plan, uint32_t role);

  // Returns whether the runs of an entry take buffers in turn.
  bool Alternates(uint32_t entry) const { return plan_.entries()->Get(entry)->in_flight() > 1; }
  // The buffer of each port that the next run of an entry takes: 0 for the first, 1 for the second.
  uint32_t NextParity(uint32_t entry) const { return Alternates(entry) ? begun_[entry] % 2 : 0; }

  // The buffer that the host has to write, or to read, for a tensor now.
  struct Place {
    uint32_t buffer = 0;
    int entry = -1;  // the entry whose runs take this buffer and another one in turn; -1: all runs take this one
    uint32_t parity = 0;
  };
  Place PlaceOf(uint32_t buffer) const;

  // Returns whether a tensor is an input of some entry. Inputs are written as a whole, within their limits.
  bool IsInput(uint32_t buffer) const { return inputs_.count(buffer) > 0; }
  // Checks that the bytes are all those of the input and its elements lie within the limit. kInvalidArgument naming
  // entry, port and element.
  absl::Status CheckInput(const TensorRef& tensor, absl::Span<const uint8_t> bytes) const;
  void MarkWritten(const TensorRef& tensor, absl::Span<const uint8_t> bytes);

  // kFailedPrecondition for an input that was neither written since the last run nor computed by it, and
  // kInvalidArgument where inputs break the promise of the entry about sequences (runtime/plan/sequences.h).
  absl::Status CheckInputs(const fbs::Entry& entry, uint32_t index) const;

  // A copy that gives `to` the value of `from` before the run that begins now.
  struct Copy {
    uint32_t from = 0, to = 0;  // buffers
  };
  // Begins a run of the entry. Sets `copies` to the copies from outputs of the run before into the inputs that they
  // feed (Entry.feeds) and that the caller did not write. All inputs count as unwritten from then on, except those of
  // other entries that have two runs in flight. Allocates nothing once `copies` is large enough.
  void Begin(uint32_t entry, std::vector<Copy>& copies);
  // Ends the run of this parity: its outputs are those that are read from now on.
  void End(uint32_t entry, uint32_t parity) { ended_[entry] = parity; }

 private:
  struct Input {
    uint32_t entry = 0, port = 0;  // the first port with this limit, for messages
    int64_t limit = 0;             // 0: none
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
  // The values last written to inputs about which entries promise something jointly, by first buffer.
  std::map<uint32_t, std::vector<int32_t>> held_;
  std::vector<uint64_t> begun_;  // number of runs that were begun, by entry
  std::vector<uint32_t> ended_;  // parity of the run that was waited for last, by entry
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_PORTS_H_
