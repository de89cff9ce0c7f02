// A stand-in for cuBLASLt (libcublasLt.so.13), for tests of the cuda driver on machines without a card: the functions
// that it calls, with products as loops in f64 over matrices stored column by column, on the stand-in for the driver.
// It refuses what cuBLASLt refuses: leading dimensions that are too small, workspace beyond the limit that was stated.

#include <cublasLt.h>
#include <cuda.h>

#include <algorithm>
#include <cstring>

#include "test/Support/cuda_stand_in/stand_in.h"

namespace {

struct Operation {
  cublasComputeType_t compute;
  int32_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
};
struct Layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Preference {
  uint64_t workspace = 0;
};
// As the first bytes of cublasLtMatmulAlgo_t.
struct Algorithm {
  uint64_t magic, workspace;
};
constexpr uint64_t kMagic = 0x626f776c696e65;

template <typename T, typename Handle>
T& Of(Handle handle) {
  return *reinterpret_cast<T*>(handle);
}

double Read(const Layout& layout, const void* memory, int64_t index) {
  if (layout.type == CUDA_R_32F) return static_cast<const float*>(memory)[index];
  const uint32_t bits = uint32_t{static_cast<const uint16_t*>(memory)[index]} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

void Write(const Layout& layout, void* memory, int64_t index, double value) {
  const auto rounded = static_cast<float>(value);
  if (layout.type == CUDA_R_32F) {
    static_cast<float*>(memory)[index] = rounded;
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  static_cast<uint16_t*>(memory)[index] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

int64_t At(const Layout& layout, bool transposed, int64_t batch, int64_t i, int64_t j) {
  return batch * layout.stride + (transposed ? j + i * layout.leading : i + j * layout.leading);
}

bool Fits(const Layout& layout, bool transposed, uint64_t rows, uint64_t columns, int32_t batch) {
  return layout.leading >= static_cast<int64_t>(layout.rows) && layout.batch == batch &&
         (transposed ? layout.columns : layout.rows) == rows && (transposed ? layout.rows : layout.columns) == columns;
}

struct Product {
  Operation operation;
  Layout first, second, result;
  const void *a, *b;
  void* c;
  float alpha, beta;

  bool IsLegal() const {
    const uint64_t k = operation.first == CUBLAS_OP_T ? first.rows : first.columns;
    return Fits(first, operation.first == CUBLAS_OP_T, result.rows, k, result.batch) &&
           Fits(second, operation.second == CUBLAS_OP_T, k, result.columns, result.batch) &&
           Fits(result, false, result.rows, result.columns, result.batch) && result.batch >= 1 && result.batch <= 65535;
  }

  void Run() const {
    const bool t1 = operation.first == CUBLAS_OP_T, t2 = operation.second == CUBLAS_OP_T;
    const auto k = static_cast<int64_t>(t1 ? first.rows : first.columns);
    for (int64_t batch = 0; batch < result.batch; ++batch) {
      for (int64_t j = 0; j < static_cast<int64_t>(result.columns); ++j) {
        for (int64_t i = 0; i < static_cast<int64_t>(result.rows); ++i) {
          double sum = 0;
          for (int64_t l = 0; l < k; ++l) {
            sum += Read(first, a, At(first, t1, batch, i, l)) * Read(second, b, At(second, t2, batch, l, j));
          }
          const int64_t at = At(result, false, batch, i, j);
          Write(result, c, at, alpha * sum + (beta == 0 ? 0 : beta * Read(result, c, at)));
        }
      }
    }
  }
};

}  // namespace

STAND_IN cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int one;
  *handle = reinterpret_cast<cublasLtHandle_t>(&one);
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN size_t cublasLtGetVersion() { return 130000; }
STAND_IN const char* cublasLtGetStatusName(cublasStatus_t) { return "a status"; }
STAND_IN const char* cublasLtGetStatusString(cublasStatus_t) { return "an error of the stand-in"; }

STAND_IN cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                                 cudaDataType_t scale) {
  if (scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{compute});
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) {
  delete &Of<Operation>(made);
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made,
                                                       cublasLtMatmulDescAttributes_t attribute, const void* value,
                                                       size_t bytes) {
  const bool first = attribute == CUBLASLT_MATMUL_DESC_TRANSA;
  if (bytes != 4 || (!first && attribute != CUBLASLT_MATMUL_DESC_TRANSB)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(first ? &Of<Operation>(made).first : &Of<Operation>(made).second, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

STAND_IN cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows,
                                                   uint64_t columns, int64_t leading) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made) {
  delete &Of<Layout>(made);
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t made,
                                                         cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                         size_t bytes) {
  Layout& layout = Of<Layout>(made);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof(layout.batch)) {
    std::memcpy(&layout.batch, value, bytes);
  } else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof(layout.stride)) {
    std::memcpy(&layout.stride, value, bytes);
  } else {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

STAND_IN cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference());
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made) {
  delete &Of<Preference>(made);
  return CUBLAS_STATUS_SUCCESS;
}
STAND_IN cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t made,
                                                             cublasLtMatmulPreferenceAttributes_t attribute,
                                                             const void* value, size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    if (bytes != 8) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&Of<Preference>(made).workspace, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  uint32_t word = 0;
  if (bytes != sizeof(word)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&word, value, bytes);
  // An alignment is a power of two.
  if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
      attribute <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES && (word == 0 || (word & (word - 1)) != 0)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

STAND_IN cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                                       cublasLtMatrixLayout_t first, cublasLtMatrixLayout_t second,
                                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t result,
                                                       cublasLtMatmulPreference_t preference, int asked,
                                                       cublasLtMatmulHeuristicResult_t results[], int* found) {
  const Product product = {Of<Operation>(operation), Of<Layout>(first), Of<Layout>(second), Of<Layout>(result)};
  *found = 0;
  if (!product.IsLegal()) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (; *found < std::min(asked, 3); ++*found) {
    cublasLtMatmulHeuristicResult_t& algorithm = results[*found];
    algorithm.state = CUBLAS_STATUS_SUCCESS;
    algorithm.workspaceSize = Of<Preference>(preference).workspace / (static_cast<unsigned>(*found) + 1);
    const Algorithm own = {kMagic, algorithm.workspaceSize};
    std::memcpy(&algorithm.algo, &own, sizeof(own));
  }
  return CUBLAS_STATUS_SUCCESS;
}

