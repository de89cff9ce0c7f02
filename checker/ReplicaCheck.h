//===- ReplicaCheck.h - copies that ranks keep stay equal -------*- C++ -*-===//
//
// Private to checker.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_CHECKER_REPLICACHECK_H
#define BOWLINE_CHECKER_REPLICACHECK_H

#include "checker/Communications.h"
#include "checker/Dependences.h"
#include "checker/Timeline.h"
#include "runtime/base/status.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bowline {

/// A set of axes of the mesh, by bit.
using AxisSet = uint64_t;

/// For each byte of a rank, the axes along which it may differ: along all others, ranks hold the same byte.
class ByteAxes {
public:
  /// The command that wrote a value last, and one of its operands that differs along the axes.
  struct Origin {
    std::optional<CommandSite> writer;
    std::optional<OperandAccess> operand;
  };

  void set(ByteRange range, AxisSet axes, const Origin &origin = {});
  /// The axes along which any byte of the range differs. Bytes that were never set differ along none.
  AxisSet get(ByteRange range) const;
  /// The origin of the first bytes of the range that differ along one of the axes.
  Origin originOf(ByteRange range, AxisSet axes) const;

private:
  struct Cell {
    uint64_t end = 0;
    AxisSet axes = 0;
    Origin origin;
  };

  std::map<uint64_t, Cell> cells_; // key: first byte of the cell; cells are disjoint
};

/// Proves that states, and outputs of all but custom entries, are equal on all ranks along each axis along which their
/// layout does not divide them: replicas never drift apart. Executes all roles of the entries of one name on sets of
/// axes in the place of values:
///
///   inputs, states   differ along the axes of their layouts: callers give such inputs, this proof on the run before
///                    gives such states. An entry of kind Init begins with no states.
///   coordinates      differ along their axes
///   launch, copy     results differ along each axis along which an operand does that they depend on: a kernel is a
///                    function of these operands (Dependences.h)
///   all-reduce and   differ along the axes of the source, but not along those of the communicator
///   all-gather
///   reduce-scatter   differ along those of the communicator too
///   and all-to-all
///   permute          differ as the source does, and along all axes of the communicator where it does along one of
///                    them, or where the communicator spans roles
///   receive          differ as the sent value does
///
/// So the proof is by induction over the runs of a session, in any order of entries.
class ReplicaCheck {
public:
  /// Values of results of the entry of kind Prepare, which later entries read. Index: buffer.
  using PreparedAxes = std::map<uint32_t, AxisSet>;

  /// `numbers[operation]` is the place of an operation in an order that suits all ranks (DeadlockCheck).
  ReplicaCheck(const Timeline &timeline, absl::string_view entry, const Communications &communications,
               absl::Span<const uint32_t> numbers, PreparedAxes &prepared);

  absl::Status check();

  /// The number of pairs of a tensor and an axis along which it was found equal.
  uint64_t facts() const { return facts_; }

private:
  /// One role, and how far it was executed.
  struct Walk {
    uint32_t entry = 0;
    ByteAxes bytes;
    uint32_t call = 0, command = 0; ///< the next command
  };

  void begin(Walk &walk) const;
  /// Executes the commands in front of `site`, or all where there is none.
  void advance(Walk &walk, std::optional<CommandSite> site);
  void execute(Walk &walk, CommandSite site, const fbs::Command &command);
  void exchange(uint32_t operation);
  /// The axes along which ranks have different bytes for the operand, whatever these hold.
  AxisSet placeAxes(const OperandAccess &access) const;
  AxisSet readAt(const Walk &walk, const OperandAccess &access) const;
  void writeAt(Walk &walk, const OperandAccess &access, AxisSet axes, const ByteAxes::Origin &origin) const;
  /// The axes along which each piece differs that the command reads.
  std::vector<AxisSet> read(const Walk &walk, CommandSite site);
  void write(Walk &walk, CommandSite site, const std::vector<AxisSet> &pieces);
  AxisSet layoutAxes(const fbs::Buffer &buffer) const;
  absl::Status compare(const Walk &walk, uint32_t buffer, const std::string &what);
  absl::Status finish(const Walk &walk);
  std::string nameAxes(AxisSet axes) const;

  const Timeline &timeline_;
  const fbs::Plan &plan_;
  const Communications &communications_;
  absl::Span<const uint32_t> numbers_;
  PreparedAxes &prepared_;
  std::vector<Walk> walks_;      ///< index: role
  std::vector<bool> areResults_; ///< index: buffer; whether the entry of kind Prepare computes it
  AxisSet axes_ = 0;             ///< those of the mesh with several ranks, but for the one that tells roles apart
  std::map<uint32_t, Dependences> dependences_; ///< by kernel
  uint64_t facts_ = 0;
  std::vector<OperandAccess> accesses_; // scratch
};

} // namespace bowline

#endif // BOWLINE_CHECKER_REPLICACHECK_H
