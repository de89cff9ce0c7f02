#include "kernels/signatures/attention_signature.h"

#include "absl/strings/str_cat.h"
#include "kernels/registry/kernel_traits.h"
#include "kernels/signatures/float_type.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

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
  s.element = FloatTypeOf(signature, 0);
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

}  // namespace

absl::StatusOr<AttentionShape> ParseAttentionForward(const Signature& signature) {
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
  return shape;
}

absl::StatusOr<AttentionShape> ParseAttentionBackward(const Signature& signature) {
  const DType element = FloatTypeOf(signature, 0);
  if (!IsTrainedIn(element)) {
    return Refuse(signature, absl::StrCat("does not compute in ", NameOf(element), ", in which nothing is trained"));
  }
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
  return shape;
}

KernelTraits AttentionBackwardTraits() { return {}; }
KernelTraits AttentionForwardTraits() { return {}; }

}  // namespace bowline::kernels
