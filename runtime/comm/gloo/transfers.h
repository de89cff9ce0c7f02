#ifndef BOWLINE_RUNTIME_COMM_GLOO_TRANSFERS_H_
#define BOWLINE_RUNTIME_COMM_GLOO_TRANSFERS_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "runtime/comm/gloo/mesh.h"
#include "runtime/hal/exchange.h"

namespace bowline {

// A place in pieces laid end to end, of each of which `part` is taken: elements [part * count, (part + 1) * count).
struct PieceCursor {
  absl::Span<const hal::HostPiece> pieces;
  size_t part = 0;
  size_t piece = 0, offset = 0;

  void Skip(size_t elements);
  // The number of contiguous elements from here on.
  size_t Together() const { return piece < pieces.size() ? pieces[piece].count - offset : 0; }
  const uint8_t* send(size_t element_bytes) const;
  uint8_t* receive(size_t element_bytes) const;
};

// One member's share of an operation's data movement, when all members are known to be there with the same counts.
//
// Every two members exchange their data for each other directly, in chunks, two of them under way. Each member computes
// the sums that it needs, over all members in their order. An all-reduce has two exchanges: after the first one each
// member has its share of the sums, and the second one distributes the shares. For a few values every member computes
// all sums. On a network each member sends and receives as many bytes as in a ring, (n-1)/n of the bytes per exchange,
// in one step instead of n-1.
//
// Contiguous elements are sent and received in place; small pieces are packed. The staging memory is at most 16 MiB, or
// 128 KiB per member for more than 129 members.
class GlooTransfers {
 public:
  // Other threads read from `waits_for` the member that this one waits for, -1 for none.
  GlooTransfers(GlooMesh& mesh, std::atomic<int>& waits_for);

  // After an error, waits_for holds the member that caused it.
  absl::Status Run(const hal::Operation& operation, absl::Span<const hal::HostPiece> pieces);

 private:
  // Elements from a cursor on.
  struct Range {
    PieceCursor cursor;
    size_t elements = 0;
    bool results = false;  // the outgoing data is in `receive`
  };
  struct Incoming {
    PieceCursor cursor;
    size_t elements = 0;
    bool staged = false;
  };
  struct Peer {
    Range out, in;
    Incoming slots[2];
    bool sent[2] = {};
    std::unique_ptr<uint8_t[]> staging;  // 2 chunks in, 2 chunks out
  };

  absl::Status AllReduce(const hal::Operation& operation, absl::Span<const hal::HostPiece> pieces);
  absl::Status AllReduceFew(const hal::Operation& operation, absl::Span<const hal::HostPiece> pieces);
  // Any other collective, by its definition.
  absl::Status MoveParts(const hal::Operation& operation, absl::Span<const hal::HostPiece> pieces);

  // Moves every peer's `out` and `in`. With `own`, this member's values, the incoming values are combined with them.
  absl::Status Move(const hal::Operation& operation, Range* own);
  absl::Status Start(size_t element_bytes, size_t slot, bool reduce);
  absl::Status Finish(size_t element_bytes, size_t slot, bool reduce);
  void Combine(const hal::Operation& operation, size_t slot, Range& own);
  void Clear();

  // The n-th after this member, 1 <= n < size, so that not all begin with the same.
  size_t After(size_t n) const { return (self_ + n) % peers_.size(); }
  uint8_t* Staging(size_t peer, bool out, size_t slot) const;

  GlooMesh& mesh_;
  std::atomic<int>& waits_for_;
  const size_t self_;
  size_t chunk_bytes_ = 0;
  std::vector<Peer> peers_;
  std::vector<const void*> sources_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_GLOO_TRANSFERS_H_
