// Products with the epilogues of a library on a card against references in f64; skipped as cuda_card_test.cc is.

#include <gmock/gmock.h>

#include <cstdlib>
#include <limits>

#include "kernels/cuda/epilogue_program.h"
#include "kernels/reference/reference.h"
#include "kernels/registry/product_epilogue.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Kernels/matmul_problem.h"
#include "test/Unit/Kernels/stored_testing.h"
#include "test/Unit/Runtime/card_runner.h"

namespace bowline::kernels::testing {
namespace {

using bowline::testing::CardRunner;
using bowline::testing::IsStandIn;
using bowline::testing::StandInIs;

class CudaEpilogues : public bowline::testing::CardTest {};

std::vector<double> Absolute(std::vector<double> x) {
  for (double& value : x) value = std::abs(value);
  return x;
}

struct Types {
  DType operands, result;
};
constexpr Types kTypes[] = {{DType::kF32, DType::kF32}, {DType::kBF16, DType::kF32}, {DType::kBF16, DType::kBF16}};

// Matrices of contiguous rows or columns, with gaps between these; C is dense.
Problem RandomMatrices(std::mt19937_64& random, bool has_matrix) {
  const std::vector<int64_t> sizes = {1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 61, 64, 97, 127, 130};
  const auto pick = [&] { return sizes[random() % sizes.size()]; };
  int64_t n = pick();
  if (has_matrix) n = 8 * (1 + n % 17);
  Problem p = Dense(1, pick(), n, random() % 8 == 0 ? 500 + random() % 300 : pick());
  const auto lay_out = [&](Strides& strides, int64_t& size, int64_t rows, int64_t columns) {
    const bool by_rows = random() % 2;
    const int64_t leading = (by_rows ? columns : rows) + static_cast<int64_t>(random() % 3);
    strides = by_rows ? Strides{0, leading, 1} : Strides{0, 1, leading};
    size = leading * (by_rows ? rows : columns);
  };
  lay_out(p.a, p.a_size, p.m, p.k);
  lay_out(p.b, p.b_size, p.k, p.n);
  return p;
}

Signature Sign(const Problem& p, Types types, const ProductEpilogue& epilogue) {
  Signature s = p.Sign(1);
  std::erase_if(s.attributes, [](const Attribute& a) { return a.name == "c_strides" || a.name == "accumulate"; });
  s.attributes.push_back({"epilogue", {}, {}, std::string(epilogue.name)});
  s.arguments = {In({p.a_size}, types.operands), In({p.b_size}, types.operands)};
  if (epilogue.bias) s.arguments.push_back(In({p.n}, types.result));
  if (epilogue.gradient) s.arguments.push_back(In({p.m, p.n}, types.result));
  s.arguments.push_back(Out({p.m, p.n}, types.result));
  if (epilogue.keeps) s.arguments.push_back(Out({p.m, p.n}, types.result));
  if (epilogue.sums != 0) s.arguments.push_back(Out({epilogue.sums == 'a' ? p.m : p.n}, types.result));
  return s;
}

// `actual` within the errors of its elements, and half a unit of its type.
void ExpectWithin(const char* what, DType type, const std::vector<double>& actual, const std::vector<double>& expected,
                  const std::vector<double>& errors) {
  int64_t wrong = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double bound = errors[i] + StoringError(type, std::abs(expected[i]) + errors[i]);
    if (!(std::abs(actual[i] - expected[i]) <= bound) && wrong++ == 0) {
      ADD_FAILURE() << what << " " << i << " is " << actual[i] << ", expected " << expected[i] << " within " << bound;
    }
  }
  EXPECT_EQ(wrong, 0) << what;
}

// Sums of k products, as CudaKernels bounds them: f32 is wrong by (k + 2) 2^-24 of the sum of absolute values at most,
// sums on tensor cores, which may cut off, by twice as much.
double SumError(DType operands, int64_t k) {
  return static_cast<double>(k + 2) * (operands == DType::kBF16 ? 0x1p-23 : 0x1p-24) * 1.01;
}

// The instruction tanh.approx.f32 is exact to 2^-11 of the result (PTX ISA, "Floating Point Instructions: tanh"), which
// the library may use; all other functions of f32 are more exact.
constexpr double kTanhError = 0x1p-11;
constexpr double kArithmetic = 16 * 0x1p-24;  // of the operations around it

// gelu(x) where x is wrong by `error`: its slope is below 1.13, and tanh is multiplied with x / 2.
double GeluError(double x, double error) {
  return 1.13 * error + std::abs(x) / 2 * kTanhError + std::abs(x) * kArithmetic;
}

// Of the slope, t = tanh(u): (1 + t) / 2 + x / 2 (1 - t^2) u' changes by 1 / 2 + |x u'| with t, at most, as |t| <= 1.
double SlopeError(double x) {
  const double inner = std::abs(x) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
  return (0.5 + inner) * kTanhError + (1 + inner) * kArithmetic;
}

// Computes an epilogue. Some of cuBLASLt's algorithms (seen with 13.1 on an H200) do so in a kernel of its own, which
// reads a product that was rounded to the type of the result; the driver never rounds a product before its epilogue.
enum class By : uint8_t { kLibrary, kDriver };

// The expected elements of a product, and bounds of their errors.
struct Expected {
  Expected(const Problem& p, Types types, const Stored& a, const Stored& b, By by)
      : p(p), a(a.Doubles()), b(b.Doubles()) {
    x.resize(p.m * p.n);
    errors.resize(p.m * p.n);
    reference::Matmul(1, p.m, p.n, p.k, p.a, p.b, p.c, false, this->a, this->b, x);
    reference::Matmul(1, p.m, p.n, p.k, p.a, p.b, p.c, false, Absolute(this->a), Absolute(this->b), errors);
    for (double& error : errors) {
      error = error * SumError(types.operands, p.k) + static_cast<double>(p.k) * 0x1p-126;
    }
    if (by == By::kDriver) return;
    for (size_t i = 0; i < x.size(); ++i) errors[i] += StoringError(types.result, std::abs(x[i]) + errors[i]);
  }

