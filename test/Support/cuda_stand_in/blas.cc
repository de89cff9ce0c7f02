// A stand-in for cuBLASLt (libcublasLt.so.13), for tests of the cuda driver on machines without a card: the functions
// that it calls, with products as loops in f64 over matrices stored column by column, on the stand-in for the driver.
// It refuses what cuBLASLt refuses: leading dimensions that are too small, types that a compute type does not have,
// workspace beyond the limit that was stated or at an address that is no multiple of 256, addresses that are less
// aligned than it was told when it chose the algorithm, algorithms that it chose for another epilogue, epilogues
// without their vector or matrix, and such matrices with leading dimensions that are no multiple of 8.
//
// BOWLINE_STAND_IN_CUBLASLT_REFUSES names epilogues that it has no algorithm for, as BIAS:f32,DGELU, of which the first
// one is refused for a result in f32 alone; all names all of them. It says so as BOWLINE_STAND_IN_CUBLASLT_SAYS has it:
// not_supported, which is what it says without, invalid_value, or nothing, where it succeeds and has found none.

#include <cublasLt.h>
#include <cuda.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <sstream>
#include <string>

#include "test/Support/cuda_stand_in/stand_in.h"

namespace {

struct Operation {
  cublasComputeType_t compute;
  int32_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr, *aux = nullptr;
  int64_t aux_leading = 0;

  bool HasBias() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  bool HasGelu() const { return (epilogue & CUBLASLT_EPILOGUE_GELU) != 0; }
  bool HasAux() const { return (epilogue & 128) != 0; }
  bool HasSums() const { return epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB; }
};
struct Layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t stride = 0;
};
// Of A, B, C and D, and of an epilogue's vector and matrix, in bytes.
using Alignments = std::array<uint32_t, 6>;
struct Preference {
  uint64_t workspace = 0;
  std::array<uint32_t, 4> alignments = {256, 256, 256, 256};
};
// As the first bytes of cublasLtMatmulAlgo_t.
struct Algorithm {
  uint64_t magic, workspace;
  uint32_t epilogue;
  Alignments alignments;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));
constexpr uint64_t kMagic = 0x626f776c696e65;

constexpr uint32_t kMostAligned = 256;
uint32_t AlignmentOf(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  return bits % kMostAligned == 0 ? kMostAligned : static_cast<uint32_t>(bits & -bits);
}

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string NameOf(uint32_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_BIAS:
      return "BIAS";
    case CUBLASLT_EPILOGUE_GELU:
      return "GELU";
    case CUBLASLT_EPILOGUE_GELU_BIAS:
      return "GELU_BIAS";
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      return "GELU_AUX_BIAS";
    case CUBLASLT_EPILOGUE_DGELU:
      return "DGELU";
    case CUBLASLT_EPILOGUE_BGRADA:
      return "BGRADA";
    case CUBLASLT_EPILOGUE_BGRADB:
      return "BGRADB";
    default:
      return "";  // none that the driver asks for
  }
}

// Lets tests see a product whose epilogue has no algorithm.
bool IsRefused(uint32_t epilogue, cudaDataType result) {
  if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return false;
  const std::string name = NameOf(epilogue);
  const std::string of_type = std::string(name).append(result == CUDA_R_32F ? ":f32" : ":bf16");
  std::istringstream refused(FromEnvironment("BOWLINE_STAND_IN_CUBLASLT_REFUSES"));
  for (std::string one; std::getline(refused, one, ',');) {
    if (one == "all" || one == name || one == of_type) return true;
  }
  return false;
}

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

// As the library's epilogues have them, which is the form with tanh.
double TanhOf(double x) { return std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)); }
double Gelu(double x) { return 0.5 * x * (1 + TanhOf(x)); }
double GeluGradient(double x) {
  const double t = TanhOf(x), inner = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}

struct Product {
  Operation operation;
  Layout first, second, result;
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  float alpha = 1, beta = 0;

  // As the table of cublasLtMatmul() has them.
  bool HasLegalTypes() const {
    if (first.type != second.type) return false;
    if (operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32) return first.type == CUDA_R_32F && result.type == CUDA_R_32F;
    if (operation.compute != CUBLAS_COMPUTE_32F) return false;
    if (first.type == CUDA_R_32F) return result.type == CUDA_R_32F;
    return first.type == CUDA_R_16BF && (result.type == CUDA_R_32F || result.type == CUDA_R_16BF);
  }

  bool IsLegal() const {
    const uint64_t k = operation.first == CUBLAS_OP_T ? first.rows : first.columns;
    return Fits(first, operation.first == CUBLAS_OP_T, result.rows, k, result.batch) &&
           Fits(second, operation.second == CUBLAS_OP_T, k, result.columns, result.batch) &&
           Fits(result, false, result.rows, result.columns, result.batch) && result.batch >= 1 &&
           result.batch <= 65535 && HasLegalTypes() && HasLegalEpilogue();
  }

