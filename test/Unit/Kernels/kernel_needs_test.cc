// Compares the needs that a compiler without kernels knows with those of the kernels: on random signatures, right and
// wrong ones, for every instruction set that this machine has.

#include "kernels/cpu/kernel_needs.h"

#include <array>

#include "kernels/cpu/matmul/packed_form.h"
#include "test/Unit/Kernels/kernel_testing.h"

namespace bowline::kernels::testing {
namespace {

class RandomSignatures {
 public:
  explicit RandomSignatures(uint64_t seed) : random_(seed) {}

  // Of one of the kernels; nearly always one that it accepts.
  Signature Of(std::string_view kernel) {
    Signature signature = Valid(kernel);
    signature.kernel = std::string(kernel);
    signature.threads = static_cast<int>(UpTo(9));
    if (UpTo(8) == 1) Spoil(signature);
    return signature;
  }

 private:
  int64_t UpTo(int64_t most) { return std::uniform_int_distribution<int64_t>(1, most)(random_); }
  bool Coin() { return UpTo(2) == 1; }
  // Each power of two as often as any other.
  int64_t Extent(int64_t most) { return UpTo(std::max<int64_t>(1, most >> (UpTo(11) - 1))); }
  DType Float() { return std::array{DType::kF32, DType::kBF16, DType::kF16}[static_cast<size_t>(UpTo(3) - 1)]; }
  DType ResultOf(DType operands) { return Coin() ? operands : DType::kF32; }

  std::vector<int64_t> Strides(int64_t rows, int64_t columns) {
    return Coin() ? std::vector<int64_t>{rows * columns, columns, 1} : std::vector<int64_t>{rows * columns, 1, rows};
  }

  Signature Matmul() {
    const int64_t m = Extent(4096), n = Extent(4096), k = Extent(4096), batch = UpTo(4) == 1 ? UpTo(3) : 1;
    const DType type = Float();
    Signature s;
    s.has_epilogue = batch == 1 && UpTo(4) == 1;
    const bool accumulate = !s.has_epilogue && UpTo(5) == 1;
    const DType result = s.has_epilogue || accumulate ? DType::kF32 : ResultOf(type);
    const bool packed = batch == 1 && UpTo(4) == 1;
    s.attributes = {Int("batch", batch), Int("m", m), Int("n", n), Int("k", k), Ints("a_strides", Strides(m, k))};
    if (packed) {
      s.attributes.push_back(Int("b_packed", 1));
    } else {
      s.attributes.push_back(Ints("b_strides", Strides(k, n)));
    }
    if (!s.has_epilogue) {
      s.attributes.push_back(Ints("c_strides", packed ? std::vector<int64_t>{m * n, n, 1} : Strides(m, n)));
      if (accumulate) s.attributes.push_back(Int("accumulate", 1));
    }
    s.arguments = {In({batch, m, k}, type), In({batch, k, n}, type)};
    if (packed) s.arguments[1] = In({PackedElements(k, n, type)}, type);
    if (s.has_epilogue) {
      s.arguments.push_back(In({n}));
      s.arguments.push_back(Out({m, n}));
    } else {
      s.arguments.push_back({accumulate ? Access::kReadWrite : Access::kWrite, result, {batch, m, n}});
    }
    return s;
  }

  Signature PackMatrix() {
    const int64_t k = Extent(2048), n = Extent(2048);
    const DType type = Coin() ? DType::kF32 : Float();  // which each machine packs
    return {"",
            {Int("k", k), Int("n", n),
             Ints("b_strides", Coin() ? std::vector<int64_t>{0, n, 1} : std::vector<int64_t>{0, 1, k})},
            {In({k * n}, type), Out({PackedElements(k, n, type)}, type)}};
  }

  Signature Attention(bool backward) {
    const int64_t group = UpTo(4), kv = UpTo(4), batch = UpTo(4), dim = UpTo(160), keys = Extent(2048);
    const bool causal = Coin();
    const int64_t queries = causal ? std::min(keys, Extent(2048)) : Extent(2048);
    const DType type = Float();
    Signature s;
    s.attributes = {Int("causal", causal ? 1 : 0), kernels::testing::Float("scale", 0.1)};
    if (causal && Coin()) s.attributes.push_back(Int("window", UpTo(keys)));
    const TensorSpec q = In({batch, queries, group * kv, dim}, type), k = In({batch, keys, kv, dim}, type),
                     lse = In({batch, group * kv, queries});
    const auto written = [](TensorSpec spec) {
      spec.access = Access::kWrite;
      return spec;
    };
    if (backward) {
      s.arguments = {q, k, k, q, lse, q, written(q), written(k), written(k)};
    } else {
      s.arguments = {q, k, k, written(q), written(lse)};
    }
    return s;
  }

