//===- PlanChecker.h - proofs over an emitted plan --------------*- C++ -*-===//
//
// VerifyPlan (runtime/plan) says that a plan is well-formed. PlanChecker proves that its commands make sense together.
// It looks at the emitted plan alone and trusts nothing that the compiler thought.
//
// Proven, over each entry with its timeline expanded:
//
//   bounds          every operand lies in its buffer, and every buffer in the arena
//   persistence     constants, inputs, parameters and state share no byte with any other buffer
//   aliasing        a command's written bytes overlap none of its other operands, except a declared in-place pair with
//                   exactly equal bytes
//   initialisation  every byte that is read was written before: at load, by the caller, as persistent state, or by an
//                   earlier command of the entry
//   no clobber      a read of a buffer sees values of that buffer, never those of another that shares its bytes
//   no race         two streams, which nothing orders, never touch the same byte with a write
//   outputs         every output is written completely and intact at the end
//   exact memory    the highest byte that is used is the last of the arena
//
// Assumed: a kernel writes every byte of its written arguments, reads and writes no byte outside of its arguments, and
// persistent state is set by the init entry or from weights before it is used.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CHECK_PLANCHECKER_H
#define BOWLINE_COMPILER_CHECK_PLANCHECKER_H

#include "compiler/Check/ByteOwners.h"
#include "compiler/Check/Timeline.h"
#include "runtime/base/status.h"

#include <array>
#include <string>
#include <vector>

namespace bowline {

struct CheckReport {
  struct Entry {
    std::string name;
    uint64_t calls = 0;
    uint64_t launches = 0; ///< timeline expanded
    uint64_t copies = 0;
    uint64_t communications = 0; ///< collectives, sends and receives
    uint32_t streams = 0; ///< that have commands
    /// Parameters and state that this entry writes.
    uint32_t statesWritten = 0;
  };
  std::vector<Entry> entries;

  struct Proof {
    std::string name;
    uint64_t facts = 0;
    std::string what; ///< the fact: "reads see values of their own buffer"
  };
  /// In the order proven; up to the first that failed.
  std::vector<Proof> proofs;

  uint64_t registeredKernels = 0, generatedKernels = 0;
  uint64_t storedCommands = 0; ///< in the file, segments counted once
  uint64_t arenaBytes = 0;
  uint64_t highestByte = 0; ///< end of the last byte that is used
  uint32_t buffers = 0, states = 0;
  /// Bytes of all buffers by fbs::BufferKind. Temporaries share bytes, so theirs may be more than the arena.
  std::array<uint64_t, static_cast<size_t>(fbs::BufferKind::MAX) + 1> bytesByKind = {};
};

class PlanChecker {
public:
  /// `plan` passed VerifyPlan.
  explicit PlanChecker(const fbs::Plan &plan) : plan_(plan), timeline_(plan) {}

  /// OK, or kAborted with the first counter-example: proof, place, buffers with their bytes, and sources.
  absl::Status check();

  /// What was proven so far.
  const CheckReport &report() const { return report_; }

private:
  void summarise();
  absl::Status checkPersistence();
  absl::Status checkArena();
  void use(ByteRange range, uint32_t buffer);

  const fbs::Plan &plan_;
  Timeline timeline_;
  CheckReport report_;
  uint32_t highestBuffer_ = 0;
};

/// kAborted: "proof of PROOF fails: MESSAGE".
absl::Status counterexample(absl::string_view proof, absl::string_view message);

/// The report for a person, some lines.
std::string formatReport(const CheckReport &report);

} // namespace bowline

#endif // BOWLINE_COMPILER_CHECK_PLANCHECKER_H