STAND_IN cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                                       const void* a, cublasLtMatrixLayout_t first, const void* b,
                                       cublasLtMatrixLayout_t second, const void* beta, const void* c,
                                       cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t result,
                                       const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes,
                                       cudaStream_t stream) {
  Algorithm own;
  std::memcpy(&own, algorithm, sizeof(own));
  if (own.magic != kMagic || workspace_bytes < own.workspace || c != d) return CUBLAS_STATUS_INVALID_VALUE;
  const Product product = {Of<Operation>(operation),
                           Of<Layout>(first),
                           Of<Layout>(second),
                           Of<Layout>(result),
                           a,
                           b,
                           d,
                           *static_cast<const float*>(alpha),
                           *static_cast<const float*>(beta)};
  if (!product.IsLegal()) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bowline::stand_in::Held held({reinterpret_cast<CUdeviceptr>(a), reinterpret_cast<CUdeviceptr>(b),
                                      reinterpret_cast<CUdeviceptr>(d), reinterpret_cast<CUdeviceptr>(workspace)});
  const CUresult issued =
      bowline::stand_in::Issue(reinterpret_cast<CUstream>(stream), [product, held, workspace, workspace_bytes] {
        if (!held.IsAlive()) return CUDA_ERROR_ILLEGAL_ADDRESS;
        std::memset(workspace, 0x77, workspace_bytes);
        product.Run();
        return CUDA_SUCCESS;
      });
  return issued == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
