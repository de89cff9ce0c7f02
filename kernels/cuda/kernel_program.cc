#include "kernels/cuda/kernel_program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cuda/attention_program.h"
#include "kernels/cuda/matmul_program.h"
#include "kernels/registry/data_check.h"
#include "kernels/registry/product_epilogue.h"
#include "kernels/registry/valid_rows.h"
#include "kernels/signatures/check_signature.h"
#include "kernels/signatures/embedding_signature.h"
#include "kernels/signatures/grouped_signature.h"
#include "kernels/signatures/random_signature.h"
#include "kernels/signatures/signature_check.h"
#include "kernels/signatures/simple_signatures.h"
#include "types/computed_types.h"

namespace bowline::kernels::cuda {
namespace {

using Program = absl::StatusOr<KernelProgram>;

constexpr int64_t kThreads = 256;
constexpr int64_t kMaxBlocks = INT32_MAX;
// The most blocks of a function whose threads go on to further elements: enough to fill any device many times.
constexpr int64_t kManyBlocks = int64_t{1} << 20;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
uint32_t U32(int64_t value) { return static_cast<uint32_t>(value); }
size_t Aligned(int64_t bytes) { return static_cast<size_t>(CeilDiv(bytes, 256) * 256); }

// The upper half of the f32, rounded to nearest even; a NaN stays one.
uint32_t RoundedToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::isnan(value) ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

DeviceLaunch Fill(Parameter out, int64_t bytes, uint32_t word) {
  const int64_t blocks = std::clamp<int64_t>(CeilDiv(bytes, 16 * kThreads), 1, kManyBlocks);
  return {"bowline_fill",
          {U32(blocks), 1, 1},
          {kThreads, 1, 1},
          0,
          {out, Parameter::I64(bytes), Parameter::I32(static_cast<int32_t>(word))}};
}

Program FillProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const FillShape shape, ParseFill(signature));
  uint32_t word;
  if (shape.element == DType::kI32) {
    word = static_cast<uint32_t>(static_cast<int32_t>(shape.value));
  } else if (shape.element == DType::kF32) {
    word = std::bit_cast<uint32_t>(static_cast<float>(shape.value));
  } else {
    word = RoundedToBf16(static_cast<float>(shape.value)) * 0x10001u;
  }
  return KernelProgram{0,
                       {Fill(Parameter::Argument(0), shape.count * static_cast<int64_t>(SizeOf(shape.element)), word)}};
}

// Threads of a block along a row of `units` and along rows.
std::pair<int64_t, int64_t> RowThreads(int64_t units) {
  int64_t along = 1;
  while (along < units && along < kThreads) along *= 2;
  return {along, kThreads / along};
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

Program GatherProgram(const Signature& signature) {
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

Program ScatterProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const EmbeddingShape shape, ParseScatterAddRows(signature));
  const int64_t tokens = shape.tokens;
  // counts [rows] and their total, which are cleared together; starts [rows]; two orders of tokens.
  uint64_t used = 0;
  const auto take = [&](int64_t words) { return Parameter::Scratch(std::exchange(used, used + Aligned(words * 4))); };
  const Parameter counts = take(shape.rows + 1), starts = take(shape.rows), ordered = take(tokens),
                  collected = take(tokens),
                  total = Parameter::Scratch(counts.value + static_cast<uint64_t>(shape.rows) * 4);
  // The places at which tokens arrive share memory with `ordered`: no launch reads them once tokens are ordered.
  const Parameter arrivals = ordered, ids = Parameter::Argument(1), token_count = Parameter::I64(tokens),
                  last = LastRow(shape);
  const auto for_tokens = [&](std::string function, std::vector<Parameter> parameters) {
    return DeviceLaunch{std::move(function),
                        {U32(CeilDiv(tokens, kThreads)), 1, 1},
                        {kThreads, 1, 1},
                        0,
                        WithValidRows(shape, std::move(parameters))};
  };
  const int64_t vector = 16 / static_cast<int64_t>(SizeOf(shape.values));
  const bool vectors = shape.columns % vector == 0;
  const int64_t units = vectors ? shape.columns / vector : shape.columns;
  const auto [along, rows] = RowThreads(units);
  return KernelProgram{
      used,
      {Fill(counts, (shape.rows + 1) * 4, 0),
       for_tokens("bowline_scatter_count", {ids, counts, arrivals, token_count, last}),
       for_tokens("bowline_scatter_place", {ids, counts, arrivals, starts, total, token_count, last}),
       for_tokens("bowline_scatter_collect", {ids, starts, arrivals, collected, token_count, last}),
       for_tokens("bowline_scatter_order", {ids, counts, starts, collected, ordered, token_count, last}),
       {absl::StrCat("bowline_scatter_sum_", NameOf(shape.values), "_", NameOf(shape.table), vectors ? "_16" : ""),
        {U32(std::min(CeilDiv(shape.rows, rows), kMaxBlocks)), U32(std::min<int64_t>(CeilDiv(units, along), 65535)), 1},
        {U32(along), U32(rows), 1},
        0,
        {Parameter::Argument(0), counts, starts, ordered, OutArgument(shape), Parameter::I64(shape.rows),
         Parameter::I64(shape.columns)}}}};
}

