// Throughput of the kernels: GFLOP/s where arithmetic bounds them, GB/s (bytes read plus written) where memory does.
// oneDNN's product, where the build has it, and a plain copy of memory are the yardsticks. Names end in the number of
// threads.

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/benchmarks/onednn.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/registry/registry.h"
#include "types/cache_rows.h"

namespace bowline::kernels {
namespace {

TensorSpec Spec(Access access, std::vector<int64_t> shape, DType dtype = DType::kF32) {
  return {access, dtype, std::move(shape)};
}

Attribute Ints(std::string name, std::vector<int64_t> values) { return {std::move(name), std::move(values), {}, {}}; }
Attribute Float(std::string name, double value) { return {std::move(name), {}, {value}, {}}; }

// Of large pages, as buffers of sessions are (runtime/drivers/host/host_allocation.cc).
struct Buffer {
  static constexpr size_t kPage = size_t{2} << 20;

  explicit Buffer(size_t bytes) : data(std::aligned_alloc(bytes < kPage ? 64 : kPage, bytes / kPage * kPage + kPage)) {
    if (bytes >= kPage) ::madvise(data, bytes, MADV_HUGEPAGE);
    std::memset(data, 0, bytes);
  }
  Buffer(Buffer&& other) noexcept : data(std::exchange(other.data, nullptr)) {}
  ~Buffer() { std::free(data); }
  void* data;
};

// Runs the kernel on random floats in [-1, 1) and ids below `id_limit`.
void RunKernel(benchmark::State& state, const Signature& signature, double flops, double bytes, int32_t id_limit = 1) {
  auto kernel = CreateKernel(signature);
  if (!kernel.ok()) return state.SkipWithError(kernel.status().ToString().c_str());
  std::mt19937 random(1);
  std::vector<Buffer> buffers;
  std::vector<void*> arguments;
  for (const TensorSpec& spec : signature.arguments) {
    buffers.emplace_back(spec.ByteCount());
    arguments.push_back(buffers.back().data);
    for (int64_t i = 0; i < spec.ElementCount(); ++i) {
      if (spec.dtype == DType::kI32) {
        static_cast<int32_t*>(arguments.back())[i] = static_cast<int32_t>(random() % id_limit);
      } else {
        static_cast<float*>(arguments.back())[i] = static_cast<float>(random()) * 0x1p-31f - 1.0f;
      }
    }
  }
  Buffer scratch((*kernel)->ScratchBytes());
  for (auto _ : state) (*kernel)->Run(arguments, scratch.data);
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  if (flops > 0) state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, rate);
  if (bytes > 0) state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, rate);
}

void Matmul(benchmark::State& state, int64_t m, int64_t n, int64_t k, bool a_t, bool b_t, int threads) {
  Signature signature{"matmul",
                      {Ints("batch", {1}), Ints("m", {m}), Ints("n", {n}), Ints("k", {k}),
                       Ints("a_strides", a_t ? std::vector<int64_t>{0, 1, m} : std::vector<int64_t>{0, k, 1}),
                       Ints("b_strides", b_t ? std::vector<int64_t>{0, 1, k} : std::vector<int64_t>{0, n, 1}),
                       Ints("c_strides", {0, n, 1})},
                      {Spec(Access::kRead, {m, k}), Spec(Access::kRead, {k, n}), Spec(Access::kWrite, {m, n})},
                      threads};
  RunKernel(state, signature, 2.0 * m * n * k, 0);
}

void OneDnnMatmul(benchmark::State& state, const OneDnnShape& s, const OneDnnProduct& product) {
  std::vector<float> a(s.m * s.k, 0.5f), b(s.k * s.n, 0.25f), c(s.m * s.n);
  for (auto _ : state) product(a.data(), b.data(), c.data());
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * s.m * s.n * s.k, benchmark::Counter::kIsIterationInvariantRate);
}

void Attention(benchmark::State& state, bool backward, bool causal, int threads) {
  const int64_t b = 8, s = 256, h = 6, d = 64;
  const std::vector<int64_t> x = {b, s, h, d}, lse = {b, h, s};
  Signature signature{backward ? "attention_backward" : "attention_forward",
                      {Ints("causal", {causal}), Float("scale", 0.125)},
                      {Spec(Access::kRead, x), Spec(Access::kRead, x), Spec(Access::kRead, x)},
                      threads};
  if (backward) {
    signature.arguments.push_back(Spec(Access::kRead, x));
    signature.arguments.push_back(Spec(Access::kRead, lse));
    signature.arguments.push_back(Spec(Access::kRead, x));
    for (int i = 0; i < 3; ++i) signature.arguments.push_back(Spec(Access::kWrite, x));
  } else {
    signature.arguments.push_back(Spec(Access::kWrite, x));
    signature.arguments.push_back(Spec(Access::kWrite, lse));
  }
  // Two products forward, five backward, over the pairs that are seen.
  const double pairs = causal ? s * (s + 1) / 2.0 : static_cast<double>(s * s);
  RunKernel(state, signature, (backward ? 5 : 2) * 2.0 * d * b * h * pairs, 0);
}

