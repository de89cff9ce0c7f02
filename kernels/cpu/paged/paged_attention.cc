#include "kernels/cpu/paged/paged_attention.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/paged/paged_sequences.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/paged_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

// How the rows of one sequence are divided, the same for each key head.
struct Share {
  SequenceRows rows;
  int64_t begin, end;   // positions that the only row sees; both 0 where there are several rows
  int64_t first_range;  // of these positions
  int64_t parts;        // pieces or tiles
  int64_t partial;      // number of the first partial sum, of pieces of rows that have several
  int64_t unit;         // number of the first unit; unit + part * heads + head
  bool joined() const { return end > 0 && parts > 1; }
};

class PagedAttention : public Kernel {
 public:
  PagedAttention(const PagedAttentionShape& shape, int threads)
      : shape_(shape),
        table_(BOWLINE_SELECT_ISA(kPagedAttention)),
        division_(DividePagedAttention(shape)),
        threads_(threads),
        attend_(threads),
        join_(threads) {}

  size_t ScratchBytes() const override { return PagedAttentionScratchBytes(shape_, threads_); }

  void Run(absl::Span<void* const> x, void* scratch) const override {
    const PagedIndices indices = {static_cast<const int32_t*>(x[3]), static_cast<const int32_t*>(x[4]),
                                  static_cast<const int32_t*>(x[5])};
    const PagedAttentionArguments arguments = {x[0], x[1], x[2], x[6]};
    float* partials = static_cast<float*>(scratch) + threads_ * division_.thread_floats;
    int64_t units = 0, rows = 0;
    const int64_t heads = shape_.paged.heads;
    ZeroOtherRows(indices, static_cast<char*>(x[6]));
    ForEachShare(indices, [&](const Share& share) {
      units = share.unit + share.parts * heads;
      rows += share.joined();
    });
    attend_.RunMembers(units, [&](int member, int64_t begin, int64_t end) {
      float* own = static_cast<float*>(scratch) + member * division_.thread_floats;
      ForEachShare(indices, [&](const Share& share) {
        const int64_t last = std::min(end, share.unit + share.parts * heads);
        for (int64_t unit = std::max(begin, share.unit); unit < last; ++unit) {
          Attend(indices, arguments, share, (unit - share.unit) / heads, (unit - share.unit) % heads, partials, own);
        }
      });
    });
    if (rows == 0) return;
    const double nanoseconds = 0.1 * static_cast<double>(division_.partial_floats * division_.most_pieces);
    join_.Run(rows * heads, nanoseconds, [&](int64_t begin, int64_t end) {
      int64_t at = 0;
      ForEachShare(indices, [&](const Share& share) {
        if (!share.joined()) return;
        for (int64_t i = std::max(begin, at); i < std::min(end, at + heads); ++i) {
          table_.join(shape_, arguments, share.rows.begin, i - at, share.parts, Partial(partials, share, 0, i - at));
        }
        at += heads;
      });
    });
  }

 private:
  void ZeroOtherRows(const PagedIndices& indices, char* out) const {
    const PagedShape& s = shape_.paged;
    const size_t bytes = static_cast<size_t>(shape_.query_heads * s.head_dim) * SizeOf(shape_.query);
    int64_t first = s.tokens, last = s.tokens;
    ForEachGroup(indices.rows, s.sequences, s.tokens, [&](RowGroup group) {
      if (group.group == 0) first = group.begin;
      last = group.begin + group.count;
    });
    std::memset(out, 0, static_cast<size_t>(first) * bytes);
    std::memset(out + static_cast<size_t>(last) * bytes, 0, static_cast<size_t>(s.tokens - last) * bytes);
  }

  void ForEachShare(const PagedIndices& indices, absl::FunctionRef<void(const Share&)> body) const {
    const PagedShape& s = shape_.paged;
    int64_t unit = 0, partial = 0;
    ForEachSequence(indices.rows, indices.lengths, s.sequences, s.tokens, [&](SequenceRows rows) {
      Share share = {rows, 0, 0, 0, 0, partial, unit};
      if (rows.count == 1) {
        share.end = std::clamp<int64_t>(rows.position, 0, s.table * s.block_size - 1) + 1;
        share.begin = shape_.window == 0 ? 0 : std::max<int64_t>(0, share.end - shape_.window);
        share.first_range = share.begin / division_.range;
        share.parts = (share.end - 1) / division_.range - share.first_range + 1;
      } else {
        const int64_t queries = rows.count * PagedGroup(shape_);
        share.parts = (queries + PagedTileMemory::kTileQueries - 1) / PagedTileMemory::kTileQueries;
      }
      body(share);
      unit += share.parts * s.heads;
      if (share.joined()) partial += share.parts * s.heads;
    });
  }

  // Pieces of a head are one after the other.
  float* Partial(float* partials, const Share& share, int64_t part, int64_t head) const {
    return partials + (share.partial + head * share.parts + part) * division_.partial_floats;
  }

  void Attend(const PagedIndices& indices, const PagedAttentionArguments& arguments, const Share& share, int64_t part,
              int64_t head, float* partials, float* scratch) const {
    const int32_t* table = indices.blocks + share.rows.sequence * shape_.paged.table;
    if (share.rows.count == 1) {
      const int64_t range = (share.first_range + part) * division_.range;
      const PagedPiece piece = {table,
                                share.rows.begin,
                                head,
                                std::max(share.begin, range),
                                std::min(share.end, range + division_.range),
                                share.joined() ? Partial(partials, share, part, head) : nullptr};
      table_.piece(shape_, arguments, piece, scratch);
    } else {
      const int64_t first = part * PagedTileMemory::kTileQueries;
      const int64_t queries = share.rows.count * PagedGroup(shape_);
      const PagedTile tile = {table,
                              share.rows.begin,
                              share.rows.position,
                              head,
                              first,
                              std::min(PagedTileMemory::kTileQueries, queries - first)};
      table_.tile(shape_, arguments, tile, scratch);
    }
  }

  const PagedAttentionShape shape_;
  const PagedAttentionTable& table_;
  const PagedDivision division_;
  const int threads_;
  const ParallelLoop attend_, join_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const PagedAttentionShape shape, ParsePagedAttention(signature));
  return std::make_unique<PagedAttention>(shape, signature.threads);
}

}  // namespace

KernelDefinition PagedAttentionDefinition() {
  return {
      "paged_attention",
      "out[t] = softmax(scale query[t] k^T) v over the positions up to that of row t of its sequence "
      "(sequence_positions), whose keys and values are at [blocks[r, p / S], p % S] of caches [N, S, K, D] of one "
      "floating-point type; query, out [T, H, D] of that type or f32, K dividing H; rows [R+1], lengths [R], blocks "
      "[R, M] i32; zeros for rows of no sequence; float scale; optional int window: the last window positions "
      "alone; optional text format 'int8': caches of u8 [N, S, K, D + 4] in rows of int8, and query, out of any "
      "floating-point type; summed in f32; same bits for every number of threads, and whatever positions have that a "
      "row does not see, infinite and NaN too",
      &Create};
}

}  // namespace bowline::kernels