  Signature Grouped(bool outer) {
    const int64_t rows = Extent(2048), k = Extent(600), n = Extent(600), groups = UpTo(5);
    const DType type = Float();
    const TensorSpec offsets = In({groups + 1}, DType::kI32);
    if (outer)
      return {"", {}, {In({rows, k}, type), In({rows, n}, type), offsets, Out({groups, k, n}, ResultOf(type))}};
    const bool transposed = Coin();
    Signature s = {"",
                   {Int("transposed", transposed ? 1 : 0)},
                   {In({rows, k}, type), transposed ? In({groups, n, k}, type) : In({groups, k, n}, type), offsets,
                    Out({rows, n}, ResultOf(type))}};
    if (Coin()) s.attributes.push_back(Int("leaves_rows_out", UpTo(9) == 1 ? 2 : 1));
    return s;
  }

  Signature Random(bool normal) {
    const std::vector<int64_t> shape = {UpTo(40), UpTo(40)};
    return {"",
            {Int("seed", 1), Int("key", 2), Ints("global_shape", shape), Ints("offsets", {0, 0}),
             kernels::testing::Float(normal ? "mean" : "lo", 0), kernels::testing::Float(normal ? "stddev" : "hi", 1)},
            {Out(shape, normal ? Float() : DType::kF32)}};
  }

  Signature Paged(std::string_view kernel) {
    const int64_t tokens = Extent(512), sequences = UpTo(40), kv = UpTo(4), group = UpTo(8), dim = UpTo(160);
    const TensorSpec rows = In({sequences + 1}, DType::kI32), lengths = In({sequences}, DType::kI32),
                     blocks = In({sequences, Extent(512)}, DType::kI32);
    if (kernel == "sequence_positions") return {"", {}, {rows, lengths, Out({tokens}, DType::kI32)}};
    const bool int8 = Coin();
    const DType cache_type = int8 ? DType::kU8 : Float(), own_type = int8 ? Float() : ResultOf(cache_type);
    TensorSpec cache = In({Extent(1000), UpTo(33), kv, int8 ? dim + 4 : dim}, cache_type);
    const Attribute format = {"format", {}, {}, "int8"};
    if (kernel == "cache_write") {
      cache.access = Access::kReadWrite;
      Signature s = {"", {}, {cache, In({tokens, kv, dim}, own_type), rows, lengths, blocks}};
      if (int8) s.attributes.push_back(format);
      return s;
    }
    const std::vector<int64_t> query = {tokens, group * kv, dim};
    Signature s = {"",
                   {kernels::testing::Float("scale", 0.1)},
                   {In(query, own_type), cache, cache, rows, lengths, blocks, Out(query, own_type)}};
    if (Coin()) s.attributes.push_back(Int("window", UpTo(600) - 1));
    if (int8) s.attributes.push_back(format);
    return s;
  }

  Signature Quantized(bool gathers) {
    constexpr std::array kFormats = {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ4_K, DType::kQ6_K};
    const ElementTypeInfo& format = InfoOf(kFormats[static_cast<size_t>(UpTo(5) - 1)]);
    const int64_t n = Extent(2000), blocks = UpTo(9), k = blocks * format.block_elements, m = Extent(600);
    const TensorSpec weights = In({n, blocks, format.block_bytes}, DType::kU8);
    const DType type = Coin() ? DType::kF32 : DType::kBF16;
    const Attribute name = {"format", {}, {}, std::string(format.name)};
    if (gathers) return {"", {name}, {weights, In({m}, DType::kI32), Out({m, k}, type)}};
    return {"", {name}, {In({m, k}, type), weights, Out({m, n}, ResultOf(type))}};
  }

  Signature SampleTokens() {
    const int64_t rows = UpTo(64), room = UpTo(20);
    const TensorSpec words = In({rows}, DType::kI32), numbers = In({rows});
    return {"",
            {},
            {In({rows, Extent(50000)}), numbers, words, numbers, In({rows, 2}, DType::kI32), words, words,
             Out({rows}, DType::kI32), Out({rows}), Out({rows, room}, DType::kI32), Out({rows, room})}};
  }

  // With a count of valid rows in front of the result, or as it is.
  Signature MaybeCounted(std::vector<TensorSpec> arguments) {
    if (Coin()) return {"", {}, std::move(arguments)};
    arguments.insert(arguments.end() - 1, In({UpTo(5)}, DType::kI32));
    return {"", {Int("leaves_rows_out", 1)}, std::move(arguments)};
  }