// Tokens of `rows` rows of logits as models have them; all results or the token alone.
void SampleTokens(benchmark::State& state, int64_t rows, int64_t vocabulary, float temperature, int32_t top_k,
                  float top_p, int32_t wanted, int threads) {
  constexpr int64_t kLikely = 20;
  const auto ints = [](Access access, std::vector<int64_t> shape) {
    return Spec(access, std::move(shape), DType::kI32);
  };
  const Signature signature{
      "sample_tokens",
      {},
      {Spec(Access::kRead, {rows, vocabulary}), Spec(Access::kRead, {rows}), ints(Access::kRead, {rows}),
       Spec(Access::kRead, {rows}), ints(Access::kRead, {rows, 2}), ints(Access::kRead, {rows}),
       ints(Access::kRead, {rows}), ints(Access::kWrite, {rows}), Spec(Access::kWrite, {rows}),
       ints(Access::kWrite, {rows, kLikely}), Spec(Access::kWrite, {rows, kLikely})},
      threads};
  auto kernel = CreateKernel(signature);
  if (!kernel.ok()) return state.SkipWithError(kernel.status().ToString().c_str());
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<Buffer> buffers;
  std::vector<void*> arguments;
  for (const TensorSpec& spec : signature.arguments) {
    buffers.emplace_back(spec.ByteCount());
    arguments.push_back(buffers.back().data);
  }
  for (int64_t i = 0; i < rows * vocabulary; ++i) static_cast<float*>(arguments[0])[i] = normal(random);
  std::fill_n(static_cast<float*>(arguments[1]), rows, temperature);
  std::fill_n(static_cast<int32_t*>(arguments[2]), rows, top_k);
  std::fill_n(static_cast<float*>(arguments[3]), rows, top_p);
  std::fill_n(static_cast<int32_t*>(arguments[6]), rows, wanted);
  Buffer scratch((*kernel)->ScratchBytes());
  int32_t position = 0;
  for (auto _ : state) {
    std::fill_n(static_cast<int32_t*>(arguments[5]), rows, position++);
    (*kernel)->Run(arguments, scratch.data);
  }
}

struct PagedCase {
  const char* name;
  int64_t heads, kv_heads, head_dim;
};

