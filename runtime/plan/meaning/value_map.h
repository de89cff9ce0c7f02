#ifndef BOWLINE_RUNTIME_PLAN_MEANING_VALUE_MAP_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_VALUE_MAP_H_

// A map from the bytes of an arena to the values that they hold.

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "runtime/plan/meaning/digest.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {

// The bytes [offset, offset + bytes) of a value.
struct ValuePiece {
  Digest value;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
using ValuePieces = std::vector<ValuePiece>;

// The value, at any offset, of bytes that nothing wrote. No digest of anything is equal to it.
inline constexpr Digest kUndefined = {};

// Appends the piece, or extends the last piece if the new one continues it.
void Append(ValuePieces& pieces, const ValuePiece& piece);

// The digest of bytes that hold these pieces. If they are the first bytes of one value, that value's own digest.
Digest DigestOf(absl::Span<const ValuePiece> pieces);

// Bounds the work and memory that a hostile file can cost its reader. Once exhausted, a meter stays exhausted, and the
// results computed from then on are meaningless.
class WorkMeter {
 public:
  WorkMeter(uint64_t steps, uint64_t pieces) : steps_(steps), pieces_(pieces) {}
  void Spend(uint64_t steps) {
    exhausted_ |= steps > steps_;
    steps_ -= exhausted_ ? 0 : steps;
  }
  // Counts pieces that are kept in memory.
  void Keep(uint64_t count) {
    kept_ += count;
    exhausted_ |= kept_ > pieces_;
  }
  void Drop(uint64_t count) { kept_ -= count; }
  bool exhausted() const { return exhausted_; }

 private:
  uint64_t steps_, pieces_, kept_ = 0;
  bool exhausted_ = false;
};

// Computes DigestOfBytes, counted as work: a hostile file may hold a million tables that share their data.
Digest DigestOfData(absl::Span<const uint8_t> bytes, WorkMeter& meter);

// Partial map from bytes to values. An operation costs O(log n + number of pieces it meets).
class ValueMap {
 public:
  explicit ValueMap(WorkMeter& meter) : meter_(meter) {}
  ~ValueMap() { meter_.Drop(cells_.size()); }
  ValueMap(const ValueMap&) = delete;
  ValueMap& operator=(const ValueMap&) = delete;

  // Make `range` hold the first bytes of `value`; or these pieces, which have as many bytes; or no value.
  void Write(ByteRange range, const Digest& value);
  void Write(ByteRange range, absl::Span<const ValuePiece> pieces);
  void Erase(ByteRange range);

  // Replaces `pieces` by the pieces of the range, as few as possible.
  void Read(ByteRange range, ValuePieces& pieces) const;
  Digest DigestOf(ByteRange range);

 private:
  struct Cell {
    uint64_t end;
    Digest value;
    uint64_t offset;
  };
  // Makes `at` a boundary between cells.
  void Split(uint64_t at);
  void Insert(uint64_t begin, const Cell& cell);

  WorkMeter& meter_;
  std::map<uint64_t, Cell> cells_;  // by first byte; disjoint
  ValuePieces pieces_;              // scratch of DigestOf
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_VALUE_MAP_H_
