#include "runtime/drivers/cuda/products/gemm_epilogue.h"

namespace bowline {
namespace {

using kernels::ProductEpilogue;
using kernels::cuda::LibraryProduct;

// As aligned as the arguments of every plan: the library asks how pointers are aligned when it chooses, and reads
// nothing there.
constexpr hal::DeviceAddress kAnyArgument = 64;

// B is the library's first operand.
cublasLtEpilogue_t EpilogueOf(const ProductEpilogue& epilogue) {
  if (epilogue.sums != 0) return epilogue.sums == 'b' ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_BGRADB;
  if (epilogue.gradient) return CUBLASLT_EPILOGUE_DGELU;
  if (epilogue.keeps) return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  if (epilogue.gelu) return epilogue.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  return CUBLASLT_EPILOGUE_BIAS;
}

template <typename T>
absl::Status Set(const CublasLtApi& api, cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                 const T& value) {
  return BOWLINE_CUBLASLT(api, cublasLtMatmulDescSetAttribute, operation, attribute, &value, sizeof(value));
}

}  // namespace

absl::Status DescribeEpilogue(const CublasLtApi& api, cublasLtMatmulDesc_t operation, const LibraryProduct& product,
                              const GemmCalls& calls) {
  const int64_t leading = calls.result.leading;
  if (calls.first_is_a || calls.Count() != 1 || calls.batch != 1 || calls.m != product.n || leading != product.n) {
    return absl::InternalError("a product with an epilogue is no single call of the library");
  }
  BOWLINE_RETURN_IF_ERROR(
      Set(api, operation, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(EpilogueOf(*product.epilogue))));
  if (product.matrix_argument >= 0) {
    BOWLINE_RETURN_IF_ERROR(Set(api, operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading));
  }
  return PointEpilogue(api, operation, product, kAnyArgument, kAnyArgument);
}

absl::Status PointEpilogue(const CublasLtApi& api, cublasLtMatmulDesc_t operation, const LibraryProduct& product,
                           hal::DeviceAddress vector, hal::DeviceAddress matrix) {
  if (product.vector_argument >= 0) {
    BOWLINE_RETURN_IF_ERROR(
        Set(api, operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(vector)));
  }
  if (product.matrix_argument >= 0) {
    BOWLINE_RETURN_IF_ERROR(
        Set(api, operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, reinterpret_cast<const void*>(matrix)));
  }
  return absl::OkStatus();
}

}  // namespace bowline