// `sequences` of `rows` rows each, behind which the cache holds `context` tokens, in blocks of 16 that are shuffled. A
// cache of u8 has rows of int8, and queries of f32.
void PagedAttention(benchmark::State& state, const PagedCase& c, DType dtype, int64_t sequences, int64_t rows,
                    int64_t context, int threads) {
  constexpr int64_t kBlock = 16;
  const int64_t table = (context + kBlock - 1) / kBlock, blocks = sequences * table + 1;
  const bool int8 = dtype == DType::kU8;
  const DType own = int8 ? DType::kF32 : dtype;
  const int64_t row = int8 ? Int8RowBytes(c.head_dim) : c.head_dim;
  const std::vector<int64_t> cache = {blocks, kBlock, c.kv_heads, row}, query = {sequences * rows, c.heads, c.head_dim};
  Signature signature{
      "paged_attention",
      {Float("scale", 0.125)},
      {Spec(Access::kRead, query, own), Spec(Access::kRead, cache, dtype), Spec(Access::kRead, cache, dtype),
       Spec(Access::kRead, {sequences + 1}, DType::kI32), Spec(Access::kRead, {sequences}, DType::kI32),
       Spec(Access::kRead, {sequences, table}, DType::kI32), Spec(Access::kWrite, query, own)},
      threads};
  if (int8) signature.attributes.push_back({"format", {}, {}, std::string(kInt8Rows)});
  auto kernel = CreateKernel(signature);
  if (!kernel.ok()) return state.SkipWithError(kernel.status().ToString().c_str());
  std::mt19937 random(1);
  std::vector<Buffer> buffers;
  std::vector<void*> arguments;
  for (const TensorSpec& spec : signature.arguments) {
    buffers.emplace_back(spec.ByteCount());
    arguments.push_back(buffers.back().data);
    for (int64_t i = 0; i < spec.ElementCount() && spec.dtype != DType::kI32; ++i) {
      const float value = static_cast<float>(random()) * 0x1p-31f - 1.0f;
      if (spec.dtype == DType::kF32) {
        static_cast<float*>(arguments.back())[i] = value;
      } else if (spec.dtype == DType::kBF16) {
        static_cast<Bf16*>(arguments.back())[i] = Narrow<Bf16>(value);
      } else {
        static_cast<uint8_t*>(arguments.back())[i] = static_cast<uint8_t>(static_cast<int>(127 * value));
      }
    }
    constexpr float kScale = 1.0f / 127;
    for (size_t i = 0; i < spec.ByteCount() && spec.dtype == DType::kU8; i += static_cast<size_t>(row)) {
      std::memcpy(static_cast<char*>(arguments.back()) + i, &kScale, sizeof(kScale));
    }
  }
  int32_t *starts = static_cast<int32_t*>(arguments[3]), *lengths = static_cast<int32_t*>(arguments[4]),
          *places = static_cast<int32_t*>(arguments[5]);
  for (int64_t r = 0; r <= sequences; ++r) starts[r] = static_cast<int32_t>(r * rows);
  std::fill_n(lengths, sequences, static_cast<int32_t>(context));
  std::iota(places, places + sequences * table, 1);
  std::shuffle(places, places + sequences * table, random);
  Buffer scratch((*kernel)->ScratchBytes());
  for (auto _ : state) (*kernel)->Run(arguments, scratch.data);
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  const double tokens = static_cast<double>(sequences * context);
  if (rows == 1) {
    const double bytes = 2.0 * static_cast<double>(c.kv_heads * row) * static_cast<double>(SizeOf(dtype));
    state.counters["GB/s"] = benchmark::Counter(tokens * bytes * 1e-9, rate);
    state.counters["tokens/us"] = benchmark::Counter(tokens * 1e-6, rate);
  } else {
    const double pairs = static_cast<double>(sequences * rows) * (static_cast<double>(context) - 0.5 * (rows - 1.0));
    state.counters["GFLOP/s"] = benchmark::Counter(4e-9 * static_cast<double>(c.heads * c.head_dim) * pairs, rate);
  }
}

// The same of keys and values that lie one after the other, to compare with.
void CausalAttention(benchmark::State& state, const PagedCase& c, int64_t rows, int64_t context, int threads) {
  const std::vector<int64_t> q = {1, rows, c.heads, c.head_dim}, k = {1, context, c.kv_heads, c.head_dim};
  const double pairs = static_cast<double>(rows) * (static_cast<double>(context) - 0.5 * (rows - 1.0));
  RunKernel(state,
            {"attention_forward",
             {Ints("causal", {1}), Float("scale", 0.125)},
             {Spec(Access::kRead, q), Spec(Access::kRead, k), Spec(Access::kRead, k), Spec(Access::kWrite, q),
              Spec(Access::kWrite, {1, c.heads, rows})},
             threads},
            4.0 * static_cast<double>(c.heads * c.head_dim) * pairs, 0);
}

// x [m, k] times weights [n, k]: of blocks, or dense in f32 or bf16 with x of the same type, to compare with. GB/s are
// those of the weights' bytes.
void ProductWithWeights(benchmark::State& state, DType x, DType weights, int64_t m, int64_t n, int64_t k, int threads) {
  const ElementTypeInfo& info = InfoOf(weights);
  const bool dense = info.block_elements == 1;
  const TensorSpec rows = Spec(Access::kRead, {m, k}, x), out = Spec(Access::kWrite, {m, n}, x);
  Signature signature{"matmul",
                      {Ints("batch", {1}), Ints("m", {m}), Ints("n", {n}), Ints("k", {k}), Ints("a_strides", {0, k, 1}),
                       Ints("b_strides", {0, 1, k}), Ints("c_strides", {0, n, 1})},
                      {rows, Spec(Access::kRead, {k, n}, weights), out},
                      threads};
  if (!dense) {
    const TensorSpec blocks = Spec(Access::kRead, {n, k / info.block_elements, info.block_bytes}, DType::kU8);
    signature = {"quantized_matmul", {{"format", {}, {}, std::string(info.name)}}, {rows, blocks, out}, threads};
  }
  auto kernel = CreateKernel(signature);
  if (!kernel.ok()) return state.SkipWithError(kernel.status().ToString().c_str());
  std::mt19937 random(1);
  std::vector<Buffer> buffers;
  std::vector<void*> arguments;
  for (const TensorSpec& spec : signature.arguments) {
    buffers.emplace_back(spec.ByteCount());
    uint8_t* bytes = static_cast<uint8_t*>(buffers.back().data);
    arguments.push_back(bytes);
    // All bytes are random, but for exponents: the numbers are finite, and neither small nor large.
    const size_t element = spec.dtype == DType::kU8 ? static_cast<size_t>(info.block_bytes) : SizeOf(spec.dtype);
    for (size_t i = 0; i < spec.ByteCount(); ++i) bytes[i] = static_cast<uint8_t>(random());
    for (size_t i = 0; i < spec.ByteCount(); i += element) {
      if (spec.dtype != DType::kU8) {
        bytes[i + element - 1] = 0x3f;
      } else if (weights == DType::kQ6_K) {
        bytes[i + 209] = 0x20;
      } else {
        bytes[i + 1] = bytes[i + 3] = 0x20;  // q8_0 and q4_0 have no second half, but any byte there
      }
    }
  }
  Buffer scratch((*kernel)->ScratchBytes());
  for (auto _ : state) (*kernel)->Run(arguments, scratch.data);
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  const double elements = static_cast<double>(n) * static_cast<double>(k);
  const double bytes = elements / info.block_elements * info.block_bytes;
  state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, rate);
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * static_cast<double>(m) * elements, rate);
}

