#include "runtime/plan/meaning/value_map.h"

#include <algorithm>
#include <iterator>

#include "runtime/plan/meaning/digest_tags.h"

namespace bowline {

void Append(ValuePieces& pieces, const ValuePiece& piece) {
  if (!pieces.empty()) {
    ValuePiece& last = pieces.back();
    if (last.value == piece.value && (piece.value == kUndefined || last.offset + last.bytes == piece.offset)) {
      last.bytes += piece.bytes;
      return;
    }
  }
  pieces.push_back(piece);
}

Digest DigestOf(absl::Span<const ValuePiece> pieces) {
  if (pieces.size() == 1 && pieces[0].offset == 0 && pieces[0].value != kUndefined) return pieces[0].value;
  DigestBuilder builder(kPiecesTag);
  builder.Add(pieces.size());
  for (const ValuePiece& piece : pieces) builder.Add(piece.value).Add(piece.offset).Add(piece.bytes);
  return builder.Finish();
}

Digest DigestOfData(absl::Span<const uint8_t> bytes, WorkMeter& meter) {
  meter.Spend(bytes.size() / 64);
  return meter.exhausted() ? kUndefined : DigestOfBytes(bytes);
}

void ValueMap::Insert(uint64_t begin, const Cell& cell) {
  cells_.emplace(begin, cell);
  meter_.Keep(1);
}

void ValueMap::Split(uint64_t at) {
  auto next = cells_.upper_bound(at);
  if (next == cells_.begin()) return;
  Cell& cell = std::prev(next)->second;
  const uint64_t begin = std::prev(next)->first;
  if (begin == at || cell.end <= at) return;
  Insert(at, {cell.end, cell.value, cell.offset + (at - begin)});
  cell.end = at;
}

void ValueMap::Erase(ByteRange range) {
  if (range.bytes() == 0 || meter_.exhausted()) return;
  Split(range.begin);
  Split(range.end);
  const auto first = cells_.lower_bound(range.begin), last = cells_.lower_bound(range.end);
  const auto count = static_cast<uint64_t>(std::distance(first, last));
  cells_.erase(first, last);
  meter_.Drop(count);
  meter_.Spend(count);
}

void ValueMap::Write(ByteRange range, const Digest& value) {
  if (range.bytes() == 0 || meter_.exhausted()) return;
  meter_.Spend(1);
  // The usual case: the same bytes as last time.
  const auto cell = cells_.find(range.begin);
  if (cell != cells_.end() && cell->second.end == range.end) {
    cell->second.value = value;
    cell->second.offset = 0;
    return;
  }
  Erase(range);
  Insert(range.begin, {range.end, value, 0});
}

void ValueMap::Write(ByteRange range, absl::Span<const ValuePiece> pieces) {
  if (range.bytes() == 0 || meter_.exhausted()) return;
  Erase(range);
  meter_.Spend(pieces.size());
  uint64_t at = range.begin;
  for (const ValuePiece& piece : pieces) {
    if (piece.value != kUndefined) Insert(at, {at + piece.bytes, piece.value, piece.offset});
    at += piece.bytes;
  }
}

void ValueMap::Read(ByteRange range, ValuePieces& pieces) const {
  pieces.clear();
  uint64_t at = range.begin;
  auto cell = cells_.upper_bound(at);
  if (cell != cells_.begin() && std::prev(cell)->second.end > at) --cell;
  while (at < range.end && !meter_.exhausted()) {
    meter_.Spend(1);
    if (cell == cells_.end() || cell->first > at) {
      const uint64_t end = cell == cells_.end() ? range.end : std::min(range.end, cell->first);
      Append(pieces, {kUndefined, 0, end - at});
      at = end;
      continue;
    }
    const uint64_t end = std::min(range.end, cell->second.end);
    Append(pieces, {cell->second.value, cell->second.offset + (at - cell->first), end - at});
    at = end;
    ++cell;
  }
}

Digest ValueMap::DigestOf(ByteRange range) {
  const auto cell = cells_.find(range.begin);
  if (cell != cells_.end() && cell->second.end >= range.end && range.bytes() > 0 && cell->second.offset == 0) {
    meter_.Spend(1);
    return cell->second.value;
  }
  Read(range, pieces_);
  return bowline::DigestOf(pieces_);
}

}  // namespace bowline