Program RopeProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const RopeAnglesShape shape, ParseRopeAngles(signature));
  // Sines are computed for angles below 2^49 (trigonometry.h), of positions below 2^31.
  if (shape.theta < 0x1p-18) {
    return Refuse(signature,
                  absl::StrCat("attribute 'theta' is ", shape.theta, "; a CUDA device needs at least 2^-18"));
  }
  constexpr int64_t kAlong = 32, kRows = kThreads / kAlong;
  return KernelProgram{0,
                       {{absl::StrCat("bowline_rope_angles_", NameOf(shape.element)),
                         {U32(std::min(CeilDiv(shape.half, kAlong), kMaxBlocks)),
                          U32(std::min<int64_t>(CeilDiv(shape.positions, kRows), 65535)), 1},
                         {kAlong, kRows, 1},
                         0,
                         {Parameter::Argument(0), Parameter::Argument(1), Parameter::Argument(2),
                          Parameter::I64(shape.positions), Parameter::I64(shape.half), Parameter::F64(shape.theta),
                          Parameter::F64(shape.rate), Parameter::F64(shape.slope), Parameter::F64(shape.offset)}}}};
}

struct Dimension {
  int64_t extent = 1, global = 1, offset = 0;
  int operand = -1;

  bool whole() const { return operand < 0 && offset == 0 && extent == global; }
};

// The shard's dimensions, where those that lie whole within the one before are joined to it: each index of the joined
// one is an index of both.
std::vector<Dimension> JoinedDimensions(const ShardShape& shard) {
  std::vector<Dimension> joined;
  for (size_t d = 0; d < shard.shape.size(); ++d) {
    const Dimension own = {shard.shape[d], shard.global_shape[d], shard.offsets[d], shard.operands[d]};
    if (!joined.empty() && own.whole()) {
      joined.back().extent *= own.extent;
      joined.back().global *= own.global;
      joined.back().offset *= own.extent;
    } else if (!joined.empty() && joined.back().whole() && joined.back().extent == 1) {
      joined.back() = own;
    } else {
      joined.push_back(own);
    }
  }
  return joined;
}

Program RandomProgram(const Signature& signature, const std::string& function, absl::StatusOr<RandomSpec> parsed) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const RandomSpec spec, std::move(parsed));
  constexpr size_t kDimensions = 4;  // that the device function takes
  std::vector<Dimension> dimensions = JoinedDimensions(spec.shard);
  if (dimensions.size() > kDimensions) {
    return Refuse(signature, absl::StrCat("the tensor is divided along dimensions in ", dimensions.size(),
                                          " places; a CUDA device can have at most ", kDimensions));
  }
  dimensions.insert(dimensions.begin(), kDimensions - dimensions.size(), Dimension());
  std::vector<Parameter> parameters = {Parameter::I32(static_cast<int32_t>(spec.key[0])),
                                       Parameter::I32(static_cast<int32_t>(spec.key[1])),
                                       Parameter::F64(spec.scaling.bias),
                                       Parameter::F64(spec.scaling.gain),
                                       Parameter::F32(spec.scaling.limit),
                                       Parameter::F32(spec.scaling.below_limit)};
  for (const Dimension& d : dimensions) {
    for (int64_t value : {d.extent, d.global, d.offset}) parameters.push_back(Parameter::I64(value));
    parameters.push_back(d.operand < 0 ? Parameter::I64(0) : Parameter::Argument(U32(d.operand)));
  }
  const int64_t rows = dimensions[0].extent * dimensions[1].extent * dimensions[2].extent;
  const int64_t units = CeilDiv(dimensions[3].extent + 3, 4);  // a row may begin in the middle of a block
  parameters.push_back(Parameter::I64(rows));
  parameters.push_back(Parameter::I64(units));
  parameters.push_back(Parameter::Argument(U32(static_cast<int64_t>(signature.arguments.size()) - 1)));
  const int64_t blocks = std::min(CeilDiv(rows * units, kThreads), kManyBlocks);
  return KernelProgram{0,
                       {{absl::StrCat(function, "_", NameOf(spec.element)),
                         {U32(blocks), 1, 1},
                         {kThreads, 1, 1},
                         0,
                         std::move(parameters)}}};
}