void ReadMemory(benchmark::State& state, int64_t bytes, int threads) {
  const Buffer buffer(bytes);
  const int64_t* from = static_cast<const int64_t*>(buffer.data);
  const ParallelLoop loop(threads);
  for (auto _ : state) {
    loop.Run(bytes / 8, [&](int64_t begin, int64_t end) {
      benchmark::DoNotOptimize(std::accumulate(from + begin, from + end, int64_t{0}));
    });
  }
  state.counters["GB/s"] = benchmark::Counter(1e-9 * bytes, benchmark::Counter::kIsIterationInvariantRate);
}

void Embedding(benchmark::State& state, bool scatter, int threads) {
  const int64_t v = 32000, d = 384, n = 2048;
  const TensorSpec ids = Spec(Access::kRead, {n}, DType::kI32);
  Signature signature;
  signature.threads = threads;
  if (scatter) {
    signature.kernel = "scatter_add_rows";
    signature.arguments = {Spec(Access::kRead, {n, d}), ids, Spec(Access::kWrite, {v, d})};
    RunKernel(state, signature, 0, 4.0 * d * (v + 3 * n), static_cast<int32_t>(v));
  } else {
    signature.kernel = "gather_rows";
    signature.arguments = {Spec(Access::kRead, {v, d}), ids, Spec(Access::kWrite, {n, d})};
    RunKernel(state, signature, 0, 4.0 * d * 2 * n, static_cast<int32_t>(v));
  }
}

void CopyMemory(benchmark::State& state, int64_t bytes, int threads) {
  std::vector<char> from(bytes, 1), to(bytes);
  const ParallelLoop loop(threads);
  for (auto _ : state) {
    loop.Run(bytes, [&](int64_t begin, int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(end - begin));
    });
  }
  state.counters["GB/s"] = benchmark::Counter(2e-9 * bytes, benchmark::Counter::kIsIterationInvariantRate);
}

void SetMemory(benchmark::State& state, int64_t bytes, int threads) {
  std::vector<char> to(bytes);
  const ParallelLoop loop(threads);
  for (auto _ : state) {
    loop.Run(bytes,
             [&](int64_t begin, int64_t end) { std::memset(to.data() + begin, 0, static_cast<size_t>(end - begin)); });
  }
  state.counters["GB/s"] = benchmark::Counter(1e-9 * bytes, benchmark::Counter::kIsIterationInvariantRate);
}

