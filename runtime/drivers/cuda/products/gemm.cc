#include "runtime/drivers/cuda/products/gemm.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/drivers/cuda/products/gemm_epilogue.h"

namespace bowline {
namespace {

using kernels::DType;
using kernels::cuda::LibraryProduct;

constexpr int64_t kArgumentAlignment = 64;  // bytes, of all arguments of a plan
// The library refuses a workspace at other addresses, even one of no bytes. Plans of other targets align to less.
constexpr uint64_t kWorkspaceAlignment = 256;  // bytes
constexpr int kCandidates = 8;
// Partial sums are added in f32, by a second pass.
constexpr uint32_t kReductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

cudaDataType_t TypeOf(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

// The alignment in bytes that all addresses of the operand have, over all calls.
uint32_t AlignmentOf(DType dtype, int64_t batch_stride, int64_t begin, absl::Span<const int64_t> steps) {
  int64_t elements = std::gcd(batch_stride, begin);
  for (const int64_t step : steps) elements = std::gcd(elements, step);
  return static_cast<uint32_t>(std::gcd(elements * static_cast<int64_t>(kernels::SizeOf(dtype)), kArgumentAlignment));
}

}  // namespace

class Gemm::Shape {
 public:
  Shape(CudaCard* card, CudaCard::Blas blas, const LibraryProduct& product, const GemmCalls& calls,
        uint64_t scratch_bytes, bool tf32)
      : card_(card),
        blas_(blas),
        product_(product),
        calls_(calls),
        scratch_bytes_(scratch_bytes),
        compute_(tf32 && product.operands == DType::kF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F) {}
  ~Shape() {
    for (cublasLtMatrixLayout_t layout : layouts_) {
      if (layout != nullptr) blas_.api->cublasLtMatrixLayoutDestroy(layout);
    }
    if (operation_ != nullptr) blas_.api->cublasLtMatmulDescDestroy(operation_);
  }
  Shape(const Shape&) = delete;
  Shape& operator=(const Shape&) = delete;

  absl::Status Initialise(bool tune) {
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUBLASLT(*blas_.api, cublasLtMatmulDescCreate, &operation_, compute_, CUDA_R_32F));
    BOWLINE_RETURN_IF_ERROR(SetTransposed(CUBLASLT_MATMUL_DESC_TRANSA, calls_.first.transposed));
    BOWLINE_RETURN_IF_ERROR(SetTransposed(CUBLASLT_MATMUL_DESC_TRANSB, calls_.second.transposed));
    BOWLINE_RETURN_IF_ERROR(CreateLayout(layouts_[0], product_.operands, calls_.first));
    BOWLINE_RETURN_IF_ERROR(CreateLayout(layouts_[1], product_.operands, calls_.second));
    BOWLINE_RETURN_IF_ERROR(CreateLayout(layouts_[2], product_.result, calls_.result));
    if (product_.epilogue != nullptr) {
      BOWLINE_RETURN_IF_ERROR(DescribeEpilogue(*blas_.api, operation_, product_, calls_));
    }
    return ChooseAlgorithm(tune);
  }