  void AddBias(const std::vector<double>& bias) {
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] += bias[i % p.n];
      errors[i] += (std::abs(x[i]) + errors[i]) * 0x1p-24;
    }
  }
  void ApplyGelu() {
    for (size_t i = 0; i < x.size(); ++i) {
      errors[i] = GeluError(x[i], errors[i]);
      x[i] = reference::Gelu(x[i]);
    }
  }
  void ApplyGradient(const std::vector<double>& input) {
    for (size_t i = 0; i < x.size(); ++i) {
      const double slope = reference::GeluSlope(input[i]), wrong = SlopeError(input[i]);
      errors[i] = errors[i] * (std::abs(slope) + wrong) + std::abs(x[i]) * (wrong + std::abs(slope) * 0x1p-24);
      x[i] *= slope;
    }
  }
  std::vector<double> Sums(char of, bool absolute) const {
    const Problem& s = p;
    return of == 'a' ? reference::SumsOverK(s.m, s.k, s.a[1], s.a[2], absolute ? Absolute(a) : a)
                     : reference::SumsOverK(s.n, s.k, s.b[2], s.b[1], absolute ? Absolute(b) : b);
  }

  const Problem& p;
  std::vector<double> a, b, x, errors;
};

bool IsComputed(const ProductEpilogue& epilogue, Types types) {
  if (epilogue.gelu || epilogue.gradient) return types.result == DType::kBF16;
  return epilogue.sums == 0 || types.result == DType::kF32;
}

