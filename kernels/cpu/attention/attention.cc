#include "kernels/cpu/attention/attention.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/registry/signature_check.h"
#include "kernels/signatures/attention_signature.h"

namespace bowline::kernels {
namespace {

class AttentionForward : public Kernel {
 public:
  AttentionForward(const AttentionShape& shape, int threads, bool pairs)
      : shape_(shape),
        table_(pairs ? BOWLINE_SELECT_BF16_ISA(kAttentionForward) : BOWLINE_SELECT_ISA(kAttentionForward)),
        units_(table_.units(shape)),
        threads_(threads),
        loop_(threads),
        scratch_floats_(table_.scratch_floats(shape)) {}

  size_t ScratchBytes() const override {
    return scratch_floats_ * static_cast<size_t>(std::min<int64_t>(threads_, units_)) * sizeof(float);
  }

  void Run(absl::Span<void* const> x, void* scratch) const override {
    const AttentionForwardArguments arguments{x[0], x[1], x[2], x[3], static_cast<float*>(x[4])};
    loop_.RunMembers(units_, [&](int member, int64_t begin, int64_t end) {
      table_.run(shape_, arguments, begin, end, static_cast<float*>(scratch) + member * scratch_floats_);
    });
  }

 private:
  AttentionShape shape_;
  const AttentionForwardTable& table_;
  int64_t units_;
  int threads_;
  ParallelLoop loop_;
  size_t scratch_floats_;
};

class AttentionBackward : public Kernel {
 public:
  AttentionBackward(const AttentionShape& shape, int threads, bool pairs)
      : shape_(shape),
        table_(pairs ? BOWLINE_SELECT_BF16_ISA(kAttentionBackward) : BOWLINE_SELECT_ISA(kAttentionBackward)),
        threads_(threads),
        loops_{ParallelLoop(threads), ParallelLoop(threads)} {
    using enum BackwardPart;
    // The backward pass multiplies five times per key head when all gradients are computed together, and four times for
    // dk and dv and three times for dq when they are not.
    const double heads = static_cast<double>(table_.units(shape, kAll));
    const double together = 5 * Rounds(kAll), apart = 4 * Rounds(kKeys) * heads / table_.units(shape, kKeys) +
                                                      3 * Rounds(kQueries) * heads / table_.units(shape, kQueries);
    parts_ = together <= apart ? std::vector{kAll} : std::vector{kKeys, kQueries};
    for (BackwardPart part : parts_) scratch_floats_ = std::max(scratch_floats_, table_.scratch_floats(shape, part));
  }

  size_t ScratchBytes() const override {
    int64_t chunks = 0;
    for (BackwardPart part : parts_) chunks = std::max(chunks, std::min<int64_t>(threads_, table_.units(shape_, part)));
    return scratch_floats_ * static_cast<size_t>(chunks) * sizeof(float);
  }

  void Run(absl::Span<void* const> x, void* scratch) const override {
    const AttentionBackwardArguments arguments{x[0], x[1], x[2], x[3], static_cast<const float*>(x[4]),
                                               x[5], x[6], x[7], x[8]};
    for (size_t i = 0; i < parts_.size(); ++i) {
      const BackwardPart part = parts_[i];
      loops_[i].RunMembers(table_.units(shape_, part), [&](int member, int64_t begin, int64_t end) {
        table_.run(shape_, part, arguments, begin, end, static_cast<float*>(scratch) + member * scratch_floats_);
      });
    }
  }

 private:
  // The most units of a part that one thread computes.
  double Rounds(BackwardPart part) const {
    return static_cast<double>((table_.units(shape_, part) + threads_ - 1) / threads_);
  }

  AttentionShape shape_;
  const AttentionBackwardTable& table_;
  int threads_;
  std::vector<BackwardPart> parts_;
  std::array<ParallelLoop, 2> loops_;  // of each part
  size_t scratch_floats_ = 0;
};

// The kernel multiplies pairs of bf16 if the machine prefers that and the workspace allows it.
template <typename Attention>
std::unique_ptr<Kernel> Choose(const AttentionShape& shape, const Signature& signature) {
  auto kernel = std::make_unique<Attention>(shape, signature.threads, AttentionPrefersPairs());
  if (kernel->ScratchBytes() <= signature.scratch_limit) return kernel;
  return std::make_unique<Attention>(shape, signature.threads, /*pairs=*/true);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateForward(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape shape, ParseAttentionForward(signature));
  return Choose<AttentionForward>(shape, signature);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateBackward(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape shape, ParseAttentionBackward(signature));
  return Choose<AttentionBackward>(shape, signature);
}

}  // namespace

KernelDefinition AttentionForwardDefinition() {
  return {
      "attention_forward",
      "out, lse = softmax(scale q k^T) v: q, out [B,S,H,D], k, v [B,T,KV,D] with KV dividing H, of one floating-point "
      "type, "
      "lse [B,H,S] f32; int causal: query i sees keys j <= i + T - S; optional int window, with causal: of these the "
      "last window alone; float scale; summed in f32; same bits for every number of threads",
      &CreateForward};
}

KernelDefinition AttentionBackwardDefinition() {
  return {
      "attention_backward",
      "dq, dk, dv of attention_forward from q, k, v, out, lse, dout, all f32 or all but lse bf16; int causal, optional "
      "int window, float scale; summed in f32; same bits for every number of threads",
      &CreateBackward};
}

}  // namespace bowline::kernels