  absl::Status Submit(CUstream stream, absl::Span<const hal::DeviceAddress> arguments,
                      hal::DeviceAddress scratch) const {
    const auto argument = [&](int index) { return index < 0 ? hal::DeviceAddress{0} : arguments[index]; };
    const Addresses own = {arguments[0],
                           arguments[1],
                           argument(product_.result_argument),
                           argument(product_.vector_argument),
                           argument(product_.matrix_argument),
                           scratch};
    const auto& [x, y, z] = calls_.loops;
    for (int64_t i = 0; i < x.count; ++i) {
      for (int64_t j = 0; j < y.count; ++j) {
        for (int64_t l = 0; l < z.count; ++l) {
          for (int64_t s = 0; s < calls_.sum.count; ++s) {
            const int64_t of_a = calls_.a + i * x.a + j * y.a + l * z.a + s * calls_.sum.a;
            const int64_t of_b = calls_.b + i * x.b + j * y.b + l * z.b + s * calls_.sum.b;
            const int64_t of_c = calls_.c + i * x.c + j * y.c + l * z.c;
            Addresses moved = own;
            moved.a = Moved(own.a, of_a, product_.operands);
            moved.b = Moved(own.b, of_b, product_.operands);
            moved.c = Moved(own.c, of_c, product_.result);
            BOWLINE_RETURN_IF_ERROR(RunOnce(algorithm_, stream, moved, product_.accumulate || s > 0));
          }
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Algorithm {
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
  };

  // The addresses that a call reads and writes; 0 for operands that the product lacks.
  struct Addresses {
    hal::DeviceAddress a = 0, b = 0, c = 0, vector = 0, matrix = 0, scratch = 0;
  };

  static hal::DeviceAddress Moved(hal::DeviceAddress base, int64_t elements, DType dtype) {
    return base + static_cast<uint64_t>(elements) * kernels::SizeOf(dtype);
  }

  static hal::DeviceAddress WorkspaceIn(hal::DeviceAddress scratch) {
    return (scratch + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  }

  absl::Status SetTransposed(cublasLtMatmulDescAttributes_t attribute, bool transposed) {
    const int32_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    return BOWLINE_CUBLASLT(*blas_.api, cublasLtMatmulDescSetAttribute, operation_, attribute, &operation,
                            sizeof(operation));
  }

  absl::Status CreateLayout(cublasLtMatrixLayout_t& layout, DType dtype, const ColumnMajor& matrix) {
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUBLASLT(*blas_.api, cublasLtMatrixLayoutCreate, &layout, TypeOf(dtype),
                                             static_cast<uint64_t>(matrix.rows), static_cast<uint64_t>(matrix.columns),
                                             matrix.leading));
    const auto batch = static_cast<int32_t>(calls_.batch);
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUBLASLT(*blas_.api, cublasLtMatrixLayoutSetAttribute, layout,
                                             CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)));
    return BOWLINE_CUBLASLT(*blas_.api, cublasLtMatrixLayoutSetAttribute, layout,
                            CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.batch_stride,
                            sizeof(matrix.batch_stride));
  }

  absl::Status ChooseAlgorithm(bool tune) {
    cublasLtMatmulPreference_t preference = nullptr;
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUBLASLT(*blas_.api, cublasLtMatmulPreferenceCreate, &preference));
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results = {};
    int found = 0;
    const absl::Status status = AskForAlgorithms(preference, tune ? kCandidates : 1, results, found);
    blas_.api->cublasLtMatmulPreferenceDestroy(preference);
    BOWLINE_RETURN_IF_ERROR(status);
    std::vector<Algorithm> candidates;
    for (int i = 0; i < found; ++i) {
      if (results[i].state == CUBLAS_STATUS_SUCCESS) candidates.push_back({results[i].algo, results[i].workspaceSize});
    }
    if (candidates.empty()) return NoAlgorithm("it names none");
    algorithm_ = candidates.front();
    return tune && candidates.size() > 1 ? TakeFastest(candidates) : absl::OkStatus();
  }

  absl::Status NoAlgorithm(absl::string_view says) const {
    return absl::UnimplementedError(
        absl::StrCat("cuBLASLt ", blas_.api->cublasLtGetVersion(), " has no algorithm for it: ", says));
  }

  // The alignments, in bytes, of all addresses of A, B and C.
  std::array<uint32_t, 3> Alignments() const {
    const auto& [x, y, z] = calls_.loops;
    return {AlignmentOf(product_.operands, (calls_.first_is_a ? calls_.first : calls_.second).batch_stride, calls_.a,
                        {x.a, y.a, z.a, calls_.sum.a}),
            AlignmentOf(product_.operands, (calls_.first_is_a ? calls_.second : calls_.first).batch_stride, calls_.b,
                        {x.b, y.b, z.b, calls_.sum.b}),
            AlignmentOf(product_.result, calls_.result.batch_stride, calls_.c, {x.c, y.c, z.c})};
  }

  absl::Status AskForAlgorithms(cublasLtMatmulPreference_t preference, int count,
                                std::array<cublasLtMatmulHeuristicResult_t, kCandidates>& results, int& found) {
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      return BOWLINE_CUBLASLT(*blas_.api, cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value,
                              sizeof(value));
    };
    constexpr uint64_t kLost = kWorkspaceAlignment - kArgumentAlignment;  // before the first aligned byte, at most
    const uint64_t workspace_bytes = scratch_bytes_ > kLost ? scratch_bytes_ - kLost : 0;
    BOWLINE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes));
    BOWLINE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReductions));
    const auto [a, b, c] = Alignments();
    BOWLINE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, calls_.first_is_a ? a : b));
    BOWLINE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, calls_.first_is_a ? b : a));
    BOWLINE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c));
    BOWLINE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c));
    const cublasStatus_t said =
        blas_.api->cublasLtMatmulAlgoGetHeuristic(blas_.handle, operation_, layouts_[0], layouts_[1], layouts_[2],
                                                  layouts_[2], preference, count, results.data(), &found);
    const absl::Status status = CublasLtStatus(*blas_.api, said, "cublasLtMatmulAlgoGetHeuristic");
    const bool refuses = said == CUBLAS_STATUS_NOT_SUPPORTED || said == CUBLAS_STATUS_INVALID_VALUE;
    return refuses ? NoAlgorithm(status.message()) : status;
  }

  absl::Status RunOnce(const Algorithm& algorithm, CUstream stream, const Addresses& at, bool accumulate) const {
    const float alpha = 1, beta = accumulate ? 1 : 0;
    const auto* first = reinterpret_cast<const void*>(calls_.first_is_a ? at.a : at.b);
    const auto* second = reinterpret_cast<const void*>(calls_.first_is_a ? at.b : at.a);
    auto* result = reinterpret_cast<void*>(at.c);
    auto* workspace = algorithm.workspace == 0 ? nullptr : reinterpret_cast<void*>(WorkspaceIn(at.scratch));
    const auto call = [&] {
      return BOWLINE_CUBLASLT(*blas_.api, cublasLtMatmul, blas_.handle, operation_, &alpha, first, layouts_[0], second,
                              layouts_[1], &beta, result, layouts_[2], result, layouts_[2], &algorithm.algorithm,
                              workspace, algorithm.workspace, stream);
    };
    if (product_.epilogue == nullptr) return call();
    // The addresses are part of the description, which is read when the call is issued.
    const std::lock_guard<std::mutex> lock(operation_mutex_);
    BOWLINE_RETURN_IF_ERROR(PointEpilogue(*blas_.api, operation_, product_, at.vector, at.matrix));
    return call();
  }

  absl::Status TakeFastest(const std::vector<Algorithm>& candidates);
  // Memory of A, B and C, of the epilogue's vector and matrix, and of the workspace.
  using Memory = std::array<CUdeviceptr, 6>;
  absl::StatusOr<float> Measure(const Algorithm& algorithm, CUstream stream, const Memory& memory) const;

  // The sizes in bytes of the memory that a call of this shape accesses: A, B, C, and the epilogue's vector and matrix.
  std::array<size_t, 5> CallBytes() const {
    const auto bytes = [&](const ColumnMajor& matrix, DType dtype) {
      const int64_t last =
          (calls_.batch - 1) * matrix.batch_stride + (matrix.columns - 1) * matrix.leading + matrix.rows;
      return static_cast<size_t>(last) * kernels::SizeOf(dtype);
    };
    const size_t first = bytes(calls_.first, product_.operands), second = bytes(calls_.second, product_.operands);
    const size_t result = bytes(calls_.result, product_.result);
    const auto vector = static_cast<size_t>(std::max(calls_.m, calls_.n)) * kernels::SizeOf(product_.result);
    return {calls_.first_is_a ? first : second, calls_.first_is_a ? second : first, result,
            product_.vector_argument < 0 ? 0 : vector, product_.matrix_argument < 0 ? 0 : result};
  }

  CudaCard* card_;
  CudaCard::Blas blas_;
  LibraryProduct product_;
  GemmCalls calls_;
  uint64_t scratch_bytes_;
  cublasComputeType_t compute_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  mutable std::mutex operation_mutex_;                  // of the epilogue's addresses in it
  std::array<cublasLtMatrixLayout_t, 3> layouts_ = {};  // the layouts of first, second, result
  Algorithm algorithm_ = {};
};