void Check(CardRunner& card, std::mt19937_64& random, const Problem& p, Types types, const ProductEpilogue& epilogue,
           By by = By::kLibrary, size_t scratch_limit = std::numeric_limits<size_t>::max()) {
  SCOPED_TRACE(::testing::Message() << epilogue.name << " " << p.m << "x" << p.n << "x" << p.k << " a " << p.a[1] << ","
                                    << p.a[2] << " b " << p.b[1] << "," << p.b[2] << " " << NameOf(types.operands)
                                    << " " << NameOf(types.result));
  Stored a = RandomStored(random, types.operands, p.a_size), b = RandomStored(random, types.operands, p.b_size);
  Stored bias = RandomStored(random, types.result, p.n, 3), input = RandomStored(random, types.result, p.m * p.n, 6);
  const int64_t summed = epilogue.sums == 'a' ? p.m : p.n;
  Stored c = Unwritten(types.result, p.m * p.n), kept = c, sums = Unwritten(types.result, summed);
  std::vector<void*> arguments = {a.data(), b.data()};
  if (epilogue.bias) arguments.push_back(bias.data());
  if (epilogue.gradient) arguments.push_back(input.data());
  arguments.push_back(c.data());
  if (epilogue.keeps) arguments.push_back(kept.data());
  if (epilogue.sums != 0) arguments.push_back(sums.data());
  Signature signature = Sign(p, types, epilogue);
  signature.scratch_limit = scratch_limit;
  card.Run(signature, arguments);
  if (::testing::Test::HasFatalFailure()) return;

  Expected expected(p, types, a, b, by);
  if (epilogue.bias) expected.AddBias(bias.Doubles());
  if (epilogue.keeps) ExpectWithin("kept", types.result, kept.Doubles(), expected.x, expected.errors);
  if (epilogue.gelu) expected.ApplyGelu();
  if (epilogue.gradient) expected.ApplyGradient(input.Doubles());
  ExpectWithin("C", types.result, c.Doubles(), expected.x, expected.errors);
  if (epilogue.sums != 0) {
    std::vector<double> errors = expected.Sums(epilogue.sums, true);
    for (double& error : errors) error *= SumError(types.operands, p.k);
    ExpectWithin("sum", types.result, sums.Doubles(), expected.Sums(epilogue.sums, false), errors);
  }
}

void CheckRandomShapes(CardRunner& card, int count, By by) {
  std::mt19937_64 random(TestSeed());
  for (const ProductEpilogue& epilogue : kProductEpilogues) {
    for (int i = 0; i < count; ++i) {
      const Types types = kTypes[i % 3];
      if (!IsComputed(epilogue, types)) continue;
      Check(card, random, RandomMatrices(random, epilogue.keeps || epilogue.gradient), types, epilogue, by);
    }
  }
}

TEST_F(CudaEpilogues, OfRandomShapes) { CheckRandomShapes(*card_, 60, By::kLibrary); }

TEST_F(CudaEpilogues, OfLargeDenseMatrices) {
  std::mt19937_64 random(TestSeed() + 1);
  for (const ProductEpilogue& epilogue : kProductEpilogues) {
    for (const Types types : kTypes) {
      if (IsComputed(epilogue, types)) Check(*card_, random, Dense(1, 384, 520, 768), types, epilogue);
    }
  }
}

TEST_F(CudaEpilogues, Tuned) {
  const auto tuned = CardRunner::Create({{"tune", "1"}});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  std::mt19937_64 random(TestSeed() + 2);
  for (const ProductEpilogue& epilogue : kProductEpilogues) {
    for (const Types types : kTypes) {
      if (IsComputed(epilogue, types)) Check(**tuned, random, Dense(1, 64, 96, 128), types, epilogue);
    }
  }
}

// By functions of the driver, after the product.
TEST_F(CudaEpilogues, Own) {
  const auto own = CardRunner::Create({{"epilogues", "own"}});
  ASSERT_TRUE(own.ok()) << own.status();
  CheckRandomShapes(**own, 60, By::kDriver);
}

// The product in tiles, as many as the least workspace makes necessary.
TEST_F(CudaEpilogues, OwnInTiles) {
  const auto own = CardRunner::Create({{"epilogues", "own"}});
  ASSERT_TRUE(own.ok()) << own.status();
  std::mt19937_64 random(TestSeed() + 3);
  for (const ProductEpilogue& epilogue : kProductEpilogues) {
    for (const Types types : kTypes) {
      if (!IsComputed(epilogue, types)) continue;
      for (const auto& [m, n] : {std::pair<int64_t, int64_t>{150, 200}, {700, 24}, {7, 456}}) {
        Check(**own, random, Dense(1, m, n, 19), types, epilogue, By::kDriver, cuda::kLeastEpilogueWorkspace);
      }
    }
  }
  Signature too_little = Sign(Dense(1, 4, 8, 4), kTypes[2], *FindProductEpilogue("bias"));
  too_little.scratch_limit = cuda::kLeastEpilogueWorkspace - 1;
  EXPECT_THAT(std::string((*own)->device().CreateKernel(too_little).status().message()),
              ::testing::HasSubstr("the plan gives it 65280 bytes of workspace, and 65536 are needed"));
}

