//===- PlanChecker.h - proofs over an emitted plan --------------*- C++ -*-===//
//
// VerifyPlan (runtime/plan) checks that a plan is well-formed. PlanChecker proves that the plan's commands are correct
// together. It reads the emitted plan alone and relies on no analysis of the compiler.
//
// PlanChecker proves these properties of each entry, with the calls in the entry's timeline expanded to commands:
//
//   persistence     constants, inputs, parameters and state share no byte with any other buffer of their role
//   contracts       generated code states that it was made for each kernel that calls it
//   signatures      devices of the plan's target can execute the signature of every registered kernel
//   bounds          every operand lies inside its buffer, at an address with the alignment that its kernel needs, and
//                   every buffer lies inside the arena of its role and memory space
//   aliasing        a command's writes overlap none of its other operands, except in-place pairs with equal bytes
//   events          every wait is for an event that an earlier command, in the order of issue, signals
//   no race         streams and events, of the rank itself or through other ranks, order every two accesses to a
//                   common byte of which one is a write
//   one stream      on each rank, streams and events order the operations of one communicator
//   initialisation  every byte that is read has a value: from loading, from the caller, from persistent state, or
//                   from an earlier command of the entry
//   no clobber      a read of a buffer sees values of that buffer, never those of another that shares its bytes
//   outputs         when the entry ends, every byte of each output holds the output's own value
//   indices         row numbers and offsets that a kernel reads are limited by an input port, or checked by a launch
//   sequences       operands that locate sequences are inputs with a promise of the callers (SequenceCheck.h)
//   two runs        with two runs in flight, no command uses buffers that the host uses meanwhile (RunOverlap.h)
//   initial values  an entry of kind Init reads no state before it writes it, and sets all states of its role, except
//                   that it may leave weights to files: all of them or none
//   exact memory    each arena of a role ends with the highest byte that is used; larger arenas are no error
//   matching        all members of a group of a communicator issue the same operations: kind, type, reduction and
//                   counts; every send has its receive
//   no deadlock     one order of all operations agrees with the order in which each rank issues its own, so that on
//                   no machine ranks wait for each other in a circle (DeadlockCheck.h)
//   serial order    on devices that replay commands, streams and events order communications (CommunicationOrder.h)
//   replicas        states and outputs are equal on all ranks along each mesh axis along which their layout does not
//                   divide them (ReplicaCheck.h)
//   meaning         outputs and states of a certified plan are the same functions of inputs and states as when the
//                   plan was certified (runtime/plan/meaning/plan_meaning.h)
//
// Initialisation, clobbering and outputs are proven in the order of issue alone. Without races that is enough: every
// order in which a machine may run the commands keeps every two conflicting commands in the order of issue, so each
// read sees the same writes.
//
// The cost of the proofs grows with the programs of the roles and not with the number of ranks, because all ranks of a
// role run the same commands at the same addresses.
//
// The proofs assume that a kernel writes every byte of its written arguments, accesses no byte outside its arguments,
// and ends. A communication ends when all its members have reached it, and accesses only its operands. A session runs
// the entry of kind Init, or loads all states from files, before any other entry. The entry of kind Prepare runs next,
// before entries that read its results, and it alone sets these. All ranks run the same remaining entries in the same
// order, and on each rank an entry begins when the one before has ended.
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
    uint64_t calls = 0;    ///< calls of segments in the entry's timeline
    uint64_t launches = 0; ///< launches with all calls expanded, as in the counts below
    uint64_t copies = 0;
    uint64_t communications = 0; ///< collectives, sends and receives
    uint32_t streams = 0;        ///< streams on which the entry has commands
    /// The number of the plan's states of which this entry writes at least one byte; at most Role::states.
    uint32_t statesWritten = 0;
  };
  std::vector<Entry> entries;

  struct Proof {
    std::string name;
    uint64_t facts = 0;
    std::string what; ///< a statement of the proven fact: "reads see values of their own buffer"
  };
  /// The proofs in the order in which they succeeded, up to the first that failed.
  std::vector<Proof> proofs;

  /// Facts shared by all ranks with the same coordinate along the role axis. A mesh without a role axis has only one
  /// such set of ranks, with the role 0.
  struct Role {
    std::string name;    ///< empty where the plan names no roles
    uint32_t states = 0; ///< the number of the plan's states (Plan.states) that these ranks have

    struct Arena {
      uint64_t bytes = 0;
      uint64_t highestByte = 0; ///< end offset of the last byte that any command or port uses
      uint32_t buffers = 0;
      /// The sum of the sizes of all buffers of each fbs::BufferKind. Temporaries share bytes, so that their sum may
      /// exceed the arena.
      std::array<uint64_t, static_cast<size_t>(fbs::BufferKind::MAX) + 1> bytesByKind = {};
      uint64_t preparedBytes = 0; ///< sizes of results of the entry of kind Prepare; bytesByKind excludes them
    };
    /// One arena for each fbs::MemorySpace.
    std::array<Arena, static_cast<size_t>(fbs::MemorySpace::MAX) + 1> arenas = {};
    const Arena &in(fbs::MemorySpace space) const { return arenas[static_cast<size_t>(space)]; }
    Arena &in(fbs::MemorySpace space) { return arenas[static_cast<size_t>(space)]; }
  };
  std::vector<Role> roles;

  std::string mesh; ///< axes with their sizes: "pp=2, dp=2"
  uint32_t ranks = 1;
  uint64_t registeredKernels = 0, generatedKernels = 0;
  bool hasCode = true;         ///< false where generated kernels lack machine code, so that the plan cannot run
  uint64_t storedCommands = 0; ///< commands in the file: those of a segment count once, however often it is called
};