// The median of three is measured on memory of its own, once for all that the library is asked with: the next product
// of a process that asks the same gets what the first one got.
absl::Status Gemm::Shape::TakeFastest(const std::vector<Algorithm>& candidates) {
  const auto key = [&] {
    const auto of = [](const ColumnMajor& m) {
      return std::tuple(m.rows, m.columns, m.leading, m.batch_stride, m.transposed);
    };
    return std::tuple(card_, product_.operands, product_.result, product_.accumulate, compute_, scratch_bytes_,
                      product_.epilogue, Alignments(), calls_.batch, of(calls_.first), of(calls_.second),
                      of(calls_.result));
  }();
  static std::mutex mutex;
  static auto* const chosen = new std::map<decltype(key), Algorithm>();
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto found = chosen->find(key); found != chosen->end()) {
    algorithm_ = found->second;
    return absl::OkStatus();
  }
  const CudaApi& api = card_->api();
  Memory memory = {};
  CUstream stream = nullptr;
  size_t workspace = 0;
  for (const Algorithm& candidate : candidates) workspace = std::max(workspace, candidate.workspace);
  const std::array<size_t, 5> operands = CallBytes();
  const absl::Status status = [&]() -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0));
    for (size_t i = 0; i < memory.size(); ++i) {
      const size_t bytes = std::max<size_t>(i < operands.size() ? operands[i] : workspace, 1);
      BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuMemAlloc, &memory[i], bytes));
      // Numbers near 0.01 in both types: zeros would be multiplied with less power, and so faster.
      BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuMemsetD8Async, memory[i], 0x3c, bytes, stream));
    }
    float best = 0;
    for (size_t i = 0; i < candidates.size(); ++i) {
      BOWLINE_ASSIGN_OR_RETURN(const float milliseconds, Measure(candidates[i], stream, memory));
      if (i == 0 || milliseconds < best) {
        best = milliseconds;
        algorithm_ = candidates[i];
      }
    }
    return absl::OkStatus();
  }();
  for (const CUdeviceptr part : memory) {
    if (part != 0) api.cuMemFree(part);
  }
  if (stream != nullptr) api.cuStreamDestroy(stream);
  // A card without room for it keeps the first.
  if (absl::IsResourceExhausted(status)) return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(status);
  chosen->emplace(key, algorithm_);
  return absl::OkStatus();
}

