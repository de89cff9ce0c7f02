#include "runtime/drivers/cuda/products/gemm_layout.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace bowline {
namespace {

using kernels::cuda::LibraryProduct;

constexpr int64_t kLargestBatch = 65535;  // the largest extent of a grid's last two dimensions

// A matrix with any strides, as an operand or a result.
std::optional<ColumnMajor> LayoutOf(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                                    bool may_transpose) {
  if ((rows == 1 || row_stride == 1) && (columns == 1 || column_stride >= rows)) {
    return ColumnMajor{rows, columns, columns == 1 ? rows : column_stride, 0, false};
  }
  if (may_transpose && (columns == 1 || column_stride == 1) && (rows == 1 || row_stride >= columns)) {
    return ColumnMajor{columns, rows, rows == 1 ? columns : row_stride, 0, true};
  }
  return std::nullopt;
}

// The calls of the library for extents m, n, k, which are those of the product or 1. No loops.
std::optional<GemmCalls> Whole(const LibraryProduct& p, int64_t m, int64_t n, int64_t k) {
  for (const bool first_is_a : {false, true}) {
    const auto a = first_is_a ? LayoutOf(m, k, p.a[1], p.a[2], true) : LayoutOf(k, m, p.a[2], p.a[1], true);
    const auto b = first_is_a ? LayoutOf(k, n, p.b[1], p.b[2], true) : LayoutOf(n, k, p.b[2], p.b[1], true);
    const auto c = first_is_a ? LayoutOf(m, n, p.c[1], p.c[2], false) : LayoutOf(n, m, p.c[2], p.c[1], false);
    if (!a.has_value() || !b.has_value() || !c.has_value()) continue;
    GemmCalls calls;
    calls.m = first_is_a ? m : n;
    calls.n = first_is_a ? n : m;
    calls.k = k;
    calls.first_is_a = first_is_a;
    calls.first = first_is_a ? *a : *b;
    calls.second = first_is_a ? *b : *a;
    calls.result = *c;
    return calls;
  }
  return std::nullopt;
}

void TakeBatch(GemmCalls& calls, const GemmLoop& loop) {
  calls.batch = loop.count;
  calls.first.batch_stride = calls.first_is_a ? loop.a : loop.b;
  calls.second.batch_stride = calls.first_is_a ? loop.b : loop.a;
  calls.result.batch_stride = loop.c;
}

// Rows of C whose batches follow each other are rows of one matrix.
LibraryProduct Merged(LibraryProduct p) {
  if (p.batch > 1 && p.b[0] == 0 && p.a[0] == p.m * p.a[1] && p.c[0] == p.m * p.c[1] && p.m > 1) {
    p.m *= p.batch;
    p.batch = 1;
    p.a[0] = p.c[0] = 0;
  }
  return p;
}

}  // namespace

absl::StatusOr<std::vector<GemmCalls>> GemmCallsOf(const LibraryProduct& product) {
  const LibraryProduct p = Merged(product);
  const bool sum_at_once = p.k == 1 || (p.a[2] != 0 && p.b[1] != 0);
  if (!sum_at_once && p.result == kernels::DType::kBF16) {
    return absl::UnimplementedError(
        "a product with a result in bf16 and an operand that does not change along k: compile with --dtype f32");
  }
  std::optional<GemmCalls> best;
  GemmLoop of_batch;
  for (const auto& [rows_at_once, columns_at_once] :
       {std::pair(true, true), std::pair(false, true), std::pair(true, false), std::pair(false, false)}) {
    std::optional<GemmCalls> calls = Whole(p, rows_at_once ? p.m : 1, columns_at_once ? p.n : 1, sum_at_once ? p.k : 1);
    if (!calls.has_value()) continue;
    calls->loops[0] = {p.batch, p.a[0], p.b[0], p.c[0]};
    if (!rows_at_once) calls->loops[1] = {p.m, p.a[1], 0, p.c[1]};
    if (!columns_at_once) calls->loops[2] = {p.n, 0, p.b[2], p.c[2]};
    if (!sum_at_once) calls->sum = {p.k, p.a[2], p.b[1], 0};
    // The largest of the loops is the library's.
    GemmLoop& largest = *std::max_element(calls->loops.begin(), calls->loops.end(),
                                          [](const GemmLoop& x, const GemmLoop& y) { return x.count < y.count; });
    const GemmLoop taken = std::exchange(largest, GemmLoop());
    if (best.has_value() && best->Count() <= calls->Count()) continue;
    best = calls;
    of_batch = taken;
  }
  // One element at a time is a product of a row and a column, which every stride allows.
  if (!best.has_value()) return absl::InternalError("a product has no form that the library takes");
  std::vector<GemmCalls> all;
  for (int64_t begin = 0; begin < of_batch.count; begin += kLargestBatch) {
    GemmCalls calls = *best;
    GemmLoop part = of_batch;
    part.count = std::min(kLargestBatch, of_batch.count - begin);
    TakeBatch(calls, part);
    calls.a = begin * of_batch.a;
    calls.b = begin * of_batch.b;
    calls.c = begin * of_batch.c;
    all.push_back(calls);
  }
  return all;
}

}  // namespace bowline
