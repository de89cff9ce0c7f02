#ifndef BOWLINE_KERNELS_CUDA_TENSOR_CORE_H_
#define BOWLINE_KERNELS_CUDA_TENSOR_CORE_H_

// Products of bf16 by matrix instructions of a warp, and the loads that feed them. In a warp, lane = 4 g + t:
//
//   A [16][16], four words:  (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), and the element to the right of each
//   B [16][8], two words:    (2t, g), (2t + 8, g), and the element below each
//   C [16][8], four f32:     (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
//
// Two neighbouring C, rounded, are therefore an A.

#include "kernels/cuda/device.h"

namespace bowline::device {

#if defined(__CUDACC__)

// An address in shared memory, of which the hardware needs 32 bits.
struct SharedAddress {
  uint32_t at;
  BOWLINE_DEVICE SharedAddress operator+(int bytes) const { return {at + static_cast<uint32_t>(bytes)}; }
  // Flips the bits `bytes` of the address, which lie within its offset in a row.
  BOWLINE_DEVICE SharedAddress operator^(int bytes) const { return {at ^ static_cast<uint32_t>(bytes)}; }
};
BOWLINE_DEVICE SharedAddress SharedBase() { return {static_cast<uint32_t>(__cvta_generic_to_shared(SharedMemory()))}; }
BOWLINE_DEVICE void LoadPair(float (&to)[2], SharedAddress from) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "r"(from.at) : "memory");
}
BOWLINE_DEVICE Vector<uint32_t, 4> LoadWords(SharedAddress from) {
  Vector<uint32_t, 4> words;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.at[0]), "=r"(words.at[1]), "=r"(words.at[2]), "=r"(words.at[3])
               : "r"(from.at)
               : "memory");
  return words;
}
BOWLINE_DEVICE void StoreWord(SharedAddress to, uint32_t word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(to.at), "r"(word) : "memory");
}

// c += a b
BOWLINE_DEVICE void MultiplyTile(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four matrices of 8 x 8 from shared memory; lane l gives the address of row l % 8 of matrix l / 8, and gets elements
// (g, 2t) and (g, 2t + 1) of each, or, transposed, (2t, g) and (2t + 1, g).
BOWLINE_DEVICE void LoadMatrices(uint32_t (&words)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(row.at)
               : "memory");
}
BOWLINE_DEVICE void LoadTransposedMatrices(uint32_t (&words)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(row.at)
               : "memory");
}

// Starts copies from global to shared memory, zeros if not `inside`.
BOWLINE_DEVICE void CopyAsync16(SharedAddress to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to.at), "l"(from), "r"(inside ? 16 : 0)
               : "memory");
}
BOWLINE_DEVICE void CopyAsync4(SharedAddress to, const void* from, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to.at), "l"(from), "r"(inside ? 4 : 0) : "memory");
}
BOWLINE_DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all copies that this thread started have ended; a barrier makes them visible to other threads.
BOWLINE_DEVICE void WaitForCopies() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

#else

struct SharedAddress {
  unsigned char* at;
  SharedAddress operator+(int bytes) const { return {at + bytes}; }
  SharedAddress operator^(int bytes) const {
    const auto base = reinterpret_cast<uintptr_t>(SharedMemory());
    return {SharedMemory() + ((reinterpret_cast<uintptr_t>(at) - base) ^ static_cast<uintptr_t>(bytes))};
  }
};
inline SharedAddress SharedBase() { return {SharedMemory()}; }
inline void LoadPair(float (&to)[2], SharedAddress from) {
  const auto pair = LoadAligned<Vector<float, 2> >(from.at);
  to[0] = pair.at[0], to[1] = pair.at[1];
}
inline Vector<uint32_t, 4> LoadWords(SharedAddress from) { return LoadAligned<Vector<uint32_t, 4> >(from.at); }
inline void StoreWord(SharedAddress to, uint32_t word) { StoreAligned(to.at, word); }

inline float HalfOf(uint32_t pair, int half) { return FloatOf(half == 0 ? pair << 16 : pair & 0xffff0000u); }

struct EmulatedOperands {
  uint32_t a[4], b[2];
};
inline void MultiplyTile(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const auto lanes = emulator::Exchange(EmulatedOperands{{a[0], a[1], a[2], a[3]}, {b0, b1}});
  const int g = static_cast<int>(emulator::Lane()) / 4, t = static_cast<int>(emulator::Lane()) % 4;
  for (int quarter = 0; quarter < 4; ++quarter) {
    const EmulatedOperands rows = lanes[g * 4 + quarter];
    for (int column = 0; column < 2; ++column) {
      const EmulatedOperands columns = lanes[(2 * t + column) * 4 + quarter];
      for (int lower = 0; lower < 2; ++lower) {  // row g or g + 8
        for (int k = 0; k < 4; ++k) {
          c[2 * lower + column] += HalfOf(rows.a[k / 2 * 2 + lower], k % 2) * HalfOf(columns.b[k / 2], k % 2);
        }
      }
    }
  }
}

inline void EmulateLoad(uint32_t (&words)[4], SharedAddress row, bool transposed) {
  emulator::CheckAligned(row.at, 16);
  const auto rows = emulator::Exchange(row.at);
  const int g = static_cast<int>(emulator::Lane()) / 4, t = static_cast<int>(emulator::Lane()) % 4;
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto element = [&](int i, int j) -> uint32_t {
      return reinterpret_cast<const uint16_t*>(rows[matrix * 8 + i])[j];
    };
    words[matrix] =
        transposed ? element(2 * t, g) | element(2 * t + 1, g) << 16 : element(g, 2 * t) | element(g, 2 * t + 1) << 16;
  }
  // No lane writes values that others still read: instructions of a warp are one after another.
  emulator::Exchange(0);
}
inline void LoadMatrices(uint32_t (&words)[4], SharedAddress row) { EmulateLoad(words, row, false); }
inline void LoadTransposedMatrices(uint32_t (&words)[4], SharedAddress row) { EmulateLoad(words, row, true); }

