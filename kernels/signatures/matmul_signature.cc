#include "kernels/signatures/matmul_signature.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/registry/kernel_traits.h"
#include "kernels/registry/product_epilogue.h"
#include "kernels/signatures/float_type.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

constexpr int64_t kMaxExtent = (int64_t{1} << 31) - 1;  // so that m * n and its like fit into 64 bits

absl::StatusOr<int64_t> Extent(const Signature& signature, std::string_view name) {
  absl::StatusOr<int64_t> value = signature.Int(name);
  if (value.ok() && (*value < 1 || *value > kMaxExtent)) {
    return Refuse(signature,
                  absl::StrCat("attribute '", Text(name), "' is ", *value, "; it must be 1 to ", kMaxExtent));
  }
  return value;
}

absl::StatusOr<std::array<int64_t, 3>> Strides(const Signature& signature, std::string_view name,
                                               std::array<int64_t, 3> extents, size_t argument) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const std::vector<int64_t> given, signature.Ints(name));
  if (given.size() != 3) {
    return Refuse(signature, absl::StrCat("attribute '", Text(name), "' has ", given.size(), " strides; it needs 3"));
  }
  const int64_t elements = signature.arguments[argument].ElementCount();
  std::array<int64_t, 3> strides = {};
  __int128 last = 0;
  for (int d = 0; d < 3; ++d) {
    if (given[d] < 0) return Refuse(signature, absl::StrCat("attribute '", Text(name), "' has a negative stride"));
    if (extents[d] > 1) strides[d] = given[d];
    last += static_cast<__int128>(strides[d]) * (extents[d] - 1);
  }
  if (last >= elements) {
    return Refuse(signature, absl::StrCat("'", Text(name), "' = [", absl::StrJoin(given, ", "), "] over extents [",
                                          absl::StrJoin(extents, ", "), "] reaches beyond argument ", argument,
                                          ", which has ", elements, " elements"));
  }
  return strides;
}

// Sufficient: sorted by stride, each dimension steps over everything that the smaller ones span.
bool IsInjective(std::array<int64_t, 3> strides, std::array<int64_t, 3> extents) {
  std::array<int, 3> order = {0, 1, 2};
  std::sort(order.begin(), order.end(), [&](int i, int j) { return strides[i] < strides[j]; });
  int64_t span = 0;
  for (int d : order) {
    if (extents[d] == 1) continue;
    if (strides[d] <= span) return false;
    span += strides[d] * (extents[d] - 1);
  }
  return true;
}

// Each extra covers C or repeats over its rows, its columns or both; each output covers C.
absl::Status CheckEpilogueArguments(const Signature& signature, int64_t m, int64_t n) {
  bool has_output = false;
  for (size_t i = kEpilogueOperands; i < signature.arguments.size(); ++i) {
    const TensorSpec& spec = signature.arguments[i];
    const auto refuse = [&](std::string_view why) {
      return Refuse(signature, absl::StrCat("argument ", i, " of the epilogue, ", NameOf(spec.dtype), "[",
                                            absl::StrJoin(spec.shape, ", "), "], ", Text(why)));
    };
    if (!IsComputedIn(spec.dtype)) return refuse(absl::StrCat("must be one of ", NamesOf(&IsComputedIn)));
    if (spec.access == Access::kReadWrite) return refuse("must be read or written, not both");
    BOWLINE_KERNEL_RETURN_IF_ERROR(CheckExtents(signature, "of the epilogue", spec));
    const int64_t count = spec.ElementCount();
    if (spec.access == Access::kWrite) {
      has_output = true;
      if (count != m * n) return refuse(absl::StrCat("is an output and must have m * n = ", m * n, " elements"));
    } else {
      if (has_output) return refuse("is read and must come before the outputs");
      if (count != m * n && count != m && count != n && count != 1) {
        return refuse(absl::StrCat("must have m * n, m, n or 1 elements with m = ", m, ", n = ", n));
      }
    }
  }
  if (!has_output) return Refuse(signature, "has an epilogue without an output");
  return absl::OkStatus();
}

absl::StatusOr<bool> Flag(const Signature& signature, std::string_view name) {
  if (signature.Find(name) == nullptr) return false;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t value, signature.Int(name));
  if (value != 0 && value != 1) return Refuse(signature, absl::StrCat("attribute '", Text(name), "' must be 0 or 1"));
  return value == 1;
}

