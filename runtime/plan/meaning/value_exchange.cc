#include "runtime/plan/meaning/value_exchange.h"

#include <algorithm>

#include "runtime/plan/meaning/digest_tags.h"
#include "runtime/plan/view/collective_view.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

// The digest of all of a collective but its values and their counts. Not the name of the communicator matters, but its
// axes.
Digest BaseDigest(const fbs::Plan& plan, const fbs::Collective& collective, size_t offers) {
  const auto* axes = plan.communicators()->Get(collective.communicator())->axes();
  const bool has_parameter = DefinitionOf(collective.kind()).parameter != collectives::Parameter::kNone;
  DigestBuilder builder(kCollectiveTag);
  builder.Add(static_cast<uint64_t>(collective.kind())).Add(static_cast<uint64_t>(collective.dtype()));
  builder.Add(has_parameter ? 1 + ParameterOf(collective) : 0).Add(offers).Add(SizeOf(axes));
  for (uint32_t i = 0; i < SizeOf(axes); ++i) builder.Add(axes->Get(i));
  return builder.Finish();
}

}  // namespace

Exchange::Exchange(const fbs::Plan& plan, const fbs::Collective& collective, absl::Span<const Offer> offers,
                   WorkMeter& meter)
    : collective_(collective), offers_(offers), meter_(meter) {
  for (const Offer& offer : offers) {
    // An offer is incomplete when its reader ran out of work.
    overlaps_ |= offer.overlaps || offer.pieces.size() != SizeOf(collective.pieces());
  }
  if (overlaps_) return;
  const Digest base = BaseDigest(plan, collective, offers.size());
  const uint64_t members = SizeAlong(plan, plan.communicators()->Get(collective.communicator())->axes());
  const collectives::Definition& definition = DefinitionOf(collective.kind());
  const bool is_elementwise = definition.reduces() && !definition.scatters;
  for (uint32_t piece = 0; piece < SizeOf(collective.pieces()); ++piece) {
    common_.push_back(is_elementwise ? Reduce(base, piece)
                                     : Gather(base, piece, *collective.pieces()->Get(piece), members));
  }
}

// An element of the result depends on that element of all sources and nothing else, so the result has the pieces of the
// sources, each at the offset that it has in the first: sums of parts are parts of sums, however they are bundled.
ValuePieces Exchange::Reduce(const Digest& base, uint64_t piece) const {
  struct Cursor {
    size_t index = 0;
    uint64_t used = 0;  // bytes of that piece
  };
  std::vector<Cursor> cursors(offers_.size());
  const uint64_t element = ElementSize(collective_.dtype());
  ValuePieces result;
  while (cursors[0].index < offers_[0].pieces[piece].size() && !meter_.exhausted()) {
    meter_.Spend(offers_.size());
    uint64_t bytes = UINT64_MAX;
    for (size_t i = 0; i < offers_.size(); ++i) {
      bytes = std::min(bytes, offers_[i].pieces[piece][cursors[i].index].bytes - cursors[i].used);
    }
    const ValuePiece& first = offers_[0].pieces[piece][cursors[0].index];
    const uint64_t offset = first.offset + cursors[0].used;
    DigestBuilder builder(kReducedTag);
    builder.Add(base).Add(offset % element);
    bool defined = true;
    for (size_t i = 0; i < offers_.size(); ++i) {
      Cursor& cursor = cursors[i];
      const ValuePiece& source = offers_[i].pieces[piece][cursor.index];
      defined &= source.value != kUndefined;
      builder.Add(source.value).Add(source.offset + cursor.used - offset);
      cursor.used += bytes;
      if (cursor.used == source.bytes) cursor = {cursor.index + 1, 0};
    }
    Append(result, defined ? ValuePiece{builder.Finish(), offset, bytes} : ValuePiece{kUndefined, 0, bytes});
  }
  return result;
}

ValuePieces Exchange::Gather(const Digest& base, uint64_t piece, const fbs::Piece& stored, uint64_t members) const {
  DigestBuilder builder(kExchangedTag);
  builder.Add(base).Add(stored.count());
  for (const Offer& offer : offers_) builder.Add(DigestOf(offer.pieces[piece]));
  const uint64_t bytes =
      stored.count() * ElementSize(collective_.dtype()) * DefinitionOf(collective_.kind()).DestinationParts(members);
  return {{builder.Finish(), 0, bytes}};
}

std::vector<ValuePieces> Exchange::For(uint32_t member) const {
  std::vector<ValuePieces> result = common_;
  if (DefinitionOf(collective_.kind()).alike) return result;
  for (ValuePieces& pieces : result) {
    pieces[0].value = DigestBuilder(kExchangedTag).Add(member).Add(pieces[0].value).Finish();
  }
  return result;
}

}  // namespace bowline
