// Rules of the cuda driver that can be tested without a card.

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "kernels/reference/reference.h"
#include "runtime/drivers/cuda/cuda_target.h"
#include "runtime/drivers/cuda/products/gemm_layout.h"
#include "test/Unit/Kernels/matmul_problem.h"

namespace bowline {
namespace {

using kernels::DType;
using kernels::cuda::LibraryProduct;
using kernels::testing::Dense;
using kernels::testing::Problem;
using kernels::testing::RandomProblem;
using kernels::testing::Strided;

// As ProgramOf has it: strides of extents of 1 are 0.
LibraryProduct ProductOf(const Problem& p) {
  LibraryProduct product = {p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate, DType::kF32, DType::kF32};
  const auto clear = [](std::array<int64_t, 3>& strides, std::array<int64_t, 3> extents) {
    for (int d = 0; d < 3; ++d) {
      if (extents[d] == 1) strides[d] = 0;
    }
  };
  clear(product.a, {p.batch, p.m, p.k});
  clear(product.b, {p.batch, p.k, p.n});
  clear(product.c, {p.batch, p.m, p.n});
  return product;
}

int64_t At(const ColumnMajor& matrix, int64_t batch, int64_t i, int64_t j) {
  return batch * matrix.batch_stride + (matrix.transposed ? j + i * matrix.leading : i + j * matrix.leading);
}

// Computes the products as a library would for these calls. Fails on layouts that cuBLASLt refuses.
void Execute(const GemmCalls& calls, bool accumulate, const std::vector<double>& a, const std::vector<double>& b,
             std::vector<double>& c) {
  const auto expect_legal = [](const ColumnMajor& matrix, int64_t rows, int64_t columns) {
    EXPECT_GE(matrix.leading, matrix.rows);
    EXPECT_EQ(matrix.transposed ? matrix.columns : matrix.rows, rows);
    EXPECT_EQ(matrix.transposed ? matrix.rows : matrix.columns, columns);
  };
  expect_legal(calls.first, calls.m, calls.k);
  expect_legal(calls.second, calls.k, calls.n);
  expect_legal(calls.result, calls.m, calls.n);
  EXPECT_FALSE(calls.result.transposed);
  EXPECT_LE(calls.batch, 65535);
  const auto& [x, y, z] = calls.loops;
  for (int64_t i = 0; i < x.count * y.count * z.count * calls.sum.count; ++i) {
    const int64_t of_sum = i % calls.sum.count, of_z = i / calls.sum.count % z.count,
                  of_y = i / calls.sum.count / z.count % y.count, of_x = i / calls.sum.count / z.count / y.count;
    const int64_t at_a = calls.a + of_x * x.a + of_y * y.a + of_z * z.a + of_sum * calls.sum.a;
    const int64_t at_b = calls.b + of_x * x.b + of_y * y.b + of_z * z.b + of_sum * calls.sum.b;
    const int64_t at_c = calls.c + of_x * x.c + of_y * y.c + of_z * z.c;
    const std::vector<double>& first = calls.first_is_a ? a : b;
    const std::vector<double>& second = calls.first_is_a ? b : a;
    for (int64_t batch = 0; batch < calls.batch; ++batch) {
      for (int64_t row = 0; row < calls.m; ++row) {
        for (int64_t column = 0; column < calls.n; ++column) {
          double& result = c.at(at_c + At(calls.result, batch, row, column));
          double sum = accumulate || of_sum > 0 ? result : 0;
          for (int64_t k = 0; k < calls.k; ++k) {
            sum += first.at((calls.first_is_a ? at_a : at_b) + At(calls.first, batch, row, k)) *
                   second.at((calls.first_is_a ? at_b : at_a) + At(calls.second, batch, k, column));
          }
          result = sum;
        }
      }
    }
  }
}

// Whole numbers, of which sums are exact.
std::vector<double> RandomNumbers(std::mt19937_64& random, int64_t count) {
  std::vector<double> x(count);
  for (double& element : x) element = static_cast<double>(static_cast<int64_t>(random() % 17) - 8);
  return x;
}

int64_t CheckProduct(std::mt19937_64& random, const Problem& p) {
  SCOPED_TRACE(::testing::Message() << p.batch << " x " << p.m << "x" << p.n << "x" << p.k << " a " << p.a[0] << ","
                                    << p.a[1] << "," << p.a[2] << " b " << p.b[0] << "," << p.b[1] << "," << p.b[2]
                                    << " c " << p.c[0] << "," << p.c[1] << "," << p.c[2] << " +" << p.accumulate);
  const auto a = RandomNumbers(random, p.a_size), b = RandomNumbers(random, p.b_size);
  auto c = RandomNumbers(random, p.c_size), expected = c;
  kernels::reference::Matmul(p.batch, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate, a, b, expected);
  const auto all = GemmCallsOf(ProductOf(p));
  EXPECT_TRUE(all.ok()) << all.status();
  int64_t count = 0;
  for (const GemmCalls& calls : *all) {
    Execute(calls, p.accumulate, a, b, c);
    count += calls.Count();
  }
  EXPECT_EQ(c, expected);
  return count;
}

TEST(GemmLayout, RandomStrides) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 400; ++i) {
    Problem p = RandomProblem(random);
    p.k = std::min<int64_t>(p.k, 130);
    CheckProduct(random, p);
  }
}

