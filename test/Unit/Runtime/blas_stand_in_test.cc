// The stand-in for cuBLASLt refuses all that the library refuses: a test that passes on it says something of a card.

#include <cublasLt.h>
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <utility>
#include <vector>

namespace bowline {
namespace {

constexpr uint64_t kSide = 16;
constexpr size_t kBytes = 4096;  // of each matrix, and between their beginnings

struct Types {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType first = CUDA_R_16BF, second = CUDA_R_16BF, result = CUDA_R_16BF;
};

// A product of 16 by 16.
class BlasStandIn : public ::testing::Test {
 protected:
  void SetUp() override {
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&memory_, 6 * kBytes), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8Async(memory_, 0, 6 * kBytes, stream_), CUDA_SUCCESS);
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    Forget();
    EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference_), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(memory_), CUDA_SUCCESS);
  }

  void Describe(const Types& types) {
    Forget();
    ASSERT_EQ(cublasLtMatmulDescCreate(&operation_, types.compute, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    const cudaDataType all[] = {types.first, types.second, types.result};
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(cublasLtMatrixLayoutCreate(&layouts_[i], all[i], kSide, kSide, kSide), CUBLAS_STATUS_SUCCESS);
    }
  }
  void Forget() {
    if (operation_ == nullptr) return;
    EXPECT_EQ(cublasLtMatmulDescDestroy(operation_), CUBLAS_STATUS_SUCCESS);
    for (cublasLtMatrixLayout_t layout : layouts_)
      EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
    operation_ = nullptr;
  }

  void* At(int piece, size_t offset = 0) {
    return reinterpret_cast<void*>(memory_ + static_cast<size_t>(piece) * kBytes + offset);
  }
  template <typename T>
  void Set(cublasLtMatmulDescAttributes_t attribute, T value) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(operation_, attribute, static_cast<const void*>(&value), sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
  }
  void SetEpilogue(cublasLtEpilogue_t epilogue) {
    Set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogue));
    Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, At(3));
    Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, At(4));
    Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, static_cast<int64_t>(kSide));
  }
  void Prefer(cublasLtMatmulPreferenceAttributes_t attribute, uint32_t value) {
    ASSERT_EQ(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
  }

  cublasStatus_t Choose() {
    found_ = -1;
    return cublasLtMatmulAlgoGetHeuristic(handle_, operation_, layouts_[0], layouts_[1], layouts_[2], layouts_[2],
                                          preference_, 1, &chosen_, &found_);
  }
  cublasStatus_t Multiply(size_t of_a = 0, size_t of_b = 0, size_t of_c = 0, size_t of_workspace = 0) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle_, operation_, &one, At(0, of_a), layouts_[0], At(1, of_b), layouts_[1], &zero,
                          At(2, of_c), layouts_[2], At(2, of_c), layouts_[2], &chosen_.algo, At(5, of_workspace),
                          chosen_.workspaceSize, reinterpret_cast<cudaStream_t>(stream_));
  }

  CUdeviceptr memory_ = 0;
  CUstream stream_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t layouts_[3] = {};
  cublasLtMatmulHeuristicResult_t chosen_ = {};
  int found_ = -1;
};

TEST_F(BlasStandIn, KnowsTheTypesOfEachComputeType) {
  constexpr auto f32 = CUDA_R_32F, bf16 = CUDA_R_16BF, f16 = CUDA_R_16F;
  const std::pair<Types, bool> cases[] = {
      {{CUBLAS_COMPUTE_32F, f32, f32, f32}, true},
      {{CUBLAS_COMPUTE_32F, bf16, bf16, f32}, true},
      {{CUBLAS_COMPUTE_32F, bf16, bf16, bf16}, true},
      {{CUBLAS_COMPUTE_32F_FAST_TF32, f32, f32, f32}, true},
      {{CUBLAS_COMPUTE_32F_FAST_TF32, bf16, bf16, f32}, false},
      {{CUBLAS_COMPUTE_32F_FAST_TF32, f32, f32, bf16}, false},
      {{CUBLAS_COMPUTE_32F, f32, f32, bf16}, false},
      {{CUBLAS_COMPUTE_32F, f32, bf16, f32}, false},
      {{CUBLAS_COMPUTE_32F, f16, f16, bf16}, false},
      {{CUBLAS_COMPUTE_16F, bf16, bf16, bf16}, false},
      {{CUBLAS_COMPUTE_64F, f32, f32, f32}, false},
  };
  for (const auto& [types, takes] : cases) {
    SCOPED_TRACE(::testing::Message() << types.compute << " " << types.first << " " << types.second << " "
                                      << types.result);
    Describe(types);
    EXPECT_EQ(Choose(), takes ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(found_, takes ? 1 : 0);
    if (takes) EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  }
}

TEST_F(BlasStandIn, RefusesAWorkspaceThatIsNotAligned) {
  Describe({});
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(0, 0, 0, 256), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(0, 0, 0, 64), CUBLAS_STATUS_INVALID_VALUE);
}

// Of 256 bytes unless it is told less.
TEST_F(BlasStandIn, RefusesAddressesThatAreLessAlignedThanItWasTold) {
  Describe({});
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(128), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(Multiply(0, 128), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(Multiply(0, 0, 128), CUBLAS_STATUS_NOT_SUPPORTED);
  Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 16);
  Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 2);
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(16, 2), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(8, 2), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(Multiply(16, 2, 64), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(BlasStandIn, RefusesAnEpiloguesAddressesThatAreLessAlignedThanWhenItChose) {
  Describe({});
  SetEpilogue(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, At(3, 2));
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_NOT_SUPPORTED);
  Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, At(3));
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, At(4, 64));
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_NOT_SUPPORTED);
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  // Another epilogue needs an algorithm of its own.
  SetEpilogue(CUBLASLT_EPILOGUE_GELU_BIAS);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(BlasStandIn, RefusesTheEpiloguesThatTestsName) {
  Describe({});
  constexpr cublasLtEpilogue_t kAll[] = {
      CUBLASLT_EPILOGUE_BIAS,  CUBLASLT_EPILOGUE_GELU,   CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
      CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB};
  const auto taken = [&] {
    std::vector<cublasLtEpilogue_t> names;
    for (const cublasLtEpilogue_t epilogue : kAll) {
      SetEpilogue(epilogue);
      if (Choose() == CUBLAS_STATUS_SUCCESS && found_ == 1) names.push_back(epilogue);
    }
    return names;
  };
  EXPECT_EQ(taken(), std::vector<cublasLtEpilogue_t>(std::begin(kAll), std::end(kAll)));
  ASSERT_EQ(setenv("BOWLINE_STAND_IN_CUBLASLT_REFUSES", "BIAS:bf16,GELU:f32,GELU_BIAS,BGRADB", 1), 0);
  EXPECT_EQ(taken(), (std::vector<cublasLtEpilogue_t>{CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                                                      CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADA}));
  ASSERT_EQ(setenv("BOWLINE_STAND_IN_CUBLASLT_REFUSES", "all", 1), 0);
  EXPECT_EQ(taken(), std::vector<cublasLtEpilogue_t>());
  SetEpilogue(CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(found_, 1);
  unsetenv("BOWLINE_STAND_IN_CUBLASLT_REFUSES");
}

}  // namespace
}  // namespace bowline