Program NormalProgram(const Signature& signature) {
  return RandomProgram(signature, "bowline_random_normal", ParseRandomNormal(signature));
}
Program UniformProgram(const Signature& signature) {
  return RandomProgram(signature, "bowline_random_uniform", ParseRandomUniform(signature));
}

// The tiles of grouped.cu and of grouped_mma.cu, which takes bf16 in rows of multiples of 16 bytes.
struct GroupedTiles {
  int64_t side;
  uint32_t shared_bytes;
  bool mma;

  GroupedTiles(DType operands, int64_t columns, int64_t other_columns) {
    mma = operands == DType::kBF16 && columns % 8 == 0 && other_columns % 8 == 0;
    side = mma ? 128 : 64;
    shared_bytes = mma ? 2 * 2 * 128 * 64 * 2 : 2 * 16 * (64 + 4) * 4;
  }

  absl::StatusOr<DeviceLaunch> Launch(const Signature& signature, std::string function, int64_t matrices,
                                      int64_t row_blocks, int64_t columns, std::initializer_list<int64_t> sizes) const {
    const __int128 blocks = static_cast<__int128>(matrices) * row_blocks * CeilDiv(columns, side);
    if (blocks > kMaxBlocks) {
      return Refuse(signature, absl::StrCat("the result has more than 2^31 - 1 tiles of ", side, " x ", side,
                                            ", more than a CUDA device launches"));
    }
    DeviceLaunch launch = {
        std::move(function), {U32(static_cast<int64_t>(blocks)), 1, 1}, {kThreads, 1, 1}, shared_bytes};
    for (uint32_t i = 0; i < 4; ++i) launch.parameters.push_back(Parameter::Argument(i));
    for (int64_t size : sizes) launch.parameters.push_back(Parameter::I64(size));
    return launch;
  }
};

Program GroupedMatmulProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const GroupedMatmulShape shape, ParseGroupedMatmul(signature));
  const GroupedTiles tiles(shape.operands, shape.k, shape.n);
  const std::string function =
      tiles.mma
          ? absl::StrCat("bowline_grouped_matmul", shape.transposed ? "_transposed" : "", "_mma_", NameOf(shape.result))
          : absl::StrCat("bowline_grouped_matmul_", NameOf(shape.operands), "_", NameOf(shape.result));
  // Each group, and the rows before and behind them, may leave a block of rows unfilled. Blocks of rows that are left
  // out are launched all the same, as only the device knows which these are.
  const int64_t row_blocks = CeilDiv(shape.rows, tiles.side) + shape.groups + 2;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(DeviceLaunch launch, tiles.Launch(signature, function, 1, row_blocks, shape.n,
                                                                    {shape.rows, shape.k, shape.n, shape.groups}));
  if (!tiles.mma) launch.parameters.push_back(Parameter::I32(shape.transposed ? 1 : 0));
  launch.parameters.push_back(Parameter::I32(shape.leaves_rows_out ? 1 : 0));
  return KernelProgram{0, {std::move(launch)}};
}

