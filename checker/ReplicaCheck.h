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

/// A set of mesh axes; bit i stands for axis i.
using AxisSet = uint64_t;

/// Maps each byte of a rank to the axes along which it may differ. Along all other axes ranks hold the same byte.
class ByteAxes {
public:
  /// The command that last wrote a value, and one of its operands that differs along the axes.
  struct Origin {
    std::optional<CommandSite> writer;
    std::optional<OperandAccess> operand;
  };

  void set(ByteRange range, AxisSet axes, const Origin &origin = {});
  /// Returns the axes along which any byte of the range may differ: none for bytes that were never set.
  AxisSet get(ByteRange range) const;
  /// Returns the origin of the first bytes of the range that may differ along one of the axes.
  Origin originOf(ByteRange range, AxisSet axes) const;

private:
  struct Cell {
    uint64_t end = 0;
    AxisSet axes = 0;
    Origin origin;
  };

  std::map<uint64_t, Cell> cells_; // key: first byte of the cell; cells are disjoint
};

/// Proves that states and outputs are equal on all ranks along each axis along which their layout does not divide them,
/// so that replicas never drift apart. Outputs of custom entries are exempt. Executes the entries of one name of all
/// roles, with sets of axes in place of values:
///
///   inputs, states   differ along the axes of their layouts: callers give such inputs, and the proof for the run
///                    before gives such states. An entry of kind Init begins without states.
///   coordinates      differ along their axes
///   launch, copy     a result differs along each axis along which an operand differs that it depends on: a kernel is
///                    a function of these operands (Dependences.h)
///   all-reduce and   results differ along the axes of the source, except those of the communicator
///   all-gather
///   reduce-scatter   results differ along the axes of the source and along those of the communicator
///   and all-to-all
///   permute          the result differs along the axes of the source, and along all axes of the communicator where the
///                    source differs along one of these or the communicator spans roles
///   receive          the result differs along the axes of the sent value
///
/// So the proof is by induction over the runs of a session, in any order of entries.
class ReplicaCheck {
public:
  /// Maps the buffer of a result of the entry of kind Prepare, which later entries read, to the result's axes.
  using PreparedAxes = std::map<uint32_t, AxisSet>;

  /// `numbers[operation]` is the operation's place in the order of all operations that DeadlockCheck found.
  ReplicaCheck(const Timeline &timeline, absl::string_view entry, const Communications &communications,
               absl::Span<const uint32_t> numbers, PreparedAxes &prepared);

  absl::Status check();

  /// The number of proven pairs: a tensor, and an axis along which it is equal.
  uint64_t facts() const { return facts_; }

private:
  /// The symbolic execution of one role's entry, and how far it has come.
  struct Walk {
    uint32_t entry = 0;
    ByteAxes bytes;
    uint32_t call = 0, command = 0; ///< the next command to execute
  };

  void begin(Walk &walk) const;
  /// Executes the commands before `site`, or all remaining ones where there is none.
  void advance(Walk &walk, std::optional<CommandSite> site);
  void execute(Walk &walk, CommandSite site, const fbs::Command &command);
  void exchange(uint32_t operation);
  /// Returns the axes along which ranks access other bytes for the operand, whatever those bytes hold.
  AxisSet placeAxes(const OperandAccess &access) const;
  AxisSet readAt(const Walk &walk, const OperandAccess &access) const;
  void writeAt(Walk &walk, const OperandAccess &access, AxisSet axes, const ByteAxes::Origin &origin) const;
  /// Returns, for each operand that the command reads, the axes along which it differs.
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
  std::vector<Walk> walks_;                     ///< index: role
  std::vector<bool> areResults_;                ///< index: buffer; whether the entry of kind Prepare computes it
  AxisSet axes_ = 0;                            ///< mesh axes with several ranks, except the role axis
  std::map<uint32_t, Dependences> dependences_; ///< by kernel
  uint64_t facts_ = 0;
  std::vector<OperandAccess> accesses_; // scratch
};

} // namespace bowline

#endif // BOWLINE_CHECKER_REPLICACHECK_H
