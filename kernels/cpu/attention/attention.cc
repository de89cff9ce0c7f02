#include "kernels/cpu/attention/attention.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/definitions.h"
#include "kernels/cpu/parallel.h"
#include "kernels/registry/signature_check.h"

namespace bowline::kernels {
namespace {

// Threads work on whole units, each of whose results depends on no other: same bits for every number of threads.
template <typename Table>
class AttentionKernel : public Kernel {
 public:
  AttentionKernel(const AttentionShape& shape, const Table& table, int64_t units, int threads)
      : shape_(shape), table_(table), units_(units), threads_(threads), scratch_floats_(table.scratch_floats(shape)) {}

  size_t ScratchBytes() const override {
    return scratch_floats_ * static_cast<size_t>(std::min<int64_t>(threads_, units_)) * sizeof(float);
  }

 protected:
  template <typename Arguments>
  void RunUnits(const Arguments& arguments, void* scratch) const {
    ParallelForChunks(threads_, units_, [&](int chunk, int64_t begin, int64_t end) {
      table_.run(shape_, arguments, begin, end, static_cast<float*>(scratch) + chunk * scratch_floats_);
    });
  }

 private:
  AttentionShape shape_;
  const Table& table_;
  int64_t units_;
  int threads_;
  size_t scratch_floats_;
};

class AttentionForward : public AttentionKernel<AttentionForwardTable> {
 public:
  AttentionForward(const AttentionShape& shape, int threads)
      : AttentionKernel(shape, BOWLINE_SELECT_ISA(kAttentionForward), shape.batch * shape.heads, threads) {}

  void Run(absl::Span<void* const> x, void* scratch) const override {
    const auto in = [&](int i) { return static_cast<const float*>(x[i]); };
    const auto out = [&](int i) { return static_cast<float*>(x[i]); };
    RunUnits(AttentionForwardArguments{in(0), in(1), in(2), out(3), out(4)}, scratch);
  }
};

class AttentionBackward : public AttentionKernel<AttentionBackwardTable> {
 public:
  AttentionBackward(const AttentionShape& shape, int threads)
      : AttentionKernel(shape, BOWLINE_SELECT_ISA(kAttentionBackward), shape.batch * shape.kv_heads, threads) {}

  void Run(absl::Span<void* const> x, void* scratch) const override {
    const auto in = [&](int i) { return static_cast<const float*>(x[i]); };
    const auto out = [&](int i) { return static_cast<float*>(x[i]); };
    RunUnits(AttentionBackwardArguments{in(0), in(1), in(2), in(3), in(4), in(5), out(6), out(7), out(8)}, scratch);
  }
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

absl::StatusOr<std::unique_ptr<Kernel>> CreateForward(const Signature& signature) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"q", Access::kRead, DType::kF32, 4},
                                                 {"k", Access::kRead, DType::kF32, 4},
                                                 {"v", Access::kRead, DType::kF32, 4},
                                                 {"out", Access::kWrite, DType::kF32, 4},
                                                 {"lse", Access::kWrite, DType::kF32, 3}},
                                                {"causal", "scale"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape shape, ParseShape(signature));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 1, "k"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 2, "v"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeQ(signature, shape, 3, "out"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLse(signature, shape, 4));
  return std::make_unique<AttentionForward>(shape, signature.threads);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateBackward(const Signature& signature) {
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"q", Access::kRead, DType::kF32, 4},
                                                 {"k", Access::kRead, DType::kF32, 4},
                                                 {"v", Access::kRead, DType::kF32, 4},
                                                 {"out", Access::kRead, DType::kF32, 4},
                                                 {"lse", Access::kRead, DType::kF32, 3},
                                                 {"dout", Access::kRead, DType::kF32, 4},
                                                 {"dq", Access::kWrite, DType::kF32, 4},
                                                 {"dk", Access::kWrite, DType::kF32, 4},
                                                 {"dv", Access::kWrite, DType::kF32, 4}},
                                                {"causal", "scale"}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape shape, ParseShape(signature));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 1, "k"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 2, "v"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeQ(signature, shape, 3, "out"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLse(signature, shape, 4));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeQ(signature, shape, 5, "dout"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeQ(signature, shape, 6, "dq"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 7, "dk"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckLikeK(signature, shape, 8, "dv"));
  return std::make_unique<AttentionBackward>(shape, signature.threads);
}

}  // namespace

KernelDefinition AttentionForwardDefinition() {
  return {"attention_forward",
          "out, lse = softmax(scale q k^T) v, f32: q, out [B,S,H,D], k, v [B,T,KV,D] with KV dividing H, lse [B,H,S]; "
          "int causal: query i sees keys j <= i + T - S; float scale; same bits for every number of threads",
          &CreateForward};
}

KernelDefinition AttentionBackwardDefinition() {
  return {"attention_backward",
          "dq, dk, dv of attention_forward from q, k, v, out, lse, dout, f32; int causal, float scale; same bits for "
          "every number of threads",
          &CreateBackward};
}

}  // namespace bowline::kernels