class EntryCheck;
class OrderThroughRanks;

class PlanChecker {
public:
  /// `plan` must have passed VerifyPlan.
  explicit PlanChecker(const fbs::Plan &plan) : plan_(plan), timeline_(plan) {}

  /// Returns OK, or kAborted with the first counter-example: proof, command, buffers with their bytes, and sources.
  absl::Status check();
  /// As check(), but without the proof of meaning: VerifyPlan makes that proof itself for plans that have certificates.
  absl::Status checkOrderAndMemory();

  /// Returns the facts proven so far.
  const CheckReport &report() const { return report_; }

  /// Returns the certificates with which a loader rechecks that no ranks wait for each other forever and that the plan
  /// still computes the same functions. They are complete after a check that succeeded.
  const std::vector<fbs::CertificateT> &certificates() const { return certificates_; }

private:
  void summarise();
  absl::Status checkPersistence();
  /// Returns, by buffer, whether the buffer holds a value when an entry of this kind begins.
  std::vector<bool> heldAtBegin(fbs::EntryKind kind) const;
  absl::Status findPrepared();
  absl::Status checkInitialValues(uint32_t entry, const EntryCheck &check);
  absl::Status checkEntry(uint32_t entry);
  absl::Status checkRaces(uint32_t entry);
  absl::Status checkCommunications();
  absl::Status checkCommunicationOrder();
  /// `numbers` has, for each of `entries`, the order of its operations that DeadlockCheck found.
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
  /// By entry name, the order that other ranks add, where a proof needed it; null where it could not be computed.
  std::map<std::string, std::shared_ptr<const OrderThroughRanks>> throughRanks_;
  struct {
    uint64_t operands, aliasing, reads, outputs, commands, waits, communicators, sequences, initialValues, indices;
  } facts_ = {};
};

/// Checks the plan and stores its certificates in it. Returns kAborted with the counter-example, or the error of
/// WritePlan or VerifyPlan. `report`, if not null, receives PlanChecker::report(), also when a proof fails.
absl::Status CertifyPlan(fbs::PlanT &plan, CheckReport *report = nullptr);

/// Formats the report as lines of text for people.
std::string formatReport(const CheckReport &report);

} // namespace bowline

#endif // BOWLINE_CHECKER_PLANCHECKER_H
