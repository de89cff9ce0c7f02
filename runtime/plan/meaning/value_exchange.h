#ifndef BOWLINE_RUNTIME_PLAN_MEANING_VALUE_EXCHANGE_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_VALUE_EXCHANGE_H_

// Digests of the values that the members of a communication give each other. Private to runtime/plan.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/plan/meaning/value_map.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// The values that one member gives to the others in a communication.
struct Offer {
  std::vector<ValuePieces> pieces;  // per piece of a collective, or per range of a send
  uint64_t kept = 0;                // number of ValuePieces that WorkMeter::Keep counted for them
  bool overlaps = false;            // whether a range that it writes overlaps another operand illegally
};

// A collective. `offers` has one offer per role, in the order of roles, made by commands that match. A group within one
// role makes one offer, because its ranks all offer the same.
class Exchange {
 public:
  Exchange(const fbs::Plan& plan, const fbs::Collective& collective, absl::Span<const Offer> offers, WorkMeter& meter);

  // Returns whether an offer overlaps; all members then get undefined values.
  bool overlaps() const { return overlaps_; }
  // The values that a member gets, one element per piece.
  std::vector<ValuePieces> For(uint32_t member) const;

 private:
  ValuePieces Reduce(const Digest& base, uint64_t piece) const;
  ValuePieces Gather(const Digest& base, uint64_t piece, const fbs::Piece& stored, uint64_t members) const;

  const fbs::Collective& collective_;
  const absl::Span<const Offer> offers_;
  WorkMeter& meter_;
  bool overlaps_ = false;
  std::vector<ValuePieces> common_;  // the values that are the same for all members
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_VALUE_EXCHANGE_H_
