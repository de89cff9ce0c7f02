#include "kernels/signatures/coverage.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/registry/product_epilogue.h"
#include "kernels/signatures/matmul_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {

absl::Status CheckCoverage(const Signature& signature) {
  // A library's epilogue has the shapes of its product.
  if (signature.kernel != "matmul" || signature.has_epilogue || signature.Find(kEpilogue) != nullptr) {
    return absl::OkStatus();
  }
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const MatmulShape shape, ParseMatmul(signature));
  const int64_t elements = signature.arguments[2].ElementCount();
  // The elements that a product writes differ from each other, so that there are at most as many as C has.
  if (shape.accumulate || shape.batch * shape.m * shape.n == elements) return absl::OkStatus();
  return Refuse(signature,
                absl::StrCat("'c_strides' = [", absl::StrJoin(shape.c, ", "), "] over extents [", shape.batch, ", ",
                             shape.m, ", ", shape.n, "] leave elements of C out, which has ", elements));
}

}  // namespace bowline::kernels
