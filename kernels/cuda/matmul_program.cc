#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/programs.h"
#include "kernels/signatures/product_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels::cuda {
namespace {

constexpr int64_t kLeadingMultiple = 8;  // elements, of CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD

// Whether the library takes the matrix [rows, columns] as it is, or transposed.
bool IsMatrix(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  const bool by_rows = (columns == 1 || column_stride == 1) && (rows == 1 || row_stride >= columns);
  const bool by_columns = (rows == 1 || row_stride == 1) && (columns == 1 || column_stride >= rows);
  return by_rows || by_columns;
}

absl::Status CheckEpilogue(const Signature& signature, const ProductShape& shape) {
  const MatmulShape& s = shape.product;
  const ProductEpilogue& epilogue = *shape.epilogue;
  const auto refuse = [&](const auto&... why) {
    return Refuse(signature, absl::StrCat("the epilogue '", Text(epilogue.name), "' ", why...,
                                          "; compile with --disable-step ", Text(kernels::StepOf(epilogue))));
  };
  if (!IsMatrix(s.m, s.k, s.a[1], s.a[2])) return refuse("needs an A with contiguous rows or columns");
  if (!IsMatrix(s.k, s.n, s.b[1], s.b[2])) return refuse("needs a B with contiguous rows or columns");
  if ((epilogue.gelu || epilogue.gradient) && s.result != DType::kBF16) {
    return refuse("is computed for a C of bf16 alone: cuBLASLt does not say how exact its tanh is");
  }
  if (shape.matrix >= 0 && s.n % kLeadingMultiple != 0) {
    return refuse("needs rows of C of a multiple of ", kLeadingMultiple, " elements; n is ", s.n);
  }
  if (epilogue.sums != 0 && s.result != DType::kF32) return refuse("needs a C of f32, whose type the sums have");
  return absl::OkStatus();
}

// The product of `matmul`, by the library, with the epilogues of kernels/registry/product_epilogue.h that the library
// computes as they are defined. kInvalidArgument for what ParseProduct refuses, and
//   an epilogue that is generated, and a packed B, which are forms for processors;
//   an epilogue with an operand of which neither rows nor columns are contiguous, as one call has to compute it;
//   GELU with a C of f32: the library does not say how exactly it computes tanh, and bf16 has 8 bits;
//   a matrix besides C with rows of no multiple of 8 elements (CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
//   sums with a C of bf16, whose type they would have.
// A library's products are faster with workspace, and small ones do not need much. They run with any workspace.
absl::StatusOr<KernelProgram> MatmulProgram(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const ProductShape parsed, ParseProduct(signature));
  const MatmulShape& shape = parsed.product;
  if (signature.has_epilogue) {
    return Refuse(signature,
                  "has an epilogue, which is generated for processors; compile for the CUDA device, which "
                  "computes it in a kernel of its own");
  }
  if (shape.b_packed) {
    return Refuse(signature,
                  "'b_packed' is a form of matrices for processors; compile for the CUDA device, or with "
                  "--disable-step pack-weights");
  }
  if (parsed.epilogue != nullptr) BOWLINE_KERNEL_RETURN_IF_ERROR(CheckEpilogue(signature, parsed));
  constexpr double kLargeProduct = 1e9;  // floating-point operations
  const double operations = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                            static_cast<double>(shape.n) * static_cast<double>(shape.k);
  constexpr size_t kAligned = 256;  // more, for the driver to align the library's workspace in it
  const size_t wanted = (size_t{operations >= kLargeProduct ? 32u : 4u} << 20) + kAligned;
  LibraryProduct product = {.batch = shape.batch,
                            .m = shape.m,
                            .n = shape.n,
                            .k = shape.k,
                            .a = shape.a,
                            .b = shape.b,
                            .c = shape.c,
                            .accumulate = shape.accumulate,
                            .operands = shape.operands,
                            .result = shape.result};
  product.epilogue = parsed.epilogue;
  product.result_argument = parsed.result;
  product.vector_argument = parsed.vector;
  product.matrix_argument = parsed.matrix;
  return KernelProgram{std::min(wanted, signature.scratch_limit / 256 * 256), {}, {product}};
}

}  // namespace

CudaKernel MatmulCuda() {
  return {&MatmulProgram,
          {"batch", "m", "n", "k", "a_strides", "b_strides", "c_strides", "accumulate", "b_packed", kEpilogue}};
}

}  // namespace bowline::kernels::cuda
