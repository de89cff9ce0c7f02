#ifndef BOWLINE_RUNTIME_PLAN_MEANING_ROLE_VALUES_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_ROLE_VALUES_H_

// One role of an entry, executed on digests of values instead of bytes. Private to runtime/plan.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/plan/meaning/kernel_digests.h"
#include "runtime/plan/meaning/value_exchange.h"
#include "runtime/plan/meaning/value_map.h"
#include "runtime/plan/meaning/value_meaning.h"
#include "runtime/plan/plan_generated.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

// The digests and tables that all entries of a plan share.
struct PlanDigests {
  explicit PlanDigests(const fbs::Plan& plan);

  const fbs::Plan& plan;
  WorkMeter meter;
  KernelDigests kernels;
  std::vector<std::vector<uint32_t>> buffers_of_role;
  std::vector<const fbs::State*> state_of_buffer;  // null: none
  std::vector<Digest> contents;                    // of constants and coordinates, by buffer
  std::vector<Digest> interfaces;                  // InterfacesOfRoles, by role
  std::vector<uint32_t> same_views;                // FindSameViews
};

class RoleValues {
 public:
  RoleValues(PlanDigests& shared, uint32_t entry);

  // Executes commands up to the next one that communicates between roles, or to the end of the timeline.
  void Advance();
  // The command at which Advance stopped; null if it reached the end.
  const fbs::Command* pending() const { return pending_; }
  uint32_t role() const { return role_; }
  // "call 3: segment 'forward': command 2, receive from place 0 of 'pp'"
  std::string DescribePlace() const;

  // The values that the pending command gives to other roles.
  Offer ReadPending() { return ReadOffer(*pending_); }
  // Writes the values that the pending command receives, one element of `received` per piece or range. If `overlaps`,
  // the written bytes become undefined instead. The next Advance continues after the command.
  void WriteReceived(absl::Span<const ValuePieces> received, bool overlaps);

  // The meaning of the role. Call it once Advance has reached the end.
  RoleMeaning Finish();

 private:
  struct Use {
    uint32_t buffer;
    uint64_t offset, bytes;
    fbs::Access access;
    bool scratch;         // whether the buffer holds no value once the command is over
    bool workspace;       // whether results do not depend on the value (workspace, faults)
    uint64_t spread = 0;  // SpreadOf(plan, buffer)
  };
  struct Stored {
    const fbs::Command* command;
    uint32_t first, count;  // range of Segment.uses
    bool between_roles;
  };
  struct Segment {
    bool known = false;
    std::vector<Stored> commands;
    std::vector<Use> uses;
  };
  struct Initial {
    uint32_t buffer, slot;
    Digest value;
  };

  const Segment& SegmentAt(uint32_t index);
  void Store(const fbs::Command& command, Segment& segment);
  void SetInitial();
  void SetInitial(uint32_t buffer);

  void Enter(const Segment& segment, const Stored& stored);
  bool Overlaps(const fbs::Command& command);
  bool MayShare(const fbs::Command& command, uint32_t output, uint32_t input);
  void Launch(const fbs::Command& command);
  void Copy(const fbs::Command& command);
  void Collective(const fbs::Command& command);
  // The digest, or the pieces, of the value in operand i of the current command. If the operand's place depends on the
  // rank: the value that the rank wrote through it, or, if something else has written there since, a part of that.
  Digest DigestOf(size_t i);
  void Read(size_t i, ValuePieces& pieces);
  void Write(size_t i, absl::Span<const ValuePiece> pieces);
  void Erase(size_t i);
  void ForgetParts(ByteRange range);
  Offer ReadOffer(const fbs::Command& command);
  void AddOutputs(RoleMeaning& meaning);
  void AddChanges(RoleMeaning& meaning);

  PlanDigests& shared_;
  const fbs::Plan& plan_;
  const fbs::Entry& entry_;
  const fbs::Program& program_;
  const uint32_t role_;
  ValueMap values_;
  // A value that each rank wrote to its own bytes: through the buffer `view` (FindSameViews), within `range`.
  struct Part {
    uint32_t view;
    ByteRange range;
    ValuePieces pieces;
  };
  std::vector<Part> parts_;
  std::vector<Initial> initial_;
  std::set<Digest> promises_;  // KernelDigests::Promises of the kernels in segments that are called
  std::vector<Segment> segments_;

  uint32_t call_ = 0, next_ = 0;  // the index of the current call, and of its next command
  const fbs::Command* pending_ = nullptr;

  // These describe the current command.
  absl::Span<const Use> uses_;
  std::vector<ByteRange> ranges_;
  std::vector<uint32_t> order_;
  ValuePieces pieces_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_ROLE_VALUES_H_
