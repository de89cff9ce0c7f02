#ifndef BOWLINE_RUNTIME_PLAN_MEANING_VALUE_EXCHANGE_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_VALUE_EXCHANGE_H_

// Digests of the values that the members of a communication give each other. Private to runtime/plan.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/plan/meaning/value_map.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// The values that a member gives.
struct Offer {
  std::vector<ValuePieces> pieces;  // for each piece of a collective or range of a send
  uint64_t kept = 0;                // number of ValuePieces in all, as WorkMeter::Keep was told
  bool overlaps = false;            // a range that it writes overlaps another of its operands as it must not
};

// A collective in which `offers` take part, one per role in order; all were made by commands that match. A group within
// one role makes one offer, for its ranks offer alike.
class Exchange {
 public:
  Exchange(const fbs::Plan& plan, const fbs::Collective& collective, absl::Span<const Offer> offers, WorkMeter& meter);

  // Returns whether an offer overlaps, so that all members get undefined values.
  bool overlaps() const { return overlaps_; }
  // The values that the member gets in each piece.
  std::vector<ValuePieces> For(uint32_t member) const;

 private:
  ValuePieces Reduce(const Digest& base, uint64_t piece) const;
  ValuePieces Gather(const Digest& base, uint64_t piece, const fbs::Piece& stored, uint64_t members) const;

  const fbs::Collective& collective_;
  const absl::Span<const Offer> offers_;
  WorkMeter& meter_;
  bool overlaps_ = false;
  std::vector<ValuePieces> common_;  // the values that do not depend on the member
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_VALUE_EXCHANGE_H_
