// Epilogues as generated code has them, written by hand: the arguments of their calls, and the tiles on which they run.

#include "test/Unit/Kernels/matmul_problem.h"

namespace bowline::kernels::testing {
namespace {

// The extent that row-major arguments need; generated code has it as a constant.
int64_t columns;

// arguments: product, times called
void Record(void* const* arguments, const float* tile, int64_t stride, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
  for (int64_t m = m0; m < m1; ++m) {
    for (int64_t n = n0; n < n1; ++n) {
      static_cast<float*>(arguments[0])[m * columns + n] = tile[(m - m0) * stride + n - n0];
      static_cast<float*>(arguments[1])[m * columns + n] += 1.0f;
    }
  }
}

float Gelu(float x) { return 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))); }

// arguments: bias[n], residual[m, n], gelu(product + bias), residual + product (may be the residual)
void BiasGeluAndResidual(void* const* arguments, const float* tile, int64_t stride, int64_t m0, int64_t m1, int64_t n0,
                         int64_t n1) {
  const auto *bias = static_cast<const float*>(arguments[0]), *residual = static_cast<const float*>(arguments[1]);
  auto *activation = static_cast<float*>(arguments[2]), *sum = static_cast<float*>(arguments[3]);
  for (int64_t m = m0; m < m1; ++m) {
    for (int64_t n = n0; n < n1; ++n) {
      const float x = tile[(m - m0) * stride + n - n0];
      activation[m * columns + n] = Gelu(x + bias[n]);
      sum[m * columns + n] = residual[m * columns + n] + x;
    }
  }
}

Signature WithEpilogue(const Problem& p, int threads, TileEpilogue epilogue, std::vector<TensorSpec> arguments) {
  Signature s = p.Sign(threads);
  s.attributes.erase(s.attributes.begin() + 6, s.attributes.begin() + 8);  // c_strides, accumulate
  s.arguments.pop_back();
  s.arguments.insert(s.arguments.end(), arguments.begin(), arguments.end());
  s.has_epilogue = true;
  s.epilogue = epilogue;
  return s;
}

// C dense, as outputs of an epilogue are.
Problem RandomEpilogueProblem(std::mt19937_64& random) {
  Problem p = RandomProblem(random);
  const Problem dense = Dense(1, p.m, p.n, p.k);
  p.batch = 1;
  p.c = dense.c;
  p.c_size = dense.c_size;
  p.accumulate = false;
  return p;
}

using MatmulEpilogueTest = IsaTest;
INSTANTIATE_TEST_SUITE_P(Isa, MatmulEpilogueTest, AllIsas(), IsaName);

// For each element once, with the bits of a product that is stored.
TEST_P(MatmulEpilogueTest, GetsEachElementOfTheProductOnce) {
  std::mt19937_64 random(21);
  for (int i = 0; i < 60; ++i) {
    const Problem p = i == 0   ? Dense(1, 547, 1201, 801)
                      : i == 1 ? Dense(1, 211, 1201, 1555)
                      : i == 2 ? Dense(1, 1, 1601, 777)
                      : i == 3 ? Dense(1, 801, 1, 801)
                               : RandomEpilogueProblem(random);
    SCOPED_TRACE(::testing::Message() << p.m << "x" << p.n << "x" << p.k);
    const bool bf16 = i % 2;
    columns = p.n;
    // The same memory serves as floats or as twice as many bf16 numbers of about 1.
    Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size);
    if (bf16) {
      for (Floats* x : {&a, &b}) {
        for (float& value : *x) {
          const uint32_t bits = 0x3F803F80u | (static_cast<uint32_t>(random()) & 0x807F807Fu);
          std::memcpy(&value, &bits, sizeof(value));
        }
      }
    }
    Signature plain = p.Sign(1);
    if (bf16) plain.arguments[0].dtype = plain.arguments[1].dtype = DType::kBF16;
    Floats expected(p.c_size, 0.0f);
    RunKernel(plain, {a.data(), b.data(), expected.data()});
    for (int threads : {1, 2, 5}) {
      Signature signature = WithEpilogue(p, threads, &Record, {Out({p.m, p.n}), Out({p.m, p.n})});
      signature.arguments[0].dtype = signature.arguments[1].dtype = plain.arguments[0].dtype;
      Floats product(p.c_size, 0.0f), calls(p.c_size, 0.0f);
      RunKernel(signature, {a.data(), b.data(), product.data(), calls.data()});
      EXPECT_EQ(calls, Floats(p.c_size, 1.0f));
      EXPECT_TRUE(SameBits(product, expected));
    }
  }
}