absl::Status CheckTypes(const Signature& signature, bool accumulate) {
  // A missing argument is reported by the first rule that looks at it.
  const DType operands = FloatTypeOf(signature, 0);
  if (signature.has_epilogue) {
    Signature own = signature;
    if (own.arguments.size() > kEpilogueOperands) own.arguments.resize(kEpilogueOperands);
    return CheckSignature(own, {{"A", Access::kRead, operands}, {"B", Access::kRead, operands}},
                          {"batch", "m", "n", "k", "a_strides", "b_strides", "b_packed", "bf16x6"});
  }
  const DType result = SumTypeOf(signature, 2, operands);
  if (result != DType::kF32 && accumulate) {
    return Refuse(signature, absl::StrCat("accumulates in f32 only; 'C' is ", NameOf(result)));
  }
  return CheckSignature(
      signature,
      {{"A", Access::kRead, operands},
       {"B", Access::kRead, operands},
       {"C", accumulate ? Access::kReadWrite : Access::kWrite, result}},
      {"batch", "m", "n", "k", "a_strides", "b_strides", "c_strides", "accumulate", "b_packed", "bf16x6"});
}

}  // namespace

absl::StatusOr<MatmulShape> ParseMatmul(const Signature& signature) {
  MatmulShape s;
  if (signature.Find(kEpilogue) != nullptr) {
    return Refuse(signature,
                  "has the attribute 'epilogue', which needs a library that computes it with the product; this device "
                  "has none: compile for this device");
  }
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.accumulate, Flag(signature, "accumulate"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.b_packed, Flag(signature, "b_packed"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.bf16x6, Flag(signature, "bf16x6"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckTypes(signature, s.accumulate));
  s.operands = signature.arguments[0].dtype;
  if (s.bf16x6 && s.operands != DType::kF32) {
    return Refuse(signature, absl::StrCat("'bf16x6' is for operands of f32; 'A' is ", NameOf(s.operands)));
  }
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.batch, Extent(signature, "batch"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.m, Extent(signature, "m"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.n, Extent(signature, "n"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.k, Extent(signature, "k"));
  const std::array<int64_t, 3> c_extents = {s.batch, s.m, s.n};
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.a, Strides(signature, "a_strides", {s.batch, s.m, s.k}, 0));
  s.b = {};
  if (!s.b_packed) {
    BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.b, Strides(signature, "b_strides", {s.batch, s.k, s.n}, 1));
  }
  if (signature.has_epilogue) {
    if (s.batch != 1) return Refuse(signature, absl::StrCat("batch is ", s.batch, "; with an epilogue it must be 1"));
    BOWLINE_KERNEL_RETURN_IF_ERROR(CheckEpilogueArguments(signature, s.m, s.n));
    s.c = {0, s.n, 1};
    s.result = DType::kF32;
    return s;
  }
  s.result = signature.arguments[2].dtype;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(s.c, Strides(signature, "c_strides", c_extents, 2));
  if (!IsInjective(s.c, c_extents)) {
    return Refuse(signature, absl::StrCat("'c_strides' = [", absl::StrJoin(s.c, ", "), "] over extents [",
                                          absl::StrJoin(c_extents, ", "), "] write one element of C twice"));
  }
  return s;
}

absl::StatusOr<PackShape> ParsePackMatrix(const Signature& signature) {
  const bool bf16 = !signature.arguments.empty() && signature.arguments[0].dtype == DType::kBF16;
  const DType dtype = bf16 ? DType::kBF16 : DType::kF32;
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(
      signature, {{"B", Access::kRead, dtype}, {"packed", Access::kWrite, dtype}}, {"k", "n", "b_strides"}));
  PackShape shape;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(shape.k, Extent(signature, "k"));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(shape.n, Extent(signature, "n"));
  std::array<int64_t, 3> strides;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(strides, Strides(signature, "b_strides", {1, shape.k, shape.n}, 0));
  shape.stride_k = strides[1];
  shape.stride_n = strides[2];
  return shape;
}

namespace {

// Strides may step over elements of C. A library's epilogue has the shapes of its product.
absl::Status CheckProductCoverage(const Signature& signature) {
  if (signature.has_epilogue || signature.Find(kEpilogue) != nullptr) return absl::OkStatus();
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const MatmulShape shape, ParseMatmul(signature));
  const int64_t elements = signature.arguments[2].ElementCount();
  // The elements that a product writes differ from each other, so that there are at most as many as C has.
  if (shape.accumulate || shape.batch * shape.m * shape.n == elements) return absl::OkStatus();
  return Refuse(signature,
                absl::StrCat("'c_strides' = [", absl::StrJoin(shape.c, ", "), "] over extents [", shape.batch, ", ",
                             shape.m, ", ", shape.n, "] leave elements of C out, which has ", elements));
}

}  // namespace

KernelTraits MatmulTraits() { return {.coverage = &CheckProductCoverage}; }
KernelTraits PackMatrixTraits() { return {}; }

}  // namespace bowline::kernels
