// The device's part of a product's epilogue where its library computes the product alone, on the emulator:
// within one rounding of f64.

#include "kernels/cuda/epilogue_program.h"
#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/cuda_emulation.h"
#include "test/Unit/Kernels/matmul_problem.h"

namespace bowline::kernels::testing {
namespace {

using cuda::EpilogueStep;
using cuda::LibraryProduct;
using cuda::Parameter;

struct Tensors {
  Stored a, b, bias, matrix, c, sums;
};

// Of operands with a product that is stored as f32, its only error.
class Emulation {
 public:
  Emulation(const ProductEpilogue& epilogue, const Problem& p, DType operands, DType result) : epilogue_(epilogue) {
    product_ = {.m = p.m, .n = p.n, .k = p.k, .a = p.a, .b = p.b, .c = {0, p.n, 1}};
    product_.operands = operands;
    product_.result = result;
    product_.epilogue = &epilogue;
    product_.vector_argument = 3;
    product_.matrix_argument = epilogue.keeps || epilogue.gradient ? 4 : -1;
    if (!epilogue.bias && epilogue.sums == 0) product_.vector_argument = -1;
  }

  void Run(Tensors& t, size_t scratch_bytes, uint64_t seed) {
    const auto program = cuda::ProgramWithoutLibraryEpilogue(product_, scratch_bytes);
    ASSERT_TRUE(program.ok()) << program.status();
    steps_ = program->steps.size();
    Stored& vector = epilogue_.bias ? t.bias : t.sums;
    const std::vector<void*> arguments = {t.a.data(), t.b.data(), t.c.data(), vector.data(), t.matrix.data()};
    DeviceBuffer scratch(scratch_bytes);
    const auto at = [&](const Parameter& parameter) {
      const bool in_scratch = parameter.kind == Parameter::Kind::kScratch;
      if (in_scratch) EXPECT_GE(parameter.value, program->workspace_bytes) << "the library's";
      return static_cast<unsigned char*>(in_scratch ? scratch.data() : arguments[parameter.index]) + parameter.value;
    };
    for (const EpilogueStep& step : program->steps) {
      ASSERT_EQ(step.product.result, DType::kF32);
      std::memset(scratch.data(), 0xff, program->workspace_bytes);
      Multiply(step.product, at(step.addresses[0]), at(step.addresses[1]),
               reinterpret_cast<float*>(at(step.addresses[2])));
      const absl::Status status = emulator::Launch(step.launch, arguments, scratch.data(), seed);
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_TRUE(scratch.Untouched()) << "wrote beyond its scratch";
  }

  size_t steps() const { return steps_; }

 private:
  static double Read(DType type, const unsigned char* at, int64_t index) {
    uint32_t bits = 0;
    const size_t bytes = SizeOf(type);
    std::memcpy(reinterpret_cast<unsigned char*>(&bits) + (4 - bytes), at + index * static_cast<int64_t>(bytes), bytes);
    return std::bit_cast<float>(bits);
  }

  static void Multiply(const LibraryProduct& p, const unsigned char* a, const unsigned char* b, float* c) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < p.k; ++l) {
          sum += Read(p.operands, a, i * p.a[1] + l * p.a[2]) * Read(p.operands, b, l * p.b[1] + j * p.b[2]);
        }
        c[i * p.c[1] + j * p.c[2]] = static_cast<float>(sum);
      }
    }
  }

  const ProductEpilogue& epilogue_;
  LibraryProduct product_;
  size_t steps_ = 0;
};

constexpr double kUnit = 0x1p-24;  // half a unit of f32, of a value

void ExpectNear(const char* what, DType type, double actual, double expected, double error, size_t at) {
  const double bound = error + StoringError(type, std::abs(expected) + error);
  ASSERT_LE(std::abs(actual - expected), bound) << what << " " << at << " is " << actual << ", expected " << expected;
}