TEST_P(MatmulEpilogueTest, BiasGeluAndResidualInPlace) {
  std::mt19937_64 random(22);
  for (int i = 0; i < 40; ++i) {
    const Problem p = i == 0 ? Dense(1, 133, 1211, 801) : RandomEpilogueProblem(random);
    columns = p.n;
    Floats a = RandomFloats(random, p.a_size), b = RandomFloats(random, p.b_size), bias = RandomFloats(random, p.n);
    Floats residual = RandomFloats(random, p.c_size), activation(p.c_size, 0.0f), product(p.c_size, 0.0f);
    RunKernel(p.Sign(1), {a.data(), b.data(), product.data()});
    Floats sum = product, gelu = product;
    for (int64_t j = 0; j < p.c_size; ++j) {
      sum[j] = residual[j] + product[j];
      gelu[j] = Gelu(product[j] + bias[j % p.n]);
    }
    const Signature signature =
        WithEpilogue(p, 1 + i % 4, &BiasGeluAndResidual, {In({p.n}), In({p.m, p.n}), Out({p.m, p.n}), Out({p.m, p.n})});
    RunKernel(signature,
              {a.data(), b.data(), bias.data(), residual.data(), activation.data(), /*in place:*/ residual.data()});
    EXPECT_TRUE(SameBits(residual, sum));
    EXPECT_TRUE(SameBits(activation, gelu));
  }
}

TEST(MatmulEpilogue, NullIsAQuestionAboutTheSignature) {
  const Problem p = Dense(1, 100, 200, 1000);
  const auto outputs = std::vector<TensorSpec>{In({200}), In({}), Out({100, 200}, DType::kBF16)};
  auto asked = CreateKernel(WithEpilogue(p, 2, nullptr, outputs));
  auto real = CreateKernel(WithEpilogue(p, 2, &Record, outputs));
  ASSERT_TRUE(asked.ok()) << asked.status();
  ASSERT_TRUE(real.ok()) << real.status();
  EXPECT_EQ((*asked)->ScratchBytes(), (*real)->ScratchBytes());
}

TEST(MatmulEpilogue, Refusals) {
  const Problem p = Dense(1, 3, 4, 5);
  const auto with = [&](std::vector<TensorSpec> arguments) {
    return WithEpilogue(p, 1, nullptr, std::move(arguments));
  };
  ASSERT_TRUE(CreateKernel(with({Out({3, 4})})).ok());
  ASSERT_TRUE(CreateKernel(with({In({3}), In({4}), In({}), In({3, 4}), Out({3, 4}), Out({3, 4})})).ok());
  ExpectRefused(with({}), "epilogue without an output");
  ExpectRefused(with({In({3, 4})}), "epilogue without an output");
  ExpectRefused(with({Out({4, 4})}), "must have m * n = 12 elements");
  ExpectRefused(with({In({5}), Out({3, 4})}), "must have m * n, m, n or 1 elements");
  ExpectRefused(with({Out({3, 4}), In({4})}), "must come before the outputs");
  ExpectRefused(with({Out({3, 4}, DType::kI32)}), "must be one of f32, bf16");
  ExpectRefused(with({{Access::kReadWrite, DType::kF32, {3, 4}}}), "must be read or written, not both");
  ExpectRefused(with({Out({int64_t{1} << 40, int64_t{1} << 40})}), "2^47");
  const auto changed = [&](auto change) {
    Signature s = with({Out({3, 4})});
    change(s);
    return s;
  };
  ExpectRefused(changed([](Signature& s) { s.arguments.resize(1); }), "it takes 2: A, B");
  ExpectRefused(changed([](Signature& s) { s.attributes.push_back(Int("accumulate", 1)); }),
                "no attribute 'accumulate'");
  ExpectRefused(changed([](Signature& s) { s.attributes.push_back(Ints("c_strides", {12, 4, 1})); }),
                "no attribute 'c_strides'");
  ExpectRefused(WithEpilogue(Dense(2, 3, 4, 5), 1, nullptr, {Out({3, 4})}), "batch is 2");
}

}  // namespace
}  // namespace bowline::kernels::testing
