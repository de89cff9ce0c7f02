#include "kernels/signatures/grouped_signature.h"

#include "kernels/registry/kernel_traits.h"
#include "kernels/registry/valid_rows.h"
#include "kernels/signatures/float_type.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {

// Offsets are argument 2, and at most the number of rows of argument 0.
static constexpr DataCheck kOffsetsCheck = {.kernel = kCheckOffsets, .argument = 2, .rows = 0, .is_row = false};

absl::StatusOr<GroupedMatmulShape> ParseGroupedMatmul(const Signature& signature) {
  GroupedMatmulShape shape;
  shape.operands = FloatTypeOf(signature, 0);
  shape.result = SumTypeOf(signature, 3, shape.operands);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"rows", Access::kRead, shape.operands, 2},
                                                 {"matrices", Access::kRead, shape.operands, 3},
                                                 {"offsets", Access::kRead, DType::kI32, 1},
                                                 {"out", Access::kWrite, shape.result, 2}},
                                                {"transposed", kLeavesRowsOut}));
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const int64_t transposed, signature.Int("transposed"));
  if (transposed != 0 && transposed != 1) return Refuse(signature, "attribute 'transposed' must be 0 or 1");
  shape.transposed = transposed == 1;
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(shape.leaves_rows_out, LeavesRowsOut(signature));
  const std::vector<int64_t>& matrices = signature.arguments[1].shape;
  shape.rows = signature.arguments[0].shape[0];
  shape.k = signature.arguments[0].shape[1];
  shape.n = matrices[shape.transposed ? 1 : 2];
  shape.groups = signature.arguments[2].shape[0] - 1;
  if (shape.groups < 1 || shape.groups > matrices[0]) {
    return Refuse(signature, "'offsets' must have 2 elements or more, and at most one more than there are matrices");
  }
  const int64_t first = shape.transposed ? shape.n : shape.k, second = shape.transposed ? shape.k : shape.n;
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(
      signature, 1, "matrices", {matrices[0], first, second},
      shape.transposed ? "[groups, columns of out, columns of rows]" : "[groups, columns of rows, columns of out]"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 3, "out", {shape.rows, shape.n},
                                            "a row for each of 'rows', a column for each of a matrix"));
  return shape;
}

absl::StatusOr<GroupedOuterShape> ParseGroupedOuter(const Signature& signature) {
  GroupedOuterShape shape;
  shape.operands = FloatTypeOf(signature, 0);
  shape.result = SumTypeOf(signature, 3, shape.operands);
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckSignature(signature,
                                                {{"lhs", Access::kRead, shape.operands, 2},
                                                 {"rhs", Access::kRead, shape.operands, 2},
                                                 {"offsets", Access::kRead, DType::kI32, 1},
                                                 {"out", Access::kWrite, shape.result, 3}},
                                                {}));
  shape.rows = signature.arguments[0].shape[0];
  shape.m = signature.arguments[0].shape[1];
  shape.n = signature.arguments[1].shape[1];
  shape.groups = signature.arguments[2].shape[0] - 1;
  shape.matrices = signature.arguments[3].shape[0];
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckShape(signature, 1, "rhs", {shape.rows, shape.n}, "as many rows as 'lhs' has"));
  BOWLINE_KERNEL_RETURN_IF_ERROR(
      CheckShape(signature, 3, "out", {shape.matrices, shape.m, shape.n}, "[groups, columns of lhs, columns of rhs]"));
  if (shape.groups < 1 || shape.groups > shape.matrices) {
    return Refuse(signature, "'offsets' must have 2 elements or more, and at most one more than 'out' has matrices");
  }
  return shape;
}

KernelTraits GroupedMatmulTraits() {
  return {.data_check = kOffsetsCheck,
          .valid_rows = ValidRows{.count = 2, .arguments = {0}, .zeros = {3}},  // of rows and out
          .left_out_rows = ValidRows{.count = 2, .arguments = {0, 3}}};
}
KernelTraits GroupedOuterTraits() {
  return {.data_check = kOffsetsCheck, .valid_rows = ValidRows{.count = 2, .arguments = {0, 1}}};  // of both operands
}

}  // namespace bowline::kernels