TEST(GemmLayout, OneCallWhereRowsOrColumnsAreContiguous) {
  std::mt19937_64 random(2);
  for (const auto& [batch, m, n, k] : {std::array<int64_t, 4>{1, 5, 7, 3},
                                       {4, 5, 7, 3},
                                       {3, 1, 7, 3},
                                       {3, 5, 1, 3},
                                       {3, 5, 7, 1},
                                       {1, 1, 1, 1},
                                       {1, 1, 9, 9}}) {
    const Problem dense = Dense(batch, m, n, k);
    EXPECT_EQ(CheckProduct(random, dense), 1);
    for (const int transposed : {1, 2, 3, 4, 7}) {
      Problem p = dense;
      if (transposed & 1) p.a = {m * k, 1, m};
      if (transposed & 2) p.b = {k * n, 1, k};
      if (transposed & 4) p.c = {m * n, 1, m};
      EXPECT_EQ(CheckProduct(random, p), 1) << transposed;
    }
    // Heads side by side: rows of all batches alternate.
    Problem heads = dense;
    heads.a = {k, batch * k, 1};
    heads.b = {n, batch * n, 1};
    heads.c = {n, batch * n, 1};
    EXPECT_EQ(CheckProduct(random, heads), 1);
    // The same matrix for all batches.
    Problem shared = dense;
    shared.b[0] = 0;
    EXPECT_EQ(CheckProduct(random, shared), 1);
  }
}

TEST(GemmLayout, NothingContiguous) {
  std::mt19937_64 random(3);
  EXPECT_EQ(CheckProduct(random, Strided(1, 6, 9, 4)), 6);
  EXPECT_EQ(CheckProduct(random, Strided(20, 6, 9, 4)), 6 * 9);
}

TEST(GemmLayout, OperandsThatDoNotChange) {
  std::mt19937_64 random(4);
  for (const int zero : {0, 1, 2, 3, 4, 5}) {
    Problem p = Dense(2, 3, 4, 5);
    (zero < 3 ? p.a : p.b)[zero % 3] = 0;
    CheckProduct(random, p);
  }
  LibraryProduct sum = ProductOf(Dense(1, 3, 4, 5));
  sum.a[2] = 0;
  sum.operands = sum.result = DType::kBF16;
  EXPECT_EQ(GemmCallsOf(sum).status().code(), absl::StatusCode::kUnimplemented);
}

// Windows of a row, which overlap.
TEST(GemmLayout, OverlappingRows) {
  std::mt19937_64 random(5);
  Problem p = Dense(1, 6, 4, 5);
  p.a = {0, 1, 1};
  CheckProduct(random, p);
}

TEST(GemmLayout, LargeBatchesAreDivided) {
  std::mt19937_64 random(6);
  EXPECT_EQ(CheckProduct(random, Dense(65535, 1, 2, 1)), 1);
  EXPECT_EQ(CheckProduct(random, Dense(65536 + 65535, 1, 2, 1)), 3);
}

TEST(CudaTarget, ParsesNames) {
  const auto expect = [](const char* text, int major, int minor, bool exact) {
    const auto arch = ParseCudaArch(text);
    ASSERT_TRUE(arch.has_value()) << text;
    EXPECT_TRUE(arch->major == major && arch->minor == minor && arch->exact == exact) << text;
  };
  expect("sm_80", 8, 0, false);
  expect("sm_90a", 9, 0, true);
  expect("sm_103", 10, 3, false);
  expect("sm_120a", 12, 0, true);
  for (const char* text : {"", "sm_", "sm_9", "sm_a", "sm_90b", "sm_-90", "sm_9000", "90a", "sm_ 90", "compute_90"}) {
    EXPECT_FALSE(ParseCudaArch(text).has_value()) << text;
  }
}

TEST(CudaTarget, AcceptsWhatTheCardRuns) {
  const auto runs = [](const char* cpu, int major, int minor) {
    return CheckCudaTarget({"cuda", "nvptx64", cpu}, major, minor).ok();
  };
  EXPECT_TRUE(runs("sm_90a", 9, 0));
  EXPECT_TRUE(runs("sm_80", 8, 6));
  EXPECT_TRUE(runs("sm_86", 8, 9));
  EXPECT_FALSE(runs("sm_86", 8, 0));
  EXPECT_FALSE(runs("sm_80", 9, 0));
  EXPECT_FALSE(runs("sm_100a", 10, 3));
  EXPECT_FALSE(runs("sm_90a", 10, 0));
  EXPECT_FALSE(runs("x86-64-v3", 9, 0));
  const absl::Status other = CheckCudaTarget({"cpu", "x86_64", "x86-64"}, 9, 0);
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      other.message(),
      "the plan was compiled for device 'cpu', but this device is 'cuda'; compile the model again for this device");
}

// Any ELF file of 64 bits will do.
TEST(Cubin, OnlyWholeFilesAreLoaded) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::vector<uint8_t> whole(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(CheckCubin(whole).ok());
  for (const size_t size :
       {size_t{0}, size_t{3}, size_t{63}, size_t{64}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_EQ(CheckCubin({whole.data(), size}).code(), absl::StatusCode::kInvalidArgument) << size;
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    // No byte of the headers makes it read outside: the sanitizers look.
    std::vector<uint8_t> header(whole.begin(), whole.begin() + 64);
    for (int k = 0; k < 3; ++k) header[16 + random() % 48] = static_cast<uint8_t>(random());
    CheckCubin(header).IgnoreError();
  }
}

}  // namespace
}  // namespace bowline
