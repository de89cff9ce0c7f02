#include <algorithm>
#include <cstring>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/fill/stream.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/cpu/scatter_scratch.h"
#include "kernels/signatures/embedding_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

// Tokens are first chained by row. Runs of rows without tokens, nearly all of a vocabulary, are then cleared.
// Each element of the other rows is summed in registers, in the order of tokens whatever the number of threads, and
// written once; work on them is divided by blocks of columns before rows, so that a row that many tokens share is
// spread over threads.
template <typename Update, typename Result>
class ScatterAddRows : public Kernel {
 public:
  ScatterAddRows(const EmbeddingShape& shape, int threads)
      : shape_(shape),
        clear_loop_(threads),
        sum_loop_(threads),
        stream_(static_cast<size_t>(shape.rows * shape.columns) * sizeof(Result) >= kStreamBytes
                    ? &BOWLINE_SELECT_ISA(kStream)
                    : nullptr) {}

  size_t ScratchBytes() const override { return ScatterScratchBytes(shape_); }

  void Run(absl::Span<void* const> arguments, void* scratch) const override {
    const Update* updates = static_cast<const Update*>(arguments[0]);
    Result* out = static_cast<Result*>(arguments[OutOf(shape_)]);
    const int64_t tokens = ValidTokens(shape_, static_cast<const int32_t*>(arguments[2]));
    int32_t* first = static_cast<int32_t*>(scratch);
    const Chains chains{first, first + shape_.rows, first + shape_.rows + shape_.tokens};
    const int64_t used = ChainTokens(static_cast<const int32_t*>(arguments[1]), tokens, chains);
    const double row_nanoseconds = 0.05 * sizeof(Result) * static_cast<double>(shape_.columns);
    clear_loop_.Run(shape_.rows, row_nanoseconds,
                    [&](int64_t begin, int64_t end) { ClearUnused(chains, begin, end, out); });
    if (used == 0) return;
    const int64_t blocks = (shape_.columns + kBlock - 1) / kBlock;
    const double tokens_per_row = static_cast<double>(tokens) / static_cast<double>(used);
    const double unit_nanoseconds = 0.2 * static_cast<double>(std::min(kBlock, shape_.columns)) * tokens_per_row;
    sum_loop_.Run(blocks * used, unit_nanoseconds, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t first_column = unit / used * kBlock;
        SumRow(chains, chains.used[unit % used], first_column, std::min(first_column + kBlock, shape_.columns), updates,
               out);
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 512;  // columns
  static constexpr int64_t kGroup = 32;   // columns that are summed at a time, in registers

  struct Chains {
    int32_t* first;  // [rows] first token of the row, or -1
    int32_t* next;   // [tokens] next token of the same row, or -1
    int32_t* used;   // rows that have tokens
  };

  // Returns the number of rows that have tokens.
  int64_t ChainTokens(const int32_t* ids, int64_t tokens, const Chains& chains) const {
    std::memset(chains.first, 0xFF, static_cast<size_t>(shape_.rows) * sizeof(int32_t));
    int64_t used = 0;
    for (int64_t token = tokens - 1; token >= 0; --token) {
      const auto row = static_cast<int32_t>(RowOf(shape_, ids[token]));
      int32_t& first = chains.first[row];
      if (first < 0) chains.used[used++] = row;
      chains.next[token] = first;
      first = static_cast<int32_t>(token);
    }
    return used;
  }

  void ClearUnused(const Chains& chains, int64_t begin, int64_t end, Result* out) const {
    while (begin < end) {
      int64_t stop = begin;
      while (stop < end && chains.first[stop] < 0) ++stop;
      Clear(out + begin * shape_.columns, static_cast<size_t>((stop - begin) * shape_.columns) * sizeof(Result));
      begin = stop + 1;
    }
  }

  void Clear(void* out, size_t bytes) const {
    char* to = static_cast<char*>(out);
    if (stream_ != nullptr) {
      const size_t head = std::min((kStreamLine - reinterpret_cast<uintptr_t>(to) % kStreamLine) % kStreamLine, bytes);
      const size_t whole = (bytes - head) / kStreamLine * kStreamLine;
      std::memset(to, 0, head);
      stream_->fill(to + head, whole, 0);
      to += head + whole;
      bytes -= head + whole;
    }
    std::memset(to, 0, bytes);
  }

  void SumRow(const Chains& chains, int64_t row, int64_t column, int64_t end, const Update* updates,
              Result* out) const {
    const int32_t first = chains.first[row];
    out += row * shape_.columns;
    for (; column + kGroup <= end; column += kGroup) Sum(first, chains.next, updates + column, kGroup, out + column);
    if (column < end) Sum(first, chains.next, updates + column, end - column, out + column);
  }

  // Inlined so that the usual width is a constant.
  [[gnu::always_inline]] void Sum(int32_t token, const int32_t* next, const Update* updates, int64_t width,
                                  Result* out) const {
    float sums[kGroup] = {};
    for (; token >= 0; token = next[token]) {
      const Update* from = updates + token * shape_.columns;
      for (int64_t i = 0; i < width; ++i) sums[i] += Widen(from[i]);
    }
    for (int64_t i = 0; i < width; ++i) out[i] = Narrow<Result>(sums[i]);
  }

  EmbeddingShape shape_;
  ParallelLoop clear_loop_, sum_loop_;
  const StreamTable* stream_;  // null: not streamed
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const EmbeddingShape shape, ParseScatterAddRows(signature));
  if (shape.values == DType::kF32) return std::make_unique<ScatterAddRows<float, float>>(shape, signature.threads);
  if (shape.table == DType::kF32) return std::make_unique<ScatterAddRows<Bf16, float>>(shape, signature.threads);
  return std::make_unique<ScatterAddRows<Bf16, Bf16>>(shape, signature.threads);
}

}  // namespace

KernelDefinition ScatterAddRowsDefinition() {
  return {
      "scatter_add_rows",
      "out[v, :] = sum in f32 over n with ids[n...] == v, or nearest to it where there is no such row, in order of "
      "n, of updates[n..., :]; updates [N..., D...] "
      "f32 or bf16, ids [N...] i32, out [V, D...] f32, or bf16 if updates are; int leaves_rows_out, for a count [C] "
      "i32 in front of out, of whose last element many rows, the first dimension of ids, are added: the others are "
      "not read; same bits for every number of threads",
      &Create};
}

}  // namespace bowline::kernels