TEST_F(CudaEpilogues, OwnOfLargeDenseMatrices) {
  const auto own = CardRunner::Create({{"epilogues", "own"}});
  ASSERT_TRUE(own.ok()) << own.status();
  std::mt19937_64 random(TestSeed() + 4);
  for (const ProductEpilogue& epilogue : kProductEpilogues) {
    for (const Types types : kTypes) {
      if (IsComputed(epilogue, types))
        Check(**own, random, Dense(1, 384, 520, 768), types, epilogue, By::kDriver, size_t{1} << 20);
    }
  }
}

TEST_F(CudaEpilogues, OwnWhereTheLibraryHasNoAlgorithm) {
  if (!IsStandIn()) GTEST_SKIP() << "nobody makes the library refuse";
  constexpr std::pair<const char*, const char*> kSays[] = {
      {"not_supported", "cublasLtMatmulAlgoGetHeuristic: a status"},
      {"invalid_value", "cublasLtMatmulAlgoGetHeuristic: a status"},
      {"nothing", "it names none"}};
  for (const auto& [says, reason] : kSays) {
    SCOPED_TRACE(says);
    const StandInIs refusing("BOWLINE_STAND_IN_CUBLASLT_REFUSES", "all"),
        saying("BOWLINE_STAND_IN_CUBLASLT_SAYS", says);
    for (const ProductEpilogue& epilogue : kProductEpilogues) {
      for (const Types types : kTypes) {
        if (!IsComputed(epilogue, types)) continue;
        const auto kernel = card_->device().CreateKernel(Sign(Dense(1, 4, 8, 4), types, epilogue));
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        const std::string note = (*kernel)->Note();
        EXPECT_THAT(note, ::testing::StartsWith(
                              absl::StrCat("the epilogue '", std::string(epilogue.name), "' of a product in ")));
        EXPECT_THAT(note, ::testing::HasSubstr(
                              absl::StrCat("after the product: cuBLASLt 130000 has no algorithm for it: ", reason)));
      }
    }
    CheckRandomShapes(*card_, 6, By::kDriver);
  }
}

// An epilogue that the library lacks says nothing of the others, nor of the same one in another type.
TEST_F(CudaEpilogues, TheLibrarysWhereItHasAnAlgorithm) {
  if (!IsStandIn()) GTEST_SKIP() << "nobody makes the library refuse";
  const StandInIs refusing("BOWLINE_STAND_IN_CUBLASLT_REFUSES", "BIAS:bf16,DGELU");
  int own = 0;
  for (const ProductEpilogue& epilogue : kProductEpilogues) {
    for (const Types types : kTypes) {
      if (!IsComputed(epilogue, types)) continue;
      SCOPED_TRACE(::testing::Message() << epilogue.name << " " << NameOf(types.operands) << " "
                                        << NameOf(types.result));
      const auto kernel = card_->device().CreateKernel(Sign(Dense(1, 4, 8, 4), types, epilogue));
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const bool refused = epilogue.gradient || (epilogue.name == "bias" && types.result == DType::kBF16);
      EXPECT_EQ((*kernel)->Note().empty(), !refused) << (*kernel)->Note();
      own += refused ? 1 : 0;
    }
  }
  EXPECT_EQ(own, 2);
}

TEST_F(CudaEpilogues, SettingsAreChecked) {
  EXPECT_THAT(std::string(CardRunner::Create({{"epilogues", "cublas"}}).status().message()),
              ::testing::HasSubstr("epilogues=cublas is neither auto nor own"));
}

}  // namespace
}  // namespace bowline::kernels::testing