void Register() {
  const auto add = [](const std::string& name, auto function) {
    benchmark::RegisterBenchmark(name.c_str(), function)->UseRealTime()->Unit(benchmark::kMicrosecond);
  };
  struct Case {
    int64_t m, n, k;
    bool a_t, b_t;
  };
  // The forward product of a linear layer and both of its gradients, then batch-1 decoding.
  const Case cases[] = {{2048, 1024, 384, false, false}, {2048, 1024, 384, false, true},
                        {2048, 384, 1024, false, false}, {384, 1024, 2048, true, false},
                        {2048, 384, 1024, false, true},  {8, 1024, 384, false, true},
                        {1, 1024, 384, false, false},    {1, 1024, 384, false, true}};
  for (int threads : {1, 2}) {
    const std::string suffix = "/threads:" + std::to_string(threads);
    for (const Case& c : cases) {
      const std::string shape = std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k) +
                                (c.a_t ? "/T" : "/N") + (c.b_t ? "T" : "N") + suffix;
      add("matmul_bowline/" + shape, [=](benchmark::State& s) { Matmul(s, c.m, c.n, c.k, c.a_t, c.b_t, threads); });
      const OneDnnShape other = {c.m, c.n, c.k, c.a_t, c.b_t, /*bf16=*/false};
      if (const OneDnnProduct product = MakeOneDnnProduct(other, threads)) {
        add("matmul_onednn/" + shape, [=](benchmark::State& s) { OneDnnMatmul(s, other, product); });
      }
    }
    for (bool backward : {false, true}) {
      for (bool causal : {false, true}) {
        add(std::string("attention_") + (backward ? "backward" : "forward") + (causal ? "/causal" : "/full") + suffix,
            [=](benchmark::State& s) { Attention(s, backward, causal, threads); });
      }
    }
    constexpr PagedCase kPaged[] = {{"smollm2_135m", 9, 3, 64}, {"llama3.2_1b", 32, 8, 64}};
    for (const PagedCase& c : kPaged) {
      const std::string name = c.name + suffix;
      for (const DType dtype : {DType::kF32, DType::kBF16, DType::kU8}) {
        const std::string type =
            absl::StrCat("/", dtype == DType::kU8 ? "int8" : std::string(NameOf(dtype)), "/", name);
        // 64,000 tokens of all sequences together, more than caches hold.
        for (const int64_t context : {100, 1000, 2048, 8000}) {
          add(absl::StrCat("paged_decode/", context, type),
              [=](benchmark::State& s) { PagedAttention(s, c, dtype, 64000 / context, 1, context, threads); });
        }
        for (const int64_t context : {512, 4096}) {
          add(absl::StrCat("paged_prefill/512/", context, type),
              [=](benchmark::State& s) { PagedAttention(s, c, dtype, 1, 512, context, threads); });
        }
      }
      for (const int64_t context : {512, 4096}) {
        add(absl::StrCat("attention_forward/512/", context, "/f32/", name),
            [=](benchmark::State& s) { CausalAttention(s, c, 512, context, threads); });
      }
    }
    // SmolLM2's products.
    constexpr int64_t kWeights[][2] = {{576, 576}, {1536, 576}, {576, 1536}, {4096, 4096}, {49152, 576}};
    for (const auto& [n, k] : kWeights) {
      for (const int64_t m : {1, 2, 4, 8, 16, 32, 64, 128, 512}) {
        for (const DType x : {DType::kF32, DType::kBF16}) {
          for (const DType type : {x, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ4_K, DType::kQ6_K}) {
            if (k % InfoOf(type).block_elements != 0) continue;
            const std::string name = absl::StrCat("weights/", std::string(NameOf(x)), "/", m, "x", n, "x", k, "/");
            add(absl::StrCat(name, std::string(NameOf(type)), suffix),
                [=, n = n, k = k](benchmark::State& s) { ProductWithWeights(s, x, type, m, n, k, threads); });
          }
        }
      }
    }
    for (const int64_t vocabulary : {49152, 151936}) {
      for (const int64_t rows : {1, 8}) {
        const std::string name = absl::StrCat("sample_tokens/", rows, "x", vocabulary, "/");
        const auto add_sampling = [&](const char* how, float temperature, int32_t top_k, float top_p, int32_t wanted) {
          add(absl::StrCat(name, how, suffix), [=](benchmark::State& s) {
            SampleTokens(s, rows, vocabulary, temperature, top_k, top_p, wanted, threads);
          });
        };
        add_sampling("greedy", 0, 0, 1, 1);
        add_sampling("temperature", 0.8F, 0, 1, 1);
        add_sampling("top_k_40", 0.8F, 40, 1, 1);
        add_sampling("top_p_0.9", 0.8F, 0, 0.9F, 1);
        add_sampling("top_p_0.9/likely_20", 0.8F, 0, 0.9F, 21);
      }
    }
    add("read_256MiB" + suffix, [=](benchmark::State& s) { ReadMemory(s, 256 << 20, threads); });
    add("gather_rows" + suffix, [=](benchmark::State& s) { Embedding(s, false, threads); });
    add("copy_3MiB" + suffix, [=](benchmark::State& s) { CopyMemory(s, 3 << 20, threads); });
    add("copy_48MiB" + suffix, [=](benchmark::State& s) { CopyMemory(s, 48 << 20, threads); });
    add("scatter_add_rows" + suffix, [=](benchmark::State& s) { Embedding(s, true, threads); });
    add("set_48MiB" + suffix, [=](benchmark::State& s) { SetMemory(s, 48 << 20, threads); });
  }
}

}  // namespace
}  // namespace bowline::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  bowline::kernels::Register();
  benchmark::RunSpecifiedBenchmarks();
}