  bool HasLegalEpilogue() const {
    if (operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return true;
    if (NameOf(operation.epilogue).empty()) return false;
    const bool aux = operation.HasAux();
    return result.batch == 1 && ((!operation.HasBias() && !operation.HasSums()) || operation.bias != nullptr) &&
           (!aux || (operation.aux != nullptr && operation.aux_leading % 8 == 0 &&
                     operation.aux_leading >= static_cast<int64_t>(result.rows)));
  }

  bool IsAligned(const Alignments& told) const {
    const Alignments own = {AlignmentOf(a),
                            AlignmentOf(b),
                            AlignmentOf(c),
                            AlignmentOf(c),
                            AlignmentOf(operation.bias),
                            AlignmentOf(operation.aux)};
    return std::equal(own.begin(), own.end(), told.begin(), [](uint32_t has, uint32_t needs) { return has >= needs; });
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
          Write(result, c, at, Finished(alpha * sum + (beta == 0 ? 0 : beta * Read(result, c, at)), i, j));
        }
      }
    }
    if (operation.HasSums()) WriteSums(k);
  }

  // Applies the epilogue to an element.
  double Finished(double x, int64_t i, int64_t j) const {
    const int64_t at = i + j * operation.aux_leading;
    if (operation.HasBias()) x += Read(result, operation.bias, i);
    if (operation.epilogue == CUBLASLT_EPILOGUE_DGELU) return x * GeluGradient(Read(result, operation.aux, at));
    if (operation.HasAux()) Write(result, operation.aux, at, x);
    return operation.HasGelu() ? Gelu(x) : x;
  }

  // Over k: of the first operand for each row of the result, or of the second one for each column.
  void WriteSums(int64_t k) const {
    const bool of_first = operation.epilogue == CUBLASLT_EPILOGUE_BGRADA;
    const Layout& layout = of_first ? first : second;
    const bool transposed = (of_first ? operation.first : operation.second) == CUBLAS_OP_T;
    const auto count = static_cast<int64_t>(of_first ? result.rows : result.columns);
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += Read(layout, of_first ? a : b,
                    of_first ? At(layout, transposed, 0, i, l) : At(layout, transposed, 0, l, i));
      }
      Write(result, operation.bias, i, sum);
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
  Operation& operation = Of<Operation>(made);
  const auto set = [&](auto& field) {
    if (bytes != sizeof(field)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(operation.first);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(operation.second);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(operation.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(operation.bias);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return set(operation.aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return set(operation.aux_leading);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
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
  if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
      attribute <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) {
    if (word == 0 || (word & (word - 1)) != 0) return CUBLAS_STATUS_INVALID_VALUE;  // a power of two
    Of<Preference>(made).alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] =
        std::min(word, kMostAligned);
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
  if (IsRefused(product.operation.epilogue, product.result.type)) {
    const std::string says = FromEnvironment("BOWLINE_STAND_IN_CUBLASLT_SAYS");
    if (says == "nothing") return CUBLAS_STATUS_SUCCESS;
    return says == "invalid_value" ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const Preference& prefers = Of<Preference>(preference);
  const auto& [of_a, of_b, of_c, of_d] = prefers.alignments;
  for (; *found < std::min(asked, 3); ++*found) {
    cublasLtMatmulHeuristicResult_t& algorithm = results[*found];
    algorithm.state = CUBLAS_STATUS_SUCCESS;
    algorithm.workspaceSize = prefers.workspace / (static_cast<unsigned>(*found) + 1);
    const Algorithm own = {
        kMagic,
        algorithm.workspaceSize,
        product.operation.epilogue,
        {of_a, of_b, of_c, of_d, AlignmentOf(product.operation.bias), AlignmentOf(product.operation.aux)}};
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
  if (workspace != nullptr && AlignmentOf(workspace) < kMostAligned) return CUBLAS_STATUS_INVALID_VALUE;
  const Product product = {Of<Operation>(operation),
                           Of<Layout>(first),
                           Of<Layout>(second),
                           Of<Layout>(result),
                           a,
                           b,
                           d,
                           *static_cast<const float*>(alpha),
                           *static_cast<const float*>(beta)};
  if (!product.IsLegal() || own.epilogue != product.operation.epilogue || !product.IsAligned(own.alignments)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bowline::stand_in::Held held({reinterpret_cast<CUdeviceptr>(a), reinterpret_cast<CUdeviceptr>(b),
                                      reinterpret_cast<CUdeviceptr>(d), reinterpret_cast<CUdeviceptr>(workspace),
                                      reinterpret_cast<CUdeviceptr>(product.operation.bias),
                                      reinterpret_cast<CUdeviceptr>(product.operation.aux)});
  const CUresult issued =
      bowline::stand_in::Issue(reinterpret_cast<CUstream>(stream), [product, held, workspace, workspace_bytes] {
        if (!held.IsAlive()) return CUDA_ERROR_ILLEGAL_ADDRESS;
        std::memset(workspace, 0x77, workspace_bytes);
        product.Run();
        return CUDA_SUCCESS;
      });
  return issued == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
