#include "kernels/cpu/paged/paged_attention.h"
#include "kernels/cpu/paged/paged_piece.h"
#include "kernels/cpu/paged/paged_tile.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

// visit(zero of the queries' type, zero of the cache's).
template <typename Visitor>
BOWLINE_ALWAYS_INLINE void VisitTypes(const PagedAttentionShape& shape, Visitor visit) {
  if (shape.paged.cache == ElementType::kU8) {
    VisitFloatType(shape.query, [&](auto query) { visit(query, Int8{}); });
    return;
  }
  VisitFloatType(shape.paged.cache, [&](auto cache) {
    if (shape.query == ElementType::kF32) {
      visit(0.0f, cache);
    } else {
      visit(cache, cache);
    }
  });
}

void Piece(const PagedAttentionShape& shape, const PagedAttentionArguments& x, const PagedPiece& piece,
           float* scratch) {
  VisitTypes(shape,
             [&](auto query, auto cache) { AttendPiece<decltype(query), decltype(cache)>(shape, x, piece, scratch); });
}

void Join(const PagedAttentionShape& shape, const PagedAttentionArguments& x, int64_t row, int64_t head, int64_t pieces,
          const float* partial) {
  VisitFloatType(shape.query, [&](auto query) { JoinPieces<decltype(query)>(shape, x, row, head, pieces, partial); });
}

void Tile(const PagedAttentionShape& shape, const PagedAttentionArguments& x, const PagedTile& tile, float* scratch) {
  VisitTypes(shape,
             [&](auto query, auto cache) { AttendTile<decltype(query), decltype(cache)>(shape, x, tile, scratch); });
}

}  // namespace

extern const PagedAttentionTable kPagedAttention = {&Piece, &Join, &Tile};

}  // namespace bowline::kernels::BOWLINE_ISA
