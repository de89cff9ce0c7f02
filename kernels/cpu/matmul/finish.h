#ifndef BOWLINE_KERNELS_CPU_MATMUL_FINISH_H_
#define BOWLINE_KERNELS_CPU_MATMUL_FINISH_H_

// Writes the finished sums of a product to C, which may have elements of 16 bits and any strides, or passes them to an
// epilogue. Only for files that are compiled for an instruction set.

#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/matmul/blocks.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/operand.h"
#include "kernels/cpu/matmul/pack.h"

namespace bowline::kernels::BOWLINE_ISA {

// Loads to[rows][columns] from C, f32 with any strides.
static void LoadC(const GemmShape& shape, const GemmOutput& output, int64_t i0, int64_t j0, int64_t rows,
                  int64_t columns, float* to, int64_t ld) {
  const float* c = static_cast<const float*>(output.c) + i0 * shape.c_m + j0 * shape.c_n;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[i * ld + j] = c[i * shape.c_m + j * shape.c_n];
  }
}

// c[j * stride] = from[j], rounded.
static void StoreF16(const float* from, int64_t columns, uint16_t* c, int64_t stride) {
  int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) {
    const Halves<kLanes> halves = RoundToF16<kLanes>(Load(from + j));
    if (stride == 1) {
      __builtin_memcpy(c + j, &halves, sizeof(halves));
    } else {
      for (int lane = 0; lane < kLanes; ++lane) c[(j + lane) * stride] = halves[lane];
    }
  }
  for (; j < columns; ++j) c[j * stride] = F32ToF16(from[j]);
}

// to[j] = from[j], rounded.
static void StoreBf16(const float* from, int64_t columns, uint16_t* to) {
  int64_t j = 0;
#if defined(__AVX512BF16__)
  for (; j + 2 * kLanes <= columns; j += 2 * kLanes) {
    using Sums = float __attribute__((__vector_size__(64)));
    const auto halves = __builtin_ia32_cvtne2ps2bf16_512((Sums)Load(from + j + kLanes), (Sums)Load(from + j));
    __builtin_memcpy(to + j, &halves, sizeof(halves));
  }
#endif
  for (; j < columns; ++j) to[j] = RoundToBf16(from[j]);
}

// Rows [i0, i0 + rows) and columns [j0, j0 + columns) of a piece of C have these strides and are finished.
static void Finish(const GemmOutput& output, int64_t row_stride, int64_t column_stride, int64_t i0, int64_t j0,
                   int64_t rows, int64_t columns, const float* from, int64_t ld) {
  if (output.kind == GemmResult::kEpilogue) {
    const int64_t m = output.m0 + i0, n = output.n0 + j0;
    output.epilogue(output.arguments, from, ld, m, m + rows, n, n + columns);
    return;
  }
  const int64_t offset = i0 * row_stride + j0 * column_stride;
  for (int64_t i = 0; i < rows; ++i, from += ld) {
    if (output.kind == GemmResult::kF32) {
      float* c = static_cast<float*>(output.c) + offset + i * row_stride;
      if (column_stride == 1) {
        for (int64_t j = 0; j < columns; ++j) c[j] = from[j];
      } else {
        for (int64_t j = 0; j < columns; ++j) c[j * column_stride] = from[j];
      }
    } else if (output.kind == GemmResult::kBf16) {
      uint16_t* c = static_cast<uint16_t*>(output.c) + offset + i * row_stride;
      if (column_stride == 1) {
        StoreBf16(from, columns, c);
      } else {
        for (int64_t j = 0; j < columns; ++j) c[j * column_stride] = RoundToBf16(from[j]);
      }
    } else {
      StoreF16(from, columns, static_cast<uint16_t*>(output.c) + offset + i * row_stride, column_stride);
    }
  }
}

// to[j][i] = from[i][j]
static void Flip(const float* from, int64_t from_ld, int64_t rows, int64_t columns, float* to, int64_t to_ld) {
  const int64_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kLanes * kLanes;
  for (int64_t i = 0; i < whole_rows; i += kLanes) {
    for (int64_t j = 0; j < whole_columns; j += kLanes) {
      Vec block[kLanes];
#pragma clang loop unroll(full)
      for (int k = 0; k < kLanes; ++k) block[k] = Load(from + (i + k) * from_ld + j);
      Transpose<kLanes>(block);
#pragma clang loop unroll(full)
      for (int k = 0; k < kLanes; ++k) Store(to + (j + k) * to_ld + i, block[k]);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) to[j * to_ld + i] = from[i * from_ld + j];
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_FINISH_H_