absl::StatusOr<float> Gemm::Shape::Measure(const Algorithm& algorithm, CUstream stream, const Memory& memory) const {
  const CudaApi& api = card_->api();
  std::array<CUevent, 2> events = {};
  std::array<float, 3> times = {};
  const absl::Status status = [&]() -> absl::Status {
    for (CUevent& event : events) BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuEventCreate, &event, CU_EVENT_DEFAULT));
    const auto run = [&] {
      return RunOnce(algorithm, stream, {memory[0], memory[1], memory[2], memory[3], memory[4], memory[5]},
                     product_.accumulate);
    };
    BOWLINE_RETURN_IF_ERROR(run());  // loads its code
    for (float& time : times) {
      BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuEventRecord, events[0], stream));
      BOWLINE_RETURN_IF_ERROR(run());
      BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuEventRecord, events[1], stream));
      BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuStreamSynchronize, stream));
      BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuEventElapsedTime, &time, events[0], events[1]));
    }
    return absl::OkStatus();
  }();
  for (const CUevent event : events) {
    if (event != nullptr) api.cuEventDestroy(event);
  }
  BOWLINE_RETURN_IF_ERROR(status);
  std::sort(times.begin(), times.end());
  return times[1];
}

Gemm::Gemm() = default;
Gemm::~Gemm() = default;

absl::StatusOr<std::unique_ptr<Gemm>> Gemm::Create(CudaCard* card, const LibraryProduct& product, size_t scratch_bytes,
                                                   const GemmOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(const CudaCard::Blas blas, card->OpenBlas(options.libraries));
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<GemmCalls> all, GemmCallsOf(product));
  std::unique_ptr<Gemm> gemm(new Gemm());
  for (const GemmCalls& calls : all) {
    auto shape = std::make_unique<Shape>(card, blas, product, calls, scratch_bytes, options.tf32);
    BOWLINE_RETURN_IF_ERROR(shape->Initialise(options.tune));
    gemm->shapes_.push_back(std::move(shape));
  }
  return gemm;
}

absl::Status Gemm::Submit(CUstream stream, absl::Span<const hal::DeviceAddress> arguments,
                          hal::DeviceAddress scratch) const {
  for (const std::unique_ptr<Shape>& shape : shapes_) {
    BOWLINE_RETURN_IF_ERROR(shape->Submit(stream, arguments, scratch));
  }
  return absl::OkStatus();
}

}  // namespace bowline
