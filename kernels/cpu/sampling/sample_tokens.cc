#include <algorithm>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/cpu/sampling/logits_row.h"
#include "kernels/cpu/sampling/sampling_scratch.h"
#include "kernels/signatures/sampling_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

// The operands of all rows, and the places of their results.
struct Arguments {
  explicit Arguments(absl::Span<void* const> x)
      : logits(static_cast<const float*>(x[0])),
        temperature(static_cast<const float*>(x[1])),
        top_k(static_cast<const int32_t*>(x[2])),
        top_p(static_cast<const float*>(x[3])),
        seeds(static_cast<const uint32_t*>(x[4])),
        positions(static_cast<const int32_t*>(x[5])),
        wanted(static_cast<const int32_t*>(x[6])),
        tokens(static_cast<int32_t*>(x[7])),
        logprobs(static_cast<float*>(x[8])),
        likely(static_cast<int32_t*>(x[9])),
        likely_logprobs(static_cast<float*>(x[10])) {}

  const float *logits, *temperature;
  const int32_t* top_k;
  const float* top_p;
  const uint32_t* seeds;
  const int32_t *positions, *wanted;
  int32_t* tokens;
  float* logprobs;
  int32_t* likely;
  float* likely_logprobs;
};

class SampleTokens : public Kernel {
 public:
  SampleTokens(const SampleTokensShape& shape, int threads) : shape_(shape), threads_(threads), loop_(threads) {}

  size_t ScratchBytes() const override { return SampleTokensScratchBytes(shape_, threads_); }

  void Run(absl::Span<void* const> x, void* scratch) const override {
    const Arguments arguments(x);
    const size_t each = LogitsWorkspaceBytes(shape_.vocabulary);
    loop_.RunMembers(shape_.rows, [&](int member, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        Sample(arguments, row, static_cast<char*>(scratch) + static_cast<size_t>(member) * each);
      }
    });
  }

 private:
  void Sample(const Arguments& a, int64_t row, void* workspace) const {
    int32_t* likely = a.likely + row * shape_.likely;
    float* likely_logprobs = a.likely_logprobs + row * shape_.likely;
    a.tokens[row] = -1;
    a.logprobs[row] = 0;
    std::fill_n(likely, shape_.likely, -1);
    std::fill_n(likely_logprobs, shape_.likely, 0.0f);
    if (a.wanted[row] <= 0) return;
    const float* own = a.logits + row * shape_.vocabulary;
    LogitsRow logits({own, static_cast<size_t>(shape_.vocabulary)}, workspace);
    if (!logits.is_finite()) return;
    const TokenLimits limits = {.top_k = std::max(a.top_k[row], 0), .top_p = a.top_p[row] > 0 ? a.top_p[row] : 0.0};
    const uint64_t seed = (uint64_t{a.seeds[2 * row + 1]} << 32) | a.seeds[2 * row];
    const int64_t token =
        logits.Sample(a.temperature[row], limits, seed, static_cast<uint64_t>(int64_t{a.positions[row]}));
    const double logprob = logits.LogProbability(token);
    a.tokens[row] = static_cast<int32_t>(token);
    a.logprobs[row] = static_cast<float>(logprob);
    for (const LogitsRow::Candidate& candidate :
         logits.MostLikely(std::min<int64_t>(a.wanted[row] - 1, shape_.likely))) {
      *likely++ = candidate.token;
      *likely_logprobs++ = static_cast<float>(logprob + (static_cast<double>(candidate.logit) - own[token]));
    }
  }

  const SampleTokensShape shape_;
  const int threads_;
  const ParallelLoop loop_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const SampleTokensShape shape, ParseSampleTokens(signature));
  return std::make_unique<SampleTokens>(shape, signature.threads);
}

}  // namespace

KernelDefinition SampleTokensDefinition() {
  return {
      "sample_tokens",
      "tokens[s]: one of softmax(logits[s] / temperature[s]) within top_k and top_p, its logprob, and the likely "
      "tokens, wanted[s] - 1 of them, with theirs; nothing where wanted[s] is 0 or logits are not finite: token -1; "
      "logits f32 [S, V], seeds i32 [S, 2], likely [S, L], others [S]",
      &Create};
}

}  // namespace bowline::kernels
