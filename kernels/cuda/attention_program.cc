#include "kernels/cuda/attention_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/programs.h"
#include "kernels/signatures/attention_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels::cuda {
namespace {

std::vector<Parameter> WithSize(std::vector<Parameter> parameters, const AttentionShape& s) {
  for (int64_t value : {s.queries, s.keys, s.heads, s.kv_heads, s.head_dim})
    parameters.push_back(Parameter::I64(value));
  parameters.push_back(Parameter::I32(s.causal ? 1 : 0));
  parameters.push_back(Parameter::I64(s.window));
  parameters.push_back(Parameter::F32(s.scale));
  return parameters;
}

// Every block of `rows` of each of `heads`, `blocks` in all, is a block of the grid.
absl::StatusOr<uint32_t> Blocks(const Signature& signature, const AttentionShape& s, int64_t total, int64_t heads,
                                int64_t rows) {
  const __int128 blocks = static_cast<__int128>(CeilDiv(total, rows)) * heads * s.batch;
  if (blocks > INT32_MAX) {
    return Refuse(signature, "more than 2^31 - 1 blocks of rows, more than a CUDA device launches");
  }
  return static_cast<uint32_t>(blocks);
}

// The functions of attention.cu, whose blocks keep `tensors` times rows x head_dim in shared memory.
absl::StatusOr<DeviceLaunch> General(const Signature& signature, const AttentionShape& s, std::string_view function,
                                     int tensors, int64_t total, int64_t heads, std::vector<Parameter> parameters) {
  constexpr int64_t kShared = 88 << 10;  // bytes that every device since sm_80 has beside the tile
  constexpr int64_t kTileBytes = 32 * 65 * 4;
  constexpr int64_t kRows = 4;  // rows of a warp
  const int64_t warp_bytes = kRows * 4 * tensors * s.head_dim;
  const int64_t warps = std::min<int64_t>(8, kShared / warp_bytes);
  if (warps < 1) {
    return Refuse(signature, absl::StrCat("head_dim is ", s.head_dim, "; a CUDA device takes at most ",
                                          kShared / (kRows * 4 * tensors)));
  }
  const int64_t rows = kRows * warps;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const uint32_t blocks, Blocks(signature, s, total, heads, rows));
  return DeviceLaunch{absl::StrCat("bowline_attention_", Text(function), s.element == DType::kBF16 ? "_bf16" : "_f32"),
                      {blocks, 1, 1},
                      {static_cast<uint32_t>(32 * warps), 1, 1},
                      static_cast<uint32_t>(warps * warp_bytes + kTileBytes),
                      WithSize(std::move(parameters), s)};
}

// Whether attention_forward_mma.cu and attention_backward_mma.cu compute this shape.
bool ByMatrixInstructions(const AttentionShape& s) {
  constexpr int64_t kMostKeys = int64_t{1} << 24, kMostHeads = 1 << 10;  // so that counts of them have 32 bits
  return s.element == DType::kBF16 && (s.head_dim == 64 || s.head_dim == 96 || s.head_dim == 128) && s.scale > 0 &&
         std::max(s.queries, s.keys) <= kMostKeys && s.heads <= kMostHeads;
}

// Their functions, of `rows` rows and `threads` threads a block, whose shared memory is of `shared_rows` rows as
// tensor_core.h has them and some bytes.
absl::StatusOr<DeviceLaunch> Mma(const Signature& signature, const AttentionShape& s, std::string_view function,
                                 int64_t total, int64_t heads, int64_t rows, uint32_t threads, int64_t shared_rows,
                                 int64_t shared_bytes, std::vector<Parameter> parameters) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const uint32_t blocks, Blocks(signature, s, total, heads, rows));
  return DeviceLaunch{absl::StrCat("bowline_attention_", Text(function), "_mma_", s.head_dim),
                      {blocks, 1, 1},
                      {threads, 1, 1},
                      static_cast<uint32_t>(shared_rows * (s.head_dim == 64 ? 128 : 256) + shared_bytes),
                      WithSize(std::move(parameters), s)};
}

std::vector<Parameter> Arguments(std::initializer_list<uint32_t> indices) {
  std::vector<Parameter> parameters;
  for (uint32_t index : indices) parameters.push_back(Parameter::Argument(index));
  return parameters;
}

absl::StatusOr<DeviceLaunch> DeltaLaunch(const Signature& signature, const AttentionShape& s) {
  const int64_t rows = s.batch * s.queries * s.heads;
  constexpr int64_t kRows = 8;  // rows of a block, a warp each
  if (CeilDiv(rows, kRows) > INT32_MAX) return Refuse(signature, "more than 2^34 rows of queries");
  if (ByMatrixInstructions(s)) {
    const int64_t own_rows = s.head_dim == 64 ? 32 : 16;  // rows of a block, eight or sixteen lanes each
    return DeviceLaunch{absl::StrCat("bowline_attention_delta_mma_", s.head_dim),
                        {static_cast<uint32_t>(CeilDiv(rows, own_rows)), 1, 1},
                        {256, 1, 1},
                        0,
                        {Parameter::Argument(3), Parameter::Argument(5), Parameter::Scratch(), Parameter::I64(rows),
                         Parameter::I64(s.queries), Parameter::I64(s.heads)}};
  }
  return DeviceLaunch{absl::StrCat("bowline_attention_delta", s.element == DType::kBF16 ? "_bf16" : "_f32"),
                      {static_cast<uint32_t>(CeilDiv(rows, kRows)), 1, 1},
                      {32 * kRows, 1, 1},
                      0,
                      {Parameter::Argument(3), Parameter::Argument(5), Parameter::Scratch(), Parameter::I64(rows),
                       Parameter::I64(s.queries), Parameter::I64(s.heads), Parameter::I64(s.head_dim)}};
}

