#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/fill_program.h"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/programs.h"
#include "kernels/registry/data_check.h"
#include "kernels/registry/valid_rows.h"
#include "kernels/signatures/embedding_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels::cuda {
namespace {

// Threads of a block along a row of `units` and along rows.
std::pair<int64_t, int64_t> RowThreads(int64_t units) {
  int64_t along = 1;
  while (along < units && along < kBlockThreads) along *= 2;
  return {along, kBlockThreads / along};
}

// No id is beyond more.
Parameter LastRow(const EmbeddingShape& shape) {
  return Parameter::I32(static_cast<int32_t>(std::min<int64_t>(shape.rows - 1, INT32_MAX)));
}

// The count of valid rows behind the parameters of a launch, an address that is 0 where there is none.
std::vector<Parameter> WithValidRows(const EmbeddingShape& shape, std::vector<Parameter> parameters) {
  parameters.push_back(shape.counts == 0 ? Parameter::I64(0) : Parameter::Argument(2));
  parameters.push_back(Parameter::I64(shape.counts));
  parameters.push_back(Parameter::I64(shape.counted_rows));
  return parameters;
}

Parameter OutArgument(const EmbeddingShape& shape) { return Parameter::Argument(static_cast<uint32_t>(OutOf(shape))); }

absl::StatusOr<KernelProgram> GatherProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const EmbeddingShape shape, ParseGatherRows(signature));
  const int64_t bytes = shape.columns * static_cast<int64_t>(SizeOf(shape.table));
  const int64_t unit = bytes % 16 == 0 ? 16 : bytes % 4 == 0 ? 4 : 2;
  const auto [along, rows] = RowThreads(bytes / unit);
  const int64_t blocks = std::min(CeilDiv(shape.tokens, rows), kMaxBlocks);
  return KernelProgram{
      0,
      {{absl::StrCat("bowline_gather_rows_", unit),
        {U32(blocks), 1, 1},
        {U32(along), U32(rows), 1},
        0,
        WithValidRows(shape, {Parameter::Argument(0), Parameter::Argument(1), OutArgument(shape),
                              Parameter::I64(shape.tokens), Parameter::I64(bytes / unit), LastRow(shape)})}}};
}

absl::StatusOr<KernelProgram> ScatterProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const EmbeddingShape shape, ParseScatterAddRows(signature));
  const int64_t tokens = shape.tokens;
  // counts [rows] and their total, which are cleared together; starts [rows]; two orders of tokens.
  uint64_t used = 0;
  const auto take = [&](int64_t words) {
    return Parameter::Scratch(std::exchange(used, used + static_cast<uint64_t>(CeilDiv(words * 4, 256) * 256)));
  };
  const Parameter counts = take(shape.rows + 1), starts = take(shape.rows), ordered = take(tokens),
                  collected = take(tokens),
                  total = Parameter::Scratch(counts.value + static_cast<uint64_t>(shape.rows) * 4);
  // The places at which tokens arrive share memory with `ordered`: no launch reads them once tokens are ordered.
  const Parameter arrivals = ordered, ids = Parameter::Argument(1), token_count = Parameter::I64(tokens),
                  last = LastRow(shape);
  const auto for_tokens = [&](std::string function, std::vector<Parameter> parameters) {
    return DeviceLaunch{std::move(function),
                        {U32(CeilDiv(tokens, kBlockThreads)), 1, 1},
                        {kBlockThreads, 1, 1},
                        0,
                        WithValidRows(shape, std::move(parameters))};
  };
  const int64_t vector = 16 / static_cast<int64_t>(SizeOf(shape.values));
  const bool vectors = shape.columns % vector == 0;
  const int64_t units = vectors ? shape.columns / vector : shape.columns;
  const auto [along, rows] = RowThreads(units);
  return KernelProgram{
      used,
      {FillLaunch(counts, (shape.rows + 1) * 4, 0),
       for_tokens("bowline_scatter_count", {ids, counts, arrivals, token_count, last}),
       for_tokens("bowline_scatter_place", {ids, counts, arrivals, starts, total, token_count, last}),
       for_tokens("bowline_scatter_collect", {ids, starts, arrivals, collected, token_count, last}),
       for_tokens("bowline_scatter_order", {ids, counts, starts, collected, ordered, token_count, last}),
       {absl::StrCat("bowline_scatter_sum_", NameOf(shape.values), "_", NameOf(shape.table), vectors ? "_16" : ""),
        {U32(std::min(CeilDiv(shape.rows, rows), kMaxBlocks)),
         U32(std::min<int64_t>(CeilDiv(units, along), kMaxBlocksY)), 1},
        {U32(along), U32(rows), 1},
        0,
        {Parameter::Argument(0), counts, starts, ordered, OutArgument(shape), Parameter::I64(shape.rows),
         Parameter::I64(shape.columns)}}}};
}

}  // namespace

CudaKernel GatherRowsCuda() { return {&GatherProgram, {kInRange, kLeavesRowsOut}}; }
CudaKernel ScatterAddRowsCuda() { return {&ScatterProgram, {kInRange, kLeavesRowsOut}}; }

}  // namespace bowline::kernels::cuda