// The product is rounded to f32; so is the sum with the bias; GELU of an exact x is wrong by 16 units of x, its slope
// by 16 of its terms, as it is written (its exponential by 2).
void Compare(const ProductEpilogue& epilogue, const Problem& p, DType result, const Tensors& t) {
  const std::vector<double> a = t.a.Doubles(), b = t.b.Doubles(), bias = t.bias.Doubles(), matrix = t.matrix.Doubles(),
                            c = t.c.Doubles(), sums = t.sums.Doubles();
  std::vector<double> products(p.m * p.n);
  reference::Matmul(1, p.m, p.n, p.k, p.a, p.b, p.c, false, a, b, products);
  for (size_t i = 0; i < products.size(); ++i) {
    double x = products[i], error = std::abs(x) * kUnit;
    if (epilogue.bias) {
      x += bias[i % p.n];
      error += std::abs(x) * kUnit;
    }
    if (epilogue.keeps) ExpectNear("kept", result, matrix[i], x, error, i);
    if (epilogue.gelu) {
      error = 1.13 * error + std::abs(x) * 16 * kUnit;
      x = reference::Gelu(x);
    }
    if (epilogue.gradient) {
      const double at = matrix[i], inner = std::abs(at) * 0.7978845608028654 * (1 + 3 * 0.044715 * at * at);
      const double slope = reference::GeluSlope(at), wrong = (1 + inner) * 16 * kUnit;
      error = error * (std::abs(slope) + wrong) + std::abs(x) * (wrong + kUnit);
      x *= slope;
    }
    ExpectNear("C", result, c[i], x, error, i);
    if (::testing::Test::HasFatalFailure()) return;
  }
  if (epilogue.sums == 0) return;
  const bool of_a = epilogue.sums == 'a';
  const int64_t count = of_a ? p.m : p.n, stride = of_a ? p.a[1] : p.b[2], along = of_a ? p.a[2] : p.b[1];
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0, absolute = 0;
    for (int64_t l = 0; l < p.k; ++l) {
      const double value = (of_a ? a : b)[i * stride + l * along];
      sum += value;
      absolute += std::abs(value);
    }
    ExpectNear("sum", result, sums[i], sum, absolute * static_cast<double>(p.k) * kUnit, i);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(CudaEpilogue, WithinOneRounding) {
  std::mt19937_64 random(5);
  constexpr std::pair<DType, DType> kTypes[] = {
      {DType::kF32, DType::kF32}, {DType::kBF16, DType::kF32}, {DType::kBF16, DType::kBF16}};
  size_t most_steps = 0;
  int checked = 0;
  for (const ProductEpilogue& epilogue : kProductEpilogues) {
    for (const auto& [operands, result] : kTypes) {
      if (epilogue.sums != 0 ? result != DType::kF32 : (epilogue.gelu || epilogue.gradient) && result != DType::kBF16) {
        continue;
      }
      for (const auto& [m, n, k] :
           {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {3, 8, 5}, {70, 33, 37}, {37, 300, 70}, {130, 200, 9}}) {
        for (const bool transposed : {false, true}) {
          SCOPED_TRACE(::testing::Message() << epilogue.name << " " << NameOf(operands) << " " << NameOf(result) << " "
                                            << m << " " << n << " " << k << " " << transposed);
          Problem p = Dense(1, m, n, k);
          if (transposed) {
            p.a = {0, 1, m};
            p.b = {0, 1, k};
          }
          Tensors t = {RandomStored(random, operands, m * k),
                       RandomStored(random, operands, k * n),
                       RandomStored(random, result, n, 3),
                       epilogue.keeps ? Unwritten(result, m * n) : RandomStored(random, result, m * n, 6),
                       Unwritten(result, m * n),
                       Unwritten(result, epilogue.sums == 'a' ? m : n)};
          Tensors again = t;
          Emulation emulation(epilogue, p, operands, result);
          emulation.Run(t, cuda::kLeastEpilogueWorkspace, 1);
          if (HasFatalFailure()) return;
          Compare(epilogue, p, result, t);
          if (HasFatalFailure()) return;
          emulation.Run(again, cuda::kLeastEpilogueWorkspace, 2);
          EXPECT_TRUE(t.c == again.c);
          EXPECT_TRUE(t.sums == again.sums);
          most_steps = std::max(most_steps, emulation.steps());
          ++checked;
        }
      }
    }
  }
  EXPECT_EQ(checked, (3 + 1 + 1 + 1 + 1 + 2 + 2) * 5 * 2);
  EXPECT_EQ(most_steps, 6u);  // tiles of 64 by 192 of 130 by 200
}

// GELU and its slope where powers of x overflow, and near cancellation.
TEST(CudaEpilogue, GeluOfEveryMagnitude) {
  const Problem p = Dense(1, 1, 512, 1);
  Floats values;
  for (int i = 0; i < 256; ++i) {
    const float magnitude = std::ldexp(1.0f + static_cast<float>(i % 4) / 4, i / 4 - 32);
    values.insert(values.end(), {magnitude, -magnitude});
  }
  for (const char* name : {"gelu", "gelu_gradient"}) {
    SCOPED_TRACE(name);
    const ProductEpilogue& epilogue = *FindProductEpilogue(name);
    const bool gradient = epilogue.gradient;
    Tensors t = {Stored(DType::kBF16, Floats(1, 1.0f)),
                 Stored(DType::kBF16, gradient ? Floats(512, 1.0f) : values),
                 Stored(DType::kBF16, Floats(512, 0.0f)),
                 Stored(DType::kBF16, values),
                 Unwritten(DType::kBF16, 512),
                 Unwritten(DType::kBF16, 512)};
    Emulation(epilogue, p, DType::kBF16, DType::kBF16).Run(t, cuda::kLeastEpilogueWorkspace, 1);
    const std::vector<double> c = t.c.Doubles(), x = t.matrix.Doubles();
    for (size_t i = 0; i < x.size(); ++i) {
      // Beyond 64 f64 overflows in turn.
      const double expected = x[i] > 64    ? (gradient ? 1 : x[i])
                              : x[i] < -64 ? 0
                              : gradient   ? reference::GeluSlope(x[i])
                                           : reference::Gelu(x[i]);
      ExpectNear(name, DType::kBF16, c[i], expected, std::min(std::abs(x[i]), 8.0) * 64 * kUnit, i);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace bowline::kernels::testing