// The program with what the library takes of its work, for which there is more workspace, if the caller has it.
KernelProgram WithLibrary(const Signature& signature, const AttentionShape& s, bool backward, KernelProgram program) {
  program.is_attention = true;
  if (!MayBeByLibrary(s, backward)) return program;
  const size_t wanted = backward ? BackwardWorkspace(s, /*in_order=*/true) : kForwardWorkspace;
  const size_t given = std::min({wanted, kMostWorkspace, signature.scratch_limit / 256 * 256});
  program.scratch_bytes = std::max(program.scratch_bytes, given);
  program.attention = LibraryAttention{s, backward};
  return program;
}

}  // namespace

bool MayBeByLibrary(const AttentionShape& s, bool backward) {
  constexpr int64_t kMostRows = (int64_t{1} << 24) - 1;
  return s.element == DType::kBF16 && s.head_dim % 8 == 0 && s.head_dim <= 256 && s.queries <= kMostRows &&
         s.keys <= kMostRows && !(backward && s.queries == 1 && s.keys == 1);
}

size_t BackwardWorkspace(const AttentionShape& s, bool in_order) {
  constexpr int64_t kRows = 128;  // of a block
  constexpr int64_t kRest = 512;  // counters, and alignments
  const auto aligned = [](__int128 bytes) { return (bytes + 255) / 256 * 256; };
  const __int128 heads = static_cast<__int128>(s.batch) * s.heads;
  const int64_t queries = CeilDiv(s.queries, kRows) * kRows, keys = CeilDiv(s.keys, kRows) * kRows;
  __int128 bytes = aligned(4 * heads * s.queries) + kRest;
  if (s.heads != s.kv_heads) bytes += 2 * aligned(2 * heads * s.keys * s.head_dim);
  bytes += in_order ? 2 * heads * queries * keys
                    : aligned(4 * heads * s.queries * s.head_dim) + 4 * heads * queries * s.head_dim;
  constexpr __int128 kNoCardHas = __int128{1} << 60;
  return static_cast<size_t>(std::min(aligned(bytes), kNoCardHas));
}

namespace {

absl::StatusOr<KernelProgram> AttentionForwardProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape s, ParseAttentionForward(signature));
  if (ByMatrixInstructions(s)) {
    constexpr int64_t kKeys = 64;
    const int64_t rows = s.head_dim == 64 ? 64 : 128;
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(
        DeviceLaunch launch, Mma(signature, s, "forward", s.queries, s.heads, rows, static_cast<uint32_t>(2 * rows),
                                 rows + 4 * kKeys, 0, Arguments({0, 1, 2, 3, 4})));
    return WithLibrary(signature, s, false, {0, {std::move(launch)}});
  }
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(DeviceLaunch launch,
                                  General(signature, s, "forward", 2, s.queries, s.heads, Arguments({0, 1, 2, 3, 4})));
  return WithLibrary(signature, s, false, {0, {std::move(launch)}});
}

absl::StatusOr<KernelProgram> AttentionBackwardProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape s, ParseAttentionBackward(signature));
  const size_t scratch = static_cast<size_t>(CeilDiv(4 * s.batch * s.queries * s.heads, 256) * 256);
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(DeviceLaunch delta, DeltaLaunch(signature, s));
  std::vector<Parameter> inputs = Arguments({0, 1, 2, 4, 5});
  inputs.push_back(Parameter::Scratch());
  std::vector<Parameter> with_dq = inputs, with_dkv = inputs;
  with_dq.push_back(Parameter::Argument(6));
  with_dkv.push_back(Parameter::Argument(7));
  with_dkv.push_back(Parameter::Argument(8));
  if (ByMatrixInstructions(s)) {
    constexpr int64_t kRows = 64, kKeys = 64;
    const int64_t queries_at_once = s.head_dim == 96 ? 32 : 64;
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(
        DeviceLaunch keys, Mma(signature, s, "backward_keys", s.keys, s.kv_heads, kRows, 128,
                               2 * kRows + 4 * queries_at_once, 2 * 2 * 4 * queries_at_once, std::move(with_dkv)));
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(DeviceLaunch queries,
                                    Mma(signature, s, "backward_queries", s.queries, s.heads, kRows, 128,
                                        2 * kRows + 4 * kKeys, 0, std::move(with_dq)));
    return WithLibrary(signature, s, true, {scratch, {std::move(delta), std::move(keys), std::move(queries)}});
  }
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(DeviceLaunch keys,
                                  General(signature, s, "backward_keys", 4, s.keys, s.kv_heads, std::move(with_dkv)));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(DeviceLaunch queries,
                                  General(signature, s, "backward_queries", 3, s.queries, s.heads, std::move(with_dq)));
  return WithLibrary(signature, s, true, {scratch, {std::move(delta), std::move(keys), std::move(queries)}});
}

}  // namespace

CudaKernel AttentionBackwardCuda() { return {&AttentionBackwardProgram, {"causal", "scale", "window"}}; }
CudaKernel AttentionForwardCuda() { return {&AttentionForwardProgram, {"causal", "scale", "window"}}; }

}  // namespace bowline::kernels::cuda
