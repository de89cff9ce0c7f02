//===- PlanChecker.h - proofs over an emitted plan --------------*- C++ -*-===//
//
// VerifyPlan (runtime/plan) says that a plan is well-formed. PlanChecker proves that its commands make sense together.
// It looks at the emitted plan alone and relies on no analysis of the compiler.
//
// These properties are proven, over each entry with its timeline expanded:
//
//   persistence     constants, inputs, parameters and state share no byte with any other buffer of their role
//   contracts       every kernel that calls generated code is one that the code was made for
//   signatures      every registered kernel has a signature that devices of the plan's target execute
//   bounds          every operand lies in its buffer at an address that its kernel takes, and every buffer in the
//                   arena of its role and space
//   aliasing        a command's written bytes overlap none of its other operands, except a declared in-place pair with
//                   exactly equal bytes
//   events          every wait is for an event that was signalled before, in the order of issue
//   no race         every two accesses to a common byte, one of them a write, are ordered by streams and events, of the
//                   rank itself or through other ranks
//   one stream      operations of one communicator are ordered by streams and events on each rank
//   initialisation  every byte that is read was written before: at load, by the caller, as persistent state, or by an
//                   earlier command of the entry
//   no clobber      a read of a buffer sees values of that buffer, never those of another that shares its bytes
//   outputs         every output is written completely and intact at the end
//   indices         row numbers and offsets that a kernel reads are limited by a port, or a check of data looks at them
//   initial values  an entry of kind Init reads no state before it wrote it, and sets all states of its role;
//                   weights, which files have, all or none
//   exact memory    the highest byte that is used in each arena of a role is its last; a plan may have more
//   matching        on every communicator all members of a group issue the same operations: kind, type, reduction,
//                   counts; sends and receives pair up
//   no deadlock     one order of all operations suits the order in which each rank issues its own, so that no ranks
//                   wait for each other in a circle, on any machine (DeadlockCheck.h)
//   serial order    where commands are recorded and replayed: streams and events order each two communications of a
//                   rank, as they were issued (CommunicationOrder.h)
//   replicas        states and outputs are equal on all ranks along each axis along which their layout does not divide
//                   them (ReplicaCheck.h)
//   meaning         of a certified plan: its outputs and states are computed from inputs and states as they were when
//                   the plan was certified (runtime/plan/meaning/plan_meaning.h)
//
// Initialisation, clobbering and outputs are proven along the order of issue. That is enough without races: every order
// in which the machine may run the commands keeps each two conflicting ones as they were issued, so each read sees the
// same writes.
//
// The proofs cost as much as the programs of the roles, whatever the number of ranks: ranks of a role run the same
// commands at the same addresses.
//
// The proofs assume: a kernel writes every byte of its written arguments, reads and writes no byte outside of its
// arguments, and ends; a communication ends when all its members have come to it, and reads and writes nothing else;
// a session runs the entry of kind Init, or sets all states from files, before another entry; the entry of kind Prepare
// runs after that, and before an entry that reads its results, which are set by it alone; all ranks run the same other
// entries in the same order, and an entry begins when the one before has ended on that rank.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_PLANCHECKER_H
#define BOWLINE_CHECKER_PLANCHECKER_H

#include "checker/Communications.h"
#include "checker/Timeline.h"
#include "runtime/base/status.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bowline {

struct CheckReport {
  struct Entry {
    std::string name;
    uint32_t role = 0;
    uint64_t calls = 0;    ///< calls of segments
    uint64_t launches = 0; ///< with the timeline expanded, as the following counts
    uint64_t copies = 0;
    uint64_t communications = 0; ///< collectives, sends and receives
    uint32_t streams = 0;        ///< streams that have commands
    /// The number of the plan's states of which this entry writes any byte; at most Role::states.
    uint32_t statesWritten = 0;
  };
  std::vector<Entry> entries;

  struct Proof {
    std::string name;
    uint64_t facts = 0;
    std::string what; ///< the fact: "reads see values of their own buffer"
  };
  /// The proofs in the order in which they were made, up to the first that failed.
  std::vector<Proof> proofs;

  /// Facts that the ranks with one coordinate along the role axis have in common. Without such an axis there is one
  /// role.
  struct Role {
    std::string name;    ///< empty where the plan names no roles
    uint32_t states = 0; ///< the number of the plan's states (Plan.states) that these ranks have

