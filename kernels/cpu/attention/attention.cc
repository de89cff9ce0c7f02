#include "kernels/cpu/attention/attention.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/definitions.h"
#include "kernels/cpu/float_type.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/registry/signature_check.h"

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

// Reads the shape off q and k (arguments 0 and 1), whose ranks were checked.
absl::StatusOr<AttentionShape> ParseShape(const Signature& signature) {
  AttentionShape s;
  const std::vector<int64_t>&q = signature.arguments[0].shape, &k = signature.arguments[1].shape;
  s.batch = q[0];
  s.queries = q[1];
  s.heads = q[2];
  s.head_dim = q[3];
  s.keys = k[1];
  s.kv_heads = k[2];
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t causal, signature.Int("causal"));
  if (causal != 0 && causal != 1) return Refuse(signature, "attribute 'causal' must be 0 or 1");
  s.causal = causal == 1;
  s.window = 0;
  if (signature.Find("window") != nullptr) {
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t window, signature.Int("window"));
    if (window < 1 || !s.causal) {
      return Refuse(signature, "attribute 'window' must be at least 1, and needs 'causal' to be 1");
    }
    if (window < s.keys) s.window = window;
  }
  s.bf16 = FloatTypeOf(signature, 0) == DType::kBF16;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const double scale, FiniteFloat(signature, "scale"));
  s.scale = static_cast<float>(scale);
  if (s.heads % s.kv_heads != 0) {
    return Refuse(signature, absl::StrCat("the number of query heads, ", s.heads,
                                          ", must be a multiple of that of key heads, ", s.kv_heads));
  }
  if (s.causal && s.keys < s.queries) {
    return Refuse(signature, absl::StrCat("causal attention of ", s.queries, " queries over ", s.keys,
                                          " keys: the first queries would see nothing; give at least as many keys"));
  }
  return s;
}

absl::Status CheckLikeQ(const Signature& signature, const AttentionShape& s, size_t index, std::string_view name) {
  return CheckShape(signature, index, name, {s.batch, s.queries, s.heads, s.head_dim},
                    "[batch, queries, heads, head_dim]");
}
absl::Status CheckLikeK(const Signature& signature, const AttentionShape& s, size_t index, std::string_view name) {
  return CheckShape(signature, index, name, {s.batch, s.keys, s.kv_heads, s.head_dim},
                    "[batch, keys, kv_heads, head_dim]");
}
absl::Status CheckLse(const Signature& signature, const AttentionShape& s, size_t index) {
  return CheckShape(signature, index, "lse", {s.batch, s.heads, s.queries}, "[batch, heads, queries]");
}

// The kernel multiplies pairs of bf16 if the machine prefers that and the workspace allows it.
template <typename Attention>
std::unique_ptr<Kernel> Choose(const AttentionShape& shape, const Signature& signature) {
  auto kernel = std::make_unique<Attention>(shape, signature.threads, AttentionPrefersPairs());
  if (kernel->ScratchBytes() <= signature.scratch_limit) return kernel;
  return std::make_unique<Attention>(shape, signature.threads, /*pairs=*/true);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateForward(const Signature& signature) {
  const DType element = FloatTypeOf(signature, 0);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"q", Access::kRead, element, 4},
                                                 {"k", Access::kRead, element, 4},
                                                 {"v", Access::kRead, element, 4},
                                                 {"out", Access::kWrite, element, 4},
                                                 {"lse", Access::kWrite, DType::kF32, 3}},
                                                {"causal", "scale", "window"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape shape, ParseShape(signature));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 1, "k"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 2, "v"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeQ(signature, shape, 3, "out"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLse(signature, shape, 4));
  return Choose<AttentionForward>(shape, signature);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateBackward(const Signature& signature) {
  const DType element = FloatTypeOf(signature, 0);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"q", Access::kRead, element, 4},
                                                 {"k", Access::kRead, element, 4},
                                                 {"v", Access::kRead, element, 4},
                                                 {"out", Access::kRead, element, 4},
                                                 {"lse", Access::kRead, DType::kF32, 3},
                                                 {"dout", Access::kRead, element, 4},
                                                 {"dq", Access::kWrite, element, 4},
                                                 {"dk", Access::kWrite, element, 4},
                                                 {"dv", Access::kWrite, element, 4}},
                                                {"causal", "scale", "window"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape shape, ParseShape(signature));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 1, "k"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 2, "v"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeQ(signature, shape, 3, "out"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLse(signature, shape, 4));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeQ(signature, shape, 5, "dout"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeQ(signature, shape, 6, "dq"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 7, "dk"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 8, "dv"));
  return Choose<AttentionBackward>(shape, signature);
}

}  // namespace

KernelDefinition AttentionForwardDefinition() {
  return {
      "attention_forward",
      "out, lse = softmax(scale q k^T) v: q, out [B,S,H,D], k, v [B,T,KV,D] with KV dividing H, all f32 or all bf16, "
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