Program GroupedOuterProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const GroupedOuterShape shape, ParseGroupedOuter(signature));
  const GroupedTiles tiles(shape.operands, shape.m, shape.n);
  const std::string function =
      tiles.mma ? absl::StrCat("bowline_grouped_outer_mma_", NameOf(shape.result))
                : absl::StrCat("bowline_grouped_outer_", NameOf(shape.operands), "_", NameOf(shape.result));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(
      DeviceLaunch launch, tiles.Launch(signature, function, shape.matrices, CeilDiv(shape.m, tiles.side), shape.n,
                                        {shape.rows, shape.m, shape.n, shape.groups}));
  return KernelProgram{0, {std::move(launch)}};
}

Program CheckProgram(std::string function, absl::StatusOr<DataCheckShape> parsed) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const DataCheckShape shape, std::move(parsed));
  return KernelProgram{
      0,
      {{std::move(function),
        {1, 1, 1},
        {kThreads, 1, 1},
        kThreads * sizeof(int32_t),
        {Parameter::Argument(0), Parameter::Argument(1), Parameter::I64(shape.count), Parameter::I32(shape.rows)}}}};
}
Program CheckOffsetsProgram(const Signature& signature) {
  return CheckProgram("bowline_check_offsets", ParseCheckOffsets(signature));
}
Program CheckIdsProgram(const Signature& signature) {
  return CheckProgram("bowline_check_ids", ParseCheckIds(signature));
}

}  // namespace

Parameter Parameter::F32(float value) { return {Kind::kConstant, 0, 4, std::bit_cast<uint32_t>(value)}; }
Parameter Parameter::F64(double value) { return {Kind::kConstant, 0, 8, std::bit_cast<uint64_t>(value)}; }

absl::StatusOr<KernelProgram> ProgramOf(const Signature& signature) {
  struct Known {
    Program (*program)(const Signature&);
    // Which the program hands to its functions, or refuses. One that a signature gained since then is none of them: it
    // would be read off the signature, and no kernel would compute it.
    std::vector<std::string_view> attributes;
  };
  static const auto* programs = new std::map<std::string, Known, std::less<>>{
      {"attention_backward", {&AttentionBackwardProgram, {"causal", "scale", "window"}}},
      {"attention_forward", {&AttentionForwardProgram, {"causal", "scale", "window"}}},
      {"check_ids", {&CheckIdsProgram, {"rows"}}},
      {"check_offsets", {&CheckOffsetsProgram, {"rows"}}},
      {"fill", {&FillProgram, {"value"}}},
      {"gather_rows", {&GatherProgram, {kInRange, kLeavesRowsOut}}},
      {"grouped_matmul", {&GroupedMatmulProgram, {"transposed", kLeavesRowsOut}}},
      {"grouped_outer", {&GroupedOuterProgram, {}}},
      {"matmul",
       {&MatmulProgram,
        {"batch", "m", "n", "k", "a_strides", "b_strides", "c_strides", "accumulate", "b_packed", kEpilogue}}},
      {"random_normal",
       {&NormalProgram, {"seed", "key", "mean", "stddev", "global_shape", "offsets", "sharded_dims", "padded"}}},
      {"random_uniform", {&UniformProgram, {"seed", "key", "lo", "hi", "global_shape", "offsets", "sharded_dims"}}},
      {"rope_angles", {&RopeProgram, {"theta", "factor", "original_positions", "low_turns", "high_turns"}}},
      {"scatter_add_rows", {&ScatterProgram, {kInRange, kLeavesRowsOut}}},
  };
  const auto found = programs->find(signature.kernel);
  if (found != programs->end()) {
    if (const Attribute* other = AttributeOutside(signature, found->second.attributes); other != nullptr) {
      return Refuse(signature, absl::StrCat("CUDA devices do not compute attribute '", other->name,
                                            "'; compile for another --target, or without what needs it"));
    }
    for (const TensorSpec& argument : signature.arguments) {
      if (IsComputedIn(argument.dtype) && argument.dtype != DType::kF32 && argument.dtype != DType::kBF16) {
        return Refuse(signature, absl::StrCat("is not computed in ", NameOf(argument.dtype),
                                              " by CUDA devices; compile with --dtype bf16 or f32"));
      }
    }
    return found->second.program(signature);
  }
  return absl::NotFoundError(absl::StrCat(
      "a CUDA device has no kernel '", signature.kernel, "'; it has ",
      absl::StrJoin(*programs, ", ", [](std::string* out, const auto& program) { out->append(program.first); })));
}

}  // namespace bowline::kernels::cuda