    struct Arena {
      uint64_t bytes = 0;
      uint64_t highestByte = 0; ///< end of the last byte that is used
      uint32_t buffers = 0;
      /// The bytes of all buffers of each fbs::BufferKind. Temporaries share bytes, so theirs may be more than the
      /// arena.
      std::array<uint64_t, static_cast<size_t>(fbs::BufferKind::MAX) + 1> bytesByKind = {};
      uint64_t preparedBytes = 0; ///< of results of the entry of kind Prepare, which bytesByKind leaves out
    };
    /// The arena of each fbs::MemorySpace.
    std::array<Arena, static_cast<size_t>(fbs::MemorySpace::MAX) + 1> arenas = {};
    const Arena &in(fbs::MemorySpace space) const { return arenas[static_cast<size_t>(space)]; }
    Arena &in(fbs::MemorySpace space) { return arenas[static_cast<size_t>(space)]; }
  };
  std::vector<Role> roles;

  std::string mesh; ///< "pp=2, dp=2"
  uint32_t ranks = 1;
  uint64_t registeredKernels = 0, generatedKernels = 0;
  bool hasCode = true;         ///< false where generated kernels lack code: the plan cannot run then
  uint64_t storedCommands = 0; ///< commands in the file, segments counted once
};

class EntryCheck;
class OrderThroughRanks;

class PlanChecker {
public:
  /// `plan` must have passed VerifyPlan.
  explicit PlanChecker(const fbs::Plan &plan) : plan_(plan), timeline_(plan) {}

  /// Returns OK, or kAborted with the first counter-example: proof, place, buffers with their bytes, and sources.
  absl::Status check();
  /// The same without the proof of meaning, which VerifyPlan makes of plans that have certificates.
  absl::Status checkOrderAndMemory();

  /// Returns the facts proven so far.
  const CheckReport &report() const { return report_; }

  /// Returns the proof by which a loader rechecks that no ranks wait for each other for ever, and that the plan still
  /// computes the same as now. Complete after a check that succeeded.
  const std::vector<fbs::CertificateT> &certificates() const { return certificates_; }

private:
  void summarise();
  absl::Status checkPersistence();
  /// Returns for each buffer whether it holds a value when an entry of the kind begins.
  std::vector<bool> heldAtBegin(fbs::EntryKind kind) const;
  absl::Status findPrepared();
  absl::Status checkInitialValues(uint32_t entry, const EntryCheck &check);
  absl::Status checkEntry(uint32_t entry);
  absl::Status checkRaces(uint32_t entry);
  absl::Status checkCommunications();
  absl::Status checkCommunicationOrder();
  /// `numbers` has the order of the operations of each entry.
  absl::Status checkReplicas(absl::Span<const std::pair<std::string, Communications>> entries,
                             absl::Span<const std::vector<uint32_t>> numbers);
  fbs::EntryKind kindOf(absl::string_view entry) const;
  absl::Status checkMeaning();
  void measureArenas();
  void use(ByteRange range, uint32_t buffer);
  void prove(absl::string_view name, uint64_t facts, absl::string_view what);

  const fbs::Plan &plan_;
  Timeline timeline_;
  CheckReport report_;
  std::vector<bool> prepared_; // index: buffer; whether the entry of kind Prepare sets it
  std::vector<fbs::CertificateT> certificates_;
  /// The order through other ranks for each name of entries for which it was needed; null where it is not known.
  std::map<std::string, std::shared_ptr<const OrderThroughRanks>> throughRanks_;
  struct {
    uint64_t operands, aliasing, reads, outputs, commands, waits, communicators, sequences, initialValues, indices;
  } facts_ = {};
};

/// Checks the plan and writes its certificates into it. Returns kAborted with the counter-example, or the errors of
/// WritePlan and VerifyPlan for invalid plans. `report`, if given, receives PlanChecker::report().
absl::Status CertifyPlan(fbs::PlanT &plan, CheckReport *report = nullptr);

/// The report as lines of text for a person.
std::string formatReport(const CheckReport &report);

} // namespace bowline

#endif // BOWLINE_CHECKER_PLANCHECKER_H