  Signature Valid(std::string_view kernel) {
    if (kernel == "matmul") return Matmul();
    if (kernel == "pack_matrix") return PackMatrix();
    if (kernel == "attention_forward") return Attention(/*backward=*/false);
    if (kernel == "attention_backward") return Attention(/*backward=*/true);
    if (kernel == "grouped_matmul") return Grouped(/*outer=*/false);
    if (kernel == "grouped_outer") return Grouped(/*outer=*/true);
    if (kernel == "cache_write" || kernel == "paged_attention" || kernel == "sequence_positions") return Paged(kernel);
    if (kernel == "quantized_gather") return Quantized(/*gathers=*/true);
    if (kernel == "quantized_matmul") return Quantized(/*gathers=*/false);
    if (kernel == "sample_tokens") return SampleTokens();
    if (kernel == "random_normal") return Random(/*normal=*/true);
    if (kernel == "random_uniform") return Random(/*normal=*/false);
    const int64_t rows = Extent(5000), columns = UpTo(300), tokens = Extent(5000);
    const DType type = Float();
    const TensorSpec ids = In({tokens}, DType::kI32);
    if (kernel == "gather_rows") return MaybeCounted({In({rows, columns}, type), ids, Out({tokens, columns}, type)});
    if (kernel == "scatter_add_rows") {
      return MaybeCounted({In({tokens, columns}, type), ids, Out({rows, columns}, ResultOf(type))});
    }
    if (kernel == "check_ids" || kernel == "check_offsets") {
      return {"", {Int("rows", rows)}, {In({columns}, DType::kI32), {Access::kReadWrite, DType::kI32, {2}}}};
    }
    if (kernel == "fill") return {"", {kernels::testing::Float("value", 1)}, {Out({rows}, type)}};
    if (kernel == "rope_angles") {
      return {"",
              {kernels::testing::Float("theta", 1e4)},
              {In({tokens}, DType::kI32), Out({tokens, columns}, type), Out({tokens, columns}, type)}};
    }
    ADD_FAILURE() << "no signatures of '" << kernel << "': add them";
    return {};
  }

  // Something that kernels refuse, mostly.
  void Spoil(Signature& signature) {
    const int64_t what = UpTo(5);
    TensorSpec& argument = signature.arguments[static_cast<size_t>(UpTo(signature.arguments.size()) - 1)];
    if (what == 1) argument.dtype = DType::kI64;
    if (what == 2) argument.shape.push_back(2);
    if (what == 3) argument.shape.back() += 1;
    if (what == 4) signature.arguments.pop_back();
    if (what == 5) signature.attributes.push_back(Int("nobody_knows", 1));
  }

  std::mt19937_64 random_;
};

class KernelNeeds : public IsaTest {};

TEST_P(KernelNeeds, AreThoseOfTheKernels) {
  constexpr int kRounds = 400;
  RandomSignatures signatures(17 + static_cast<uint64_t>(GetParam()));
  for (const std::string_view name : CpuKernelNames()) {
    int accepted = 0, refused = 0, with_scratch = 0;
    for (int round = 0; round < kRounds; ++round) {
      const Signature signature = signatures.Of(name);
      const auto scratch = CpuKernelScratch(signature, GetParam());
      const auto kernel = CreateKernel(signature);
      ASSERT_EQ(scratch.status(), kernel.status()) << name;
      if (!kernel.ok()) {
        ++refused;
        continue;
      }
      ++accepted;
      with_scratch += *scratch > 0;
      ASSERT_EQ(*scratch, (*kernel)->ScratchBytes()) << name << ", round " << round;
    }
    EXPECT_GT(accepted, kRounds / 3) << name;
    EXPECT_GT(refused, 0) << name;
    const bool needs_none = name == "cache_write" || name == "check_ids" || name == "check_offsets" || name == "fill" ||
                            name == "gather_rows" || name == "pack_matrix" || name == "quantized_gather" ||
                            name == "rope_angles" || name == "random_normal" || name == "random_uniform" ||
                            name == "sequence_positions";
    EXPECT_EQ(with_scratch == 0, needs_none) << name;
  }
}

// On both sides of the least extents for which AMX multiplies f32.
TEST_P(KernelNeeds, OfProductsOfF32) {
  for (const int64_t m : {15, 16, 2100}) {
    for (const int64_t n : {15, 16, 1601}) {
      for (const int64_t k : {63, 64, 768, 1603}) {
        for (const bool packed : {false, true}) {
          for (const int threads : {1, 2, 7}) {
            const Signature signature = {
                "matmul",
                {Int("batch", 1), Int("m", m), Int("n", n), Int("k", k), Ints("a_strides", {0, k, 1}),
                 packed ? Int("b_packed", 1) : Ints("b_strides", {0, n, 1}), Ints("c_strides", {0, n, 1}),
                 Int("bf16x6", 1)},
                {In({m, k}), In({packed ? PackedElements(k, n, DType::kF32) : k * n}), Out({m, n})},
                threads};
            const auto scratch = CpuKernelScratch(signature, GetParam());
            const auto kernel = CreateKernel(signature);
            ASSERT_TRUE(scratch.ok() && kernel.ok()) << scratch.status() << kernel.status();
            EXPECT_EQ(*scratch, (*kernel)->ScratchBytes()) << m << "x" << n << "x" << k << ", packed " << packed;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, KernelNeeds, AllIsas(), IsaName);

TEST(KernelNeedsOfAll, EveryRegisteredKernelHasThem) {
  std::vector<std::string_view> registered;
  for (const KernelDefinition& definition : AllKernels()) registered.push_back(definition.name);
  EXPECT_THAT(CpuKernelNames(), ::testing::ElementsAreArray(registered));
  EXPECT_EQ(CpuKernelScratch({"no_kernel", {}, {}}, kBestIsa).status(), CreateKernel({"no_kernel", {}, {}}).status());
}

}  // namespace
}  // namespace bowline::kernels::testing