inline void CopyAsync16(SharedAddress to, const void* from, bool inside) {
  emulator::StartCopy(to.at, from, 16, inside);
}
inline void CopyAsync4(SharedAddress to, const void* from, bool inside) { emulator::StartCopy(to.at, from, 4, inside); }
inline void CommitCopies() { emulator::CommitCopies(); }
inline void WaitForCopies() { emulator::WaitForCopies(0); }

#endif

// A matrix [rows][kDim] of bf16 in shared memory, whose address is a multiple of kRowBytes. A row is divided into
// chunks of 16 bytes, and each row permutes its chunks in another way, so that the same chunk of eight rows lies in
// different banks. kRowBytes is a power of two, so a row may end with chunks that nothing uses.
template <int kDim>
struct SharedRows {
  static_assert(kDim % 16 == 0 && kDim <= 128);
  static constexpr int kChunks = kDim / 8, kRowBytes = kDim <= 64 ? 128 : 256;
  SharedAddress at;

  BOWLINE_DEVICE SharedAddress Chunk(int row, int chunk) const {
    return (at + (row * kRowBytes + row % 8 * 16)) ^ (chunk * 16);
  }

  // Starts to read kRows rows from `first` on, zeros from `total` on, by all kThreads of the block.
  template <int kRows, int kThreads>
  BOWLINE_DEVICE void Read(const Bf16* from, int64_t stride, int32_t first, int32_t total) const {
    constexpr int kAll = kRows * kChunks;
#pragma unroll
    for (int n = 0; n < (kAll + kThreads - 1) / kThreads; ++n) {
      const int i = n * kThreads + static_cast<int>(threadIdx.x), row = i / kChunks, chunk = i % kChunks;
      if (kAll % kThreads != 0 && i >= kAll) break;
      const bool inside = first + row < total;
      CopyAsync16(Chunk(row, chunk), from + (inside ? (first + row) * stride : 0) + chunk * 8, inside);
    }
  }

  // The same of a part of a matrix: rows from `first` on and kDim elements from `column` on, zeros from `total` and
  // from `columns` on, which is a multiple of 8.
  template <int kRows, int kThreads>
  BOWLINE_DEVICE void ReadPart(const Bf16* from, int64_t stride, int64_t first, int64_t total, int64_t column,
                               int64_t columns) const {
    static_assert(kRows * kChunks % kThreads == 0);
#pragma unroll
    for (int n = 0; n < kRows * kChunks / kThreads; ++n) {
      const int i = n * kThreads + static_cast<int>(threadIdx.x), row = i / kChunks, chunk = i % kChunks;
      const bool inside = first + row < total && column + chunk * 8 < columns;
      CopyAsync16(Chunk(row, chunk), from + (inside ? (first + row) * stride + column + chunk * 8 : 0), inside);
    }
  }

  // A of rows [row, row + 16) and elements [16 k, 16 k + 16).
  BOWLINE_DEVICE void LoadA(uint32_t (&a)[4], int row, int k, int lane) const {
    LoadMatrices(a, Chunk(row + lane % 16, lane / 16) ^ (k * 32));
  }
  // A whose columns are rows [row, row + 16) and whose rows elements [16 m, 16 m + 16).
  BOWLINE_DEVICE void LoadTransposedA(uint32_t (&a)[4], int row, int m, int lane) const {
    LoadTransposedMatrices(a, Chunk(row + lane / 16 * 8 + lane % 8, lane / 8 % 2) ^ (m * 32));
  }
  // B, whose columns are rows [row, row + 16) and whose rows elements [16 k, 16 k + 16): two words for each eight.
  BOWLINE_DEVICE void LoadB(uint32_t (&b)[4], int row, int k, int lane) const {
    LoadMatrices(b, Chunk(row + lane / 16 * 8 + lane % 8, lane / 8 % 2) ^ (k * 32));
  }
  // B, whose rows are rows [row, row + 16) and whose columns elements [16 n, 16 n + 16): two words for each eight.
  BOWLINE_DEVICE void LoadTransposedB(uint32_t (&b)[4], int row, int n, int lane) const {
    LoadTransposedMatrices(b, Chunk(row + lane % 16, lane / 16) ^ (n * 32));
  }

  // Writes C [16][kDim], times a factor for its upper and lower rows, to rows [row, row + 16), and those below `total`
  // on to `to`, whose first row is `first`. Called by one warp. No other warp may access these rows.
  BOWLINE_DEVICE void Write(const float (&c)[kDim / 8][4], float upper, float lower, int row, int lane, Bf16* to,
                            int64_t stride, int32_t first, int32_t total) const {
    WarpBarrier();
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      StoreWord(Chunk(row + lane / 4, n) + lane % 4 * 4, PackBf16(c[n][0] * upper, c[n][1] * upper));
      StoreWord(Chunk(row + lane / 4 + 8, n) + lane % 4 * 4, PackBf16(c[n][2] * lower, c[n][3] * lower));
    }
    WarpBarrier();
#pragma unroll
    for (int n = 0; n < 16 * kChunks / 32; ++n) {
      const int i = n * 32 + lane, own = i / kChunks, chunk = i % kChunks;
      if (first + own < total) {
        StoreAligned(to + (first + own) * stride + chunk * 8, LoadWords(Chunk(row + own, chunk)));
      }
    }
  }
};

}  // namespace bowline::device

#endif  // BOWLINE_KERNELS_CUDA_TENSOR_CORE_H_
