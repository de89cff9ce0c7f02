#include "runtime/comm/gloo/transfers.h"

#include <algorithm>
#include <cstring>

#include "runtime/comm/reduce.h"
#include "runtime/comm/share.h"

namespace bowline {
namespace {

constexpr size_t kStaging = size_t{4} << 20;
// Up to so many bytes, all members making the same sums takes less time than a second exchange.
constexpr size_t kFewBytes = size_t{4} << 10;
constexpr size_t kSmallestChunk = size_t{32} << 10, kLargestChunk = size_t{512} << 10;

PieceCursor At(absl::Span<const hal::HostPiece> pieces, size_t part, size_t element) {
  PieceCursor cursor = {pieces, part};
  cursor.Skip(element);
  return cursor;
}

void CopyBytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace

void PieceCursor::Skip(size_t elements) {
  offset += elements;
  while (piece < pieces.size() && offset >= pieces[piece].count) offset -= pieces[piece++].count;
}

const uint8_t* PieceCursor::send(size_t element_bytes) const {
  return static_cast<const uint8_t*>(pieces[piece].send) + (part * pieces[piece].count + offset) * element_bytes;
}

uint8_t* PieceCursor::receive(size_t element_bytes) const {
  return static_cast<uint8_t*>(pieces[piece].receive) + (part * pieces[piece].count + offset) * element_bytes;
}

GlooTransfers::GlooTransfers(GlooMesh& mesh, std::atomic<int>& waits_for)
    : mesh_(mesh),
      waits_for_(waits_for),
      self_(static_cast<size_t>(mesh.self())),
      peers_(static_cast<size_t>(mesh.size())),
      sources_(peers_.size()) {
  chunk_bytes_ = kLargestChunk;
  if (peers_.size() == 1) return;
  // The size of chunks is the same for all members, who have to divide pieces alike.
  chunk_bytes_ = std::clamp(kStaging / (peers_.size() - 1) / 4096 * 4096, kSmallestChunk, kLargestChunk);
  for (size_t peer = 0; peer < peers_.size(); ++peer) {
    // The memory is not written to here, so that pages that are never used are never allocated.
    if (peer != self_) peers_[peer].staging.reset(new uint8_t[4 * chunk_bytes_]);
  }
}

uint8_t* GlooTransfers::Staging(size_t peer, bool out, size_t slot) const {
  return peers_[peer].staging.get() + ((out ? 2 : 0) + slot) * chunk_bytes_;
}

absl::Status GlooTransfers::Run(const hal::Operation& operation, absl::Span<const hal::HostPiece> pieces) {
  Clear();
  switch (operation.kind) {
    case hal::OperationKind::kAllReduce:
      return AllReduce(operation, pieces);
    case hal::OperationKind::kSend:
      peers_[static_cast<size_t>(operation.peer)].out = {At(pieces, 0, 0), hal::TotalOf(pieces)};
      return Move(operation, nullptr);
    case hal::OperationKind::kReceive:
      peers_[static_cast<size_t>(operation.peer)].in = {At(pieces, 0, 0), hal::TotalOf(pieces)};
      return Move(operation, nullptr);
    case hal::OperationKind::kBarrier:
    case hal::OperationKind::kNone:
      return absl::OkStatus();
    default:
      return MoveParts(operation, pieces);
  }
}

absl::Status GlooTransfers::AllReduce(const hal::Operation& operation, absl::Span<const hal::HostPiece> pieces) {
  const size_t total = hal::TotalOf(pieces);
  if (total <= kFewBytes / kernels::SizeOf(operation.dtype)) return AllReduceFew(operation, pieces);
  const Share mine = ShareOf(total, peers_.size(), self_);
  for (size_t n = 1; n < peers_.size(); ++n) {
    Peer& peer = peers_[After(n)];
    const Share theirs = ShareOf(total, peers_.size(), After(n));
    peer.out = {At(pieces, 0, theirs.begin), theirs.end - theirs.begin};
    peer.in = {At(pieces, 0, mine.begin), mine.end - mine.begin};
  }
  Range own = {At(pieces, 0, mine.begin), mine.end - mine.begin};
  BOWLINE_RETURN_IF_ERROR(Move(operation, &own));

  for (size_t n = 1; n < peers_.size(); ++n) {
    Peer& peer = peers_[After(n)];
    const Share theirs = ShareOf(total, peers_.size(), After(n));
    peer.out = {At(pieces, 0, mine.begin), mine.end - mine.begin, true};
    peer.in = {At(pieces, 0, theirs.begin), theirs.end - theirs.begin};
  }
  return Move(operation, nullptr);
}

absl::Status GlooTransfers::AllReduceFew(const hal::Operation& operation, absl::Span<const hal::HostPiece> pieces) {
  Range own = {At(pieces, 0, 0), hal::TotalOf(pieces)};
  for (size_t n = 1; n < peers_.size(); ++n) peers_[After(n)].out = peers_[After(n)].in = own;
  return Move(operation, &own);
}

absl::Status GlooTransfers::MoveParts(const hal::Operation& operation, absl::Span<const hal::HostPiece> pieces) {
  const collectives::Definition& collective = *operation.collective();
  const size_t total = hal::TotalOf(pieces), bytes = kernels::SizeOf(operation.dtype);
  const auto between = [&](size_t from, size_t to) {
    return collective.move(static_cast<uint32_t>(from), static_cast<uint32_t>(to), static_cast<uint32_t>(peers_.size()),
                           operation.parameter);
  };
  for (size_t n = 1; n < peers_.size(); ++n) {
    Peer& peer = peers_[After(n)];
    const collectives::Move out = between(self_, After(n)), in = between(After(n), self_);
    if (out.any) peer.out = {At(pieces, out.source, 0), total};
    if (in.any) peer.in = {At(pieces, in.destination, 0), total};
  }
  const collectives::Move kept = between(self_, self_);
  if (collective.reduces()) {
    Range own = {At(pieces, kept.source, 0), total};
    return Move(operation, &own);
  }
  for (size_t i = 0; i < pieces.size() && kept.any; ++i) {
    const size_t size = pieces[i].count * bytes;
    CopyBytes(static_cast<uint8_t*>(pieces[i].receive) + kept.destination * size,
              static_cast<const uint8_t*>(pieces[i].send) + kept.source * size, size);
  }
  return Move(operation, nullptr);
}

absl::Status GlooTransfers::Move(const hal::Operation& operation, Range* own) {
  const size_t bytes = kernels::SizeOf(operation.dtype);
  size_t longest = own == nullptr ? 0 : own->elements;
  for (const Peer& peer : peers_) longest = std::max({longest, peer.out.elements, peer.in.elements});
  const size_t elements = chunk_bytes_ / bytes, chunks = (longest + elements - 1) / elements;
  if (chunks > 0) BOWLINE_RETURN_IF_ERROR(Start(bytes, 0, own != nullptr));
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    if (chunk + 1 < chunks) BOWLINE_RETURN_IF_ERROR(Start(bytes, (chunk + 1) % 2, own != nullptr));
    BOWLINE_RETURN_IF_ERROR(Finish(bytes, chunk % 2, own != nullptr));
    if (own != nullptr) Combine(operation, chunk % 2, *own);
  }
  waits_for_ = -1;
  return absl::OkStatus();
}

absl::Status GlooTransfers::Start(size_t element_bytes, size_t slot, bool reduce) {
  const size_t chunk = chunk_bytes_ / element_bytes;
  for (size_t n = 1; n < peers_.size(); ++n) {
    Peer& peer = peers_[After(n)];
    Incoming& in = peer.slots[slot];
    in = {peer.in.cursor, std::min(chunk, peer.in.elements)};
    if (in.elements == 0) continue;
    in.staged = reduce || in.cursor.Together() < in.elements;
    peer.in.cursor.Skip(in.elements);
    peer.in.elements -= in.elements;
    uint8_t* to = in.staged ? Staging(After(n), false, slot) : in.cursor.receive(element_bytes);
    waits_for_ = static_cast<int>(After(n));
    BOWLINE_RETURN_IF_ERROR(mesh_.Receive(Lane::kData, waits_for_, to, in.elements * element_bytes));
  }
  for (size_t n = 1; n < peers_.size(); ++n) {
    Peer& peer = peers_[After(n)];
    Range& out = peer.out;
    const size_t elements = std::min(chunk, out.elements);
    peer.sent[slot] = elements > 0;
    if (elements == 0) continue;
    const auto source = [&] {
      return out.results ? out.cursor.receive(element_bytes) : out.cursor.send(element_bytes);
    };
    const uint8_t* from = source();
    if (out.cursor.Together() < elements) {
      uint8_t* packed = Staging(After(n), true, slot);
      from = packed;
      for (size_t done = 0; done < elements;) {
        const size_t now = std::min(out.cursor.Together(), elements - done);
        CopyBytes(packed + done * element_bytes, source(), now * element_bytes);
        out.cursor.Skip(now);
        done += now;
      }
    } else {
      out.cursor.Skip(elements);
    }
    out.elements -= elements;
    waits_for_ = static_cast<int>(After(n));
    BOWLINE_RETURN_IF_ERROR(mesh_.Send(Lane::kData, waits_for_, from, elements * element_bytes));
  }
  return absl::OkStatus();
}

absl::Status GlooTransfers::Finish(size_t element_bytes, size_t slot, bool reduce) {
  for (size_t n = 1; n < peers_.size(); ++n) {
    Peer& peer = peers_[After(n)];
    Incoming& in = peer.slots[slot];
    waits_for_ = static_cast<int>(After(n));
    if (in.elements > 0) BOWLINE_RETURN_IF_ERROR(mesh_.WaitReceived(Lane::kData, waits_for_));
    if (in.staged && !reduce) {
      const uint8_t* packed = Staging(After(n), false, slot);
      for (size_t done = 0; done < in.elements;) {
        const size_t now = std::min(in.cursor.Together(), in.elements - done);
        CopyBytes(in.cursor.receive(element_bytes), packed + done * element_bytes, now * element_bytes);
        in.cursor.Skip(now);
        done += now;
      }
    }
    if (peer.sent[slot]) BOWLINE_RETURN_IF_ERROR(mesh_.WaitSent(Lane::kData, waits_for_));
  }
  return absl::OkStatus();
}

void GlooTransfers::Combine(const hal::Operation& operation, size_t slot, Range& own) {
  const size_t bytes = kernels::SizeOf(operation.dtype);
  const size_t elements = std::min(chunk_bytes_ / bytes, own.elements);
  for (size_t done = 0; done < elements;) {
    const size_t now = std::min(own.cursor.Together(), elements - done);
    for (size_t r = 0; r < peers_.size(); ++r) {
      sources_[r] = r == self_ ? own.cursor.send(bytes) : Staging(r, false, slot) + done * bytes;
    }
    // The result has one part only.
    const hal::HostPiece& piece = own.cursor.pieces[own.cursor.piece];
    Reduce(sources_, static_cast<uint8_t*>(piece.receive) + own.cursor.offset * bytes, now, operation.dtype,
           operation.op());
    own.cursor.Skip(now);
    done += now;
  }
  own.elements -= elements;
}

void GlooTransfers::Clear() {
  for (Peer& peer : peers_) peer.out = peer.in = {};
}

}  // namespace bowline
