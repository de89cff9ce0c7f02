#include "kernels/cpu/matmul/packed_form.h"

#include "absl/strings/str_cat.h"
#include "kernels/cpu/matmul/gemm_tiles.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {

int64_t PackedElements(int64_t k, int64_t n, DType dtype) {
  const int64_t columns = (n + kPackedColumns - 1) / kPackedColumns * kPackedColumns;
  return columns * (dtype == DType::kBF16 ? (k + kPackedSteps - 1) / kPackedSteps * kPackedSteps : k);
}

bool CanPack(DType dtype, Isa isa) {
  return dtype == DType::kF32 || (dtype == DType::kBF16 && GemmLevelOf(isa).bf16_pairs);
}

absl::Status CheckPacked(const Signature& signature, size_t index, int64_t k, int64_t n, Isa isa) {
  const TensorSpec& spec = signature.arguments[index];
  if (spec.dtype != DType::kF32 && spec.dtype != DType::kBF16) {
    return Refuse(signature, absl::StrCat("packs no ", NameOf(spec.dtype), ", which would be widened to f32"));
  }
  if (!CanPack(spec.dtype, isa)) {
    return Refuse(signature, absl::StrCat("packs ", NameOf(spec.dtype),
                                          " only where the processor has AVX512-BF16, and this one has not; compile "
                                          "for this processor, or with --disable-step pack-weights"));
  }
  const int64_t expected = PackedElements(k, n, spec.dtype);
  if (spec.ElementCount() != expected) {
    return Refuse(signature, absl::StrCat("the packed argument ", index, " has ", spec.ElementCount(), " elements; of ",
                                          k, " x ", n, " it has ", expected));
  }
  return absl::OkStatus();
}

// A packed operand is accepted only where the plain product would pack it too: no other order of additions exists for
// packed operands.
absl::Status CheckPackedProduct(const Signature& signature, const MatmulShape& s, Isa isa) {
  if (s.batch != 1 || s.m < 2 || s.n < 2 || (!signature.has_epilogue && s.c[2] != 1)) {
    return Refuse(signature, "'b_packed' needs batch 1, m and n of at least 2, and rows of C that are contiguous");
  }
  return CheckPacked(signature, 1, s.k, s.n, isa);
}

}  // namespace bowline::kernels
