#ifndef BOWLINE_KERNELS_CUDA_WARPGROUP_H_
#define BOWLINE_KERNELS_CUDA_WARPGROUP_H_

// Products of bf16 by four neighbouring warps together, which devices of sm_90a have (wgmma). A warp has 16 of the 64
// rows of A and of C, in the registers where tensor_core.h says; B lies in shared memory for all of them, as
// SharedPanels has it. They run apart from the warps: StartProducts, products, CommitProducts, and WaitForProducts
// before C is used, A's registers change or B is overwritten. Where kWarpgroups is false none of them is there.

#include "kernels/cuda/tensor_core.h"

namespace bowline::device {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool kWarpgroups = true;
#else
constexpr bool kWarpgroups = false;
#endif

// The hardware's descriptor of a matrix of SharedPanels: its address, and the distances between its groups of eight
// rows and between its panels.
using MatrixDescriptor = uint64_t;

#if defined(__CUDACC__)

BOWLINE_DEVICE MatrixDescriptor DescribeMatrix(SharedAddress at, int panel_bytes) {
  constexpr uint64_t kSwizzled = uint64_t{1} << 62, kGroupBytes = 1024;
  return kSwizzled | (kGroupBytes >> 4) << 32 | static_cast<uint64_t>(panel_bytes >> 4) << 16 |
         static_cast<uint64_t>((at.at & 0x3ffff) >> 4);
}

// Shared memory that the thread wrote, copies that it waited for among them, becomes visible to products after the next
// barrier.
BOWLINE_DEVICE void ShowToProducts() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
BOWLINE_DEVICE void StartProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
BOWLINE_DEVICE void CommitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most kPending of the groups that were committed still run.
template <int kPending>
BOWLINE_DEVICE void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// The compiler moves no use of these values to before this call.
template <int kTiles>
BOWLINE_DEVICE void Settle(float (&values)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(values[n][i])::"memory");
  }
}

// c = a b, or c += a b if `add`. Rows of B are elements along panels, or, transposed, rows of shared memory.
template <bool kTransposed, int kTiles>
BOWLINE_DEVICE void MultiplyTogether(float (&c)[kTiles][4], const uint32_t (&a)[4], MatrixDescriptor b, bool add) {
  static_assert(kTiles == 4 || kTiles == 8 || kTiles == 12 || kTiles == 16);
  const int32_t sum = add ? 1 : 0;
  if constexpr (kTiles == 4) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
        "}, {%16, %17, %18, %19}, %20, p, 1, 1, %22;\n}"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
          "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
          "+f"(c[3][2]), "+f"(c[3][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(sum), "n"(kTransposed ? 1 : 0));
  } else if constexpr (kTiles == 8) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
        "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, {%32, %33, %34, %35}, %36, p, 1, 1, %38;\n}"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
          "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
          "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]),
          "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),
          "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(sum), "n"(kTransposed ? 1 : 0));
  } else if constexpr (kTiles == 12) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %53, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
        "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47"
        "}, {%48, %49, %50, %51}, %52, p, 1, 1, %54;\n}"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
          "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
          "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]),
          "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),
          "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]),
          "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]),
          "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(sum), "n"(kTransposed ? 1 : 0));
  } else {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
        "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, "
        "%59, %60, %61, %62, %63"
        "}, {%64, %65, %66, %67}, %68, p, 1, 1, %70;\n}"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
          "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
          "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]),
          "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),
          "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]),
          "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]),
          "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]),
          "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]),
          "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]),
          "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(sum), "n"(kTransposed ? 1 : 0));
  }
}

// The same where A too lies in shared memory, elements along panels.
template <bool kTransposed, int kTiles>
BOWLINE_DEVICE void MultiplyTogether(float (&c)[kTiles][4], MatrixDescriptor a, MatrixDescriptor b, bool add) {
  static_assert(kTiles == 4 || kTiles == 8 || kTiles == 12 || kTiles == 16);
  const int32_t sum = add ? 1 : 0;
  if constexpr (kTiles == 4) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
        "}, %16, %17, p, 1, 1, 0, %19;\n}"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
          "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
          "+f"(c[3][2]), "+f"(c[3][3])
        : "l"(a), "l"(b), "r"(sum), "n"(kTransposed ? 1 : 0));
  } else if constexpr (kTiles == 8) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
        "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, %32, %33, p, 1, 1, 0, %35;\n}"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
          "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
          "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]),
          "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),
          "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])
        : "l"(a), "l"(b), "r"(sum), "n"(kTransposed ? 1 : 0));
  } else if constexpr (kTiles == 12) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %50, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
        "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47"
        "}, %48, %49, p, 1, 1, 0, %51;\n}"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
          "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
          "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]),
          "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),
          "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]),
          "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]),
          "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3])
        : "l"(a), "l"(b), "r"(sum), "n"(kTransposed ? 1 : 0));
  } else {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
        "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, "
        "%59, %60, %61, %62, %63"
        "}, %64, %65, p, 1, 1, 0, %67;\n}"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]),
          "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]),
          "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]),
          "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]),
          "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]),
          "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]),
          "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]),
          "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]),
          "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]),
          "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])
        : "l"(a), "l"(b), "r"(sum), "n"(kTransposed ? 1 : 0));
  }
}

#else

