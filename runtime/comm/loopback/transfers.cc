#include "runtime/comm/loopback/transfers.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/comm/reduce.h"
#include "runtime/comm/share.h"
#include "runtime/hal/exchange.h"

namespace bowline {
namespace {

const uint8_t* At(const void* base, size_t index, size_t element_bytes) {
  return static_cast<const uint8_t*>(base) + index * element_bytes;
}
uint8_t* At(void* base, size_t index, size_t element_bytes) {
  return static_cast<uint8_t*>(base) + index * element_bytes;
}

void CopyBytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

// Calls body(piece, offset, count) for the parts of the pieces, laid end to end, that are the share of member `rank`.
template <typename Body>
void ForShare(absl::Span<const hal::HostPiece> pieces, size_t ranks, size_t rank, Body body) {
  const auto [begin, end] = ShareOf(hal::TotalOf(pieces), ranks, rank);
  size_t first = 0;
  for (size_t i = 0; i < pieces.size() && first < end; ++i) {
    const size_t last = first + pieces[i].count;
    const size_t from = std::max(first, begin), to = std::min(last, end);
    if (from < to) body(i, from - first, to - from);
    first = last;
  }
}

}  // namespace

void ReduceShare(const MemberView& view, hal::ReduceOp op) {
  const size_t ranks = view.pieces.size(), bytes = kernels::SizeOf(view.dtype);
  const absl::Span<const hal::HostPiece> own = view.pieces[view.self];
  ForShare(own, ranks, view.self, [&](size_t i, size_t offset, size_t count) {
    for (size_t r = 0; r < ranks; ++r) view.sources[r] = At(view.pieces[r][i].send, offset, bytes);
    Reduce(view.sources, At(own[i].receive, offset, bytes), count, view.dtype, op);
  });
}

void CopyShares(const MemberView& view) {
  const size_t ranks = view.pieces.size(), bytes = kernels::SizeOf(view.dtype);
  const absl::Span<const hal::HostPiece> own = view.pieces[view.self];
  // Each begins with its neighbour, so that not all read from one.
  for (size_t step = 1; step < ranks; ++step) {
    const size_t r = (view.self + step) % ranks;
    ForShare(own, ranks, r, [&](size_t i, size_t offset, size_t count) {
      CopyBytes(At(own[i].receive, offset, bytes), At(view.pieces[r][i].receive, offset, bytes), count * bytes);
    });
  }
}

void MoveParts(const MemberView& view, const hal::Operation& operation) {
  const collectives::Definition& collective = *operation.collective();
  const size_t ranks = view.pieces.size(), bytes = kernels::SizeOf(view.dtype);
  const absl::Span<const hal::HostPiece> own = view.pieces[view.self];
  const auto move_from = [&](size_t member) {
    return collective.move(static_cast<uint32_t>(member), static_cast<uint32_t>(view.self),
                           static_cast<uint32_t>(ranks), operation.parameter);
  };
  for (size_t i = 0; i < own.size() && collective.reduces(); ++i) {
    const size_t count = own[i].count;
    for (size_t r = 0; r < ranks; ++r) view.sources[r] = At(view.pieces[r][i].send, move_from(r).source * count, bytes);
    Reduce(view.sources, own[i].receive, count, view.dtype, operation.op());
  }
  // Each begins with its neighbour, so that not all read from one.
  for (size_t step = 1; step <= ranks && !collective.reduces(); ++step) {
    const size_t r = (view.self + step) % ranks;
    const collectives::Move move = move_from(r);
    for (size_t i = 0; i < own.size() && move.any; ++i) {
      const size_t count = own[i].count;
      CopyBytes(At(own[i].receive, move.destination * count, bytes),
                At(view.pieces[r][i].send, move.source * count, bytes), count * bytes);
    }
  }
}

void CopyPieces(absl::Span<const hal::HostPiece> from, absl::Span<const hal::HostPiece> to, kernels::DType dtype) {
  for (size_t i = 0; i < to.size(); ++i) CopyBytes(to[i].receive, from[i].send, to[i].count * kernels::SizeOf(dtype));
}

}  // namespace bowline