MatrixDescriptor DescribeMatrix(SharedAddress at, int panel_bytes);
void ShowToProducts();
void StartProducts();
void CommitProducts();
template <int kPending>
void WaitForProducts();
template <int kTiles>
void Settle(float (&values)[kTiles][4]);
template <bool kTransposed, int kTiles>
void MultiplyTogether(float (&c)[kTiles][4], const uint32_t (&a)[4], MatrixDescriptor b, bool add);
template <bool kTransposed, int kTiles>
void MultiplyTogether(float (&c)[kTiles][4], MatrixDescriptor a, MatrixDescriptor b, bool add);

#endif

// [kRows][kDim] of bf16 in shared memory, at a multiple of 1024 bytes, in panels of 64 elements of all rows. Chunks of
// 16 bytes change places within the 128 bytes of a row of a panel, as in SharedRows.
template <int kDim, int kRows>
struct SharedPanels {
  static_assert(kDim % 16 == 0 && kRows % 8 == 0);
  static constexpr int kChunks = kDim / 8, kPanelBytes = kRows * 128, kBytes = (kDim + 63) / 64 * kPanelBytes;
  SharedAddress at;

  BOWLINE_DEVICE SharedAddress Chunk(int row, int chunk) const {
    return (at + (chunk / 8 * kPanelBytes + row * 128 + row % 8 * 16)) ^ (chunk % 8 * 16);
  }

  // Starts to read kRows rows from `first` on, zeros from `total` on, by all kThreads of the block.
  template <int kThreads>
  BOWLINE_DEVICE void Read(const Bf16* from, int64_t stride, int32_t first, int32_t total) const {
    constexpr int kAll = kRows * kChunks, kRowsAtOnce = kThreads / kChunks;
    if constexpr (kThreads % kChunks == 0 && kRowsAtOnce % 8 == 0 && kRows % kRowsAtOnce == 0) {
      // A thread's chunks are one below the other.
      const int row = static_cast<int>(threadIdx.x) / kChunks, chunk = static_cast<int>(threadIdx.x) % kChunks;
      const Bf16* next = from + (first + row) * stride + chunk * 8;
      const SharedAddress to = Chunk(row, chunk);
#pragma unroll
      for (int n = 0; n < kRows / kRowsAtOnce; ++n, next += kRowsAtOnce * stride) {
        const bool inside = first + row + n * kRowsAtOnce < total;
        CopyAsync16(to + n * (kRowsAtOnce * 128), inside ? next : from, inside);
      }
    } else {
#pragma unroll
      for (int n = 0; n < (kAll + kThreads - 1) / kThreads; ++n) {
        const int i = n * kThreads + static_cast<int>(threadIdx.x), row = i / kChunks, chunk = i % kChunks;
        if (kAll % kThreads != 0 && i >= kAll) break;
        const bool inside = first + row < total;
        CopyAsync16(Chunk(row, chunk), from + (inside ? (first + row) * stride : 0) + chunk * 8, inside);
      }
    }
  }

  // A of rows [row, row + 16) and elements [16 k, 16 k + 16).
  BOWLINE_DEVICE void LoadA(uint32_t (&a)[4], int row, int k, int lane) const {
    LoadMatrices(a, (Chunk(row + lane % 16, lane / 16) + k / 4 * kPanelBytes) ^ (k % 4 * 32));
  }
  // B, whose columns are rows [row, row + 16) and whose rows elements [16 k, 16 k + 16): two words for each eight.
  BOWLINE_DEVICE void LoadB(uint32_t (&b)[4], int row, int k, int lane) const {
    LoadMatrices(b, (Chunk(row + lane / 16 * 8 + lane % 8, lane / 8 % 2) + k / 4 * kPanelBytes) ^ (k % 4 * 32));
  }
  // B, whose rows are rows [row, row + 16) and whose columns elements [16 n, 16 n + 16): two words for each eight.
  BOWLINE_DEVICE void LoadTransposedB(uint32_t (&b)[4], int row, int n, int lane) const {
    LoadTransposedMatrices(b, (Chunk(row + lane % 16, lane / 16) + n / 4 * kPanelBytes) ^ (n % 4 * 32));
  }

  // The descriptor of rows from `row` on, a multiple of 8, and elements [16 k, 16 k + 16), for an A or a B that is not
  // transposed.
  BOWLINE_DEVICE MatrixDescriptor Describe(int row, int k) const {
    return DescribeMatrix(at + (k / 4 * kPanelBytes + row * 128 + k % 4 * 32), kPanelBytes);
  }
  // The descriptor of rows [row, row + 16), where `row` is a multiple of 8, and all elements, for a B that is
  // transposed.
  BOWLINE_DEVICE MatrixDescriptor DescribeTransposed(int row) const {
    return DescribeMatrix(at + row * 128, kPanelBytes);
  }

  // Writes C [16][kDim], times a factor for its upper and lower rows, to rows [row, row + 16), and those below `total`
  // on to `to`, whose first row is `first`. Of one warp, which alone uses these rows.
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

// Two neighbouring tiles of C, rounded, as an A.
BOWLINE_DEVICE void PackA(uint32_t (&a)[4], const float (&left)[4], const float (&right)[4]) {
  a[0] = PackBf16(left[0], left[1]);
  a[1] = PackBf16(left[2], left[3]);
  a[2] = PackBf16(right[0], right[1]);
  a[3] = PackBf16(right[2], right[3]);
}

}  // namespace bowline::device

#endif  // BOWLINE_KERNELS_CUDA_WARPGROUP_H_
