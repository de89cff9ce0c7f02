// Attention on one thread, see contenders.h for how it is measured. "widened" is bf16 without AVX512-BF16, and
// "best bf16" what this processor does. Flops are those of the pairs of a query and a key that see each other: two
// products forward, five backward.
//
//   bowline-attention-bench [--rounds N] [--best] [SHAPE...]     SHAPE: BxHxKVxSxD, 'c' if causal, then 'w' and a
//                                                                window if there is one: 8x6x6x256x64c,
//                                                                1x8x2x4096x64cw512

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "kernels/benchmarks/contenders.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/registry/registry.h"

namespace bowline::kernels {
namespace {

struct Case {
  int64_t batch, heads, kv_heads, length, dim;
  bool causal;
  int64_t window = 0;  // 0: none
  double Flops(bool backward) const {
    const double s = static_cast<double>(length), w = static_cast<double>(window);
    const double pairs = !causal                          ? s * s
                         : window == 0 || window > length ? s * (s + 1) / 2
                                                          : w * (w + 1) / 2 + (s - w) * w;
    return (backward ? 5 : 2) * 2.0 * pairs * static_cast<double>(batch * heads * dim);
  }
  std::string Name() const {
    std::string name = std::to_string(batch);
    for (int64_t extent : {heads, kv_heads, length, dim}) name += "x" + std::to_string(extent);
    return name + (causal ? "c" : "") + (window > 0 ? "w" + std::to_string(window) : "");
  }
};

Signature Sign(const Case& c, bool backward, DType dtype) {
  const TensorSpec q{Access::kRead, dtype, {c.batch, c.length, c.heads, c.dim}},
      k{Access::kRead, dtype, {c.batch, c.length, c.kv_heads, c.dim}},
      lse{Access::kRead, DType::kF32, {c.batch, c.heads, c.length}};
  const auto written = [](TensorSpec spec) {
    spec.access = Access::kWrite;
    return spec;
  };
  const double scale = 1 / std::sqrt(static_cast<double>(c.dim));
  Signature signature{backward ? "attention_backward" : "attention_forward",
                      {Attribute{"causal", {c.causal ? 1 : 0}, {}, {}}, Attribute{"scale", {}, {scale}, {}}},
                      {},
                      1};
  if (c.window > 0) signature.attributes.push_back({"window", {c.window}, {}, {}});
  if (backward) {
    signature.arguments = {q, k, k, q, lse, q, written(q), written(k), written(k)};
  } else {
    signature.arguments = {q, k, k, written(q), written(lse)};
  }
  return signature;
}

// Values in (-1, 1), the result of the forward pass, and its statistics; one set for all contenders of a type.
struct Tensors {
  std::vector<std::vector<unsigned char>> of;  // arguments of the backward pass
  explicit Tensors(const Signature& backward) {
    std::mt19937 random(1);
    for (const TensorSpec& spec : backward.arguments) {
      of.emplace_back(spec.ByteCount());
      for (int64_t i = 0; i < spec.ElementCount(); ++i) {
        const float value = static_cast<float>(random()) * 0x1p-31f - 1.0f;
        const bool half = spec.dtype == DType::kBF16;  // bf16 has the upper bytes of an f32
        std::memcpy(of.back().data() + i * (half ? 2 : 4), reinterpret_cast<const char*>(&value) + (half ? 2 : 0),
                    half ? 2 : 4);
      }
    }
  }
};

Contender Make(std::string name, const Case& c, bool backward, DType dtype, Tensors& x) {
  auto kernel = CreateKernel(Sign(c, backward, dtype));
  if (!kernel.ok()) {
    std::fprintf(stderr, "%s\n", kernel.status().ToString().c_str());
    std::exit(1);
  }
  std::shared_ptr<Kernel> shared = *std::move(kernel);
  std::shared_ptr<void> scratch(std::aligned_alloc(64, (shared->ScratchBytes() + 64) / 64 * 64), &std::free);
  std::vector<void*> arguments;
  for (size_t i = 0; i < (backward ? 9 : 5); ++i) arguments.push_back(x.of[i].data());
  return {std::move(name), c.Flops(backward), [=] { shared->Run(arguments, scratch.get()); }};
}

void Compare(const Case& c, int rounds, bool best) {
  Tensors f32(Sign(c, true, DType::kF32)), bf16(Sign(c, true, DType::kBF16));
  for (bool backward : {false, true}) {
    std::vector<Contender> contenders = Peaks(true, /*tiles=*/false);
    contenders.push_back(Make("f32", c, backward, DType::kF32, f32));
    LimitIsaForTesting(Isa::kAvx512);
    contenders.push_back(Make("widened bf16", c, backward, DType::kBF16, bf16));
    LimitIsaForTesting(Isa::kAvx512Bf16);
    contenders.push_back(Make("bf16", c, backward, DType::kBF16, bf16));
    LimitIsaForTesting(kBestIsa);
    contenders.push_back(Make("best bf16", c, backward, DType::kBF16, bf16));
    TakeTurns(contenders, rounds, static_cast<int>(std::max(1.0, 1e9 / c.Flops(backward))));
    Report(c.Name() + (backward ? " backward" : " forward"), contenders, best);
  }
}

bool Parse(const char* text, Case* c) {
  long long b, h, kv, s, d, window = 0;
  char causal = 0, limited = 0;
  const int read =
      std::sscanf(text, "%lldx%lldx%lldx%lldx%lld%c%c%lld", &b, &h, &kv, &s, &d, &causal, &limited, &window);
  if (read < 5 || (read > 5 && causal != 'c') || (read > 6 && (limited != 'w' || window < 1))) return false;
  *c = {b, h, kv, s, d, causal == 'c', window};
  return b > 0 && h > 0 && kv > 0 && s > 0 && d > 0;
}

}  // namespace
}  // namespace bowline::kernels

int main(int argc, char** argv) {
  using bowline::kernels::Case;
  int rounds = 9;
  bool best = false;
  std::vector<Case> cases;
  for (int i = 1; i < argc; ++i) {
    Case c;
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      rounds = std::max(1, std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--best") == 0) {
      best = true;
    } else if (bowline::kernels::Parse(argv[i], &c)) {
      cases.push_back(c);
    } else {
      std::fprintf(stderr, "usage: %s [--rounds N] [--best] [BxHxKVxSxD[c[wWINDOW]]...]\n", argv[0]);
      return 1;
    }
  }
  // The demo, GPT-2 and Llama 160M in training; then a long one with grouped heads.
  if (cases.empty()) {
    cases = {
        {8, 6, 6, 256, 64, true}, {2, 12, 12, 512, 64, true}, {1, 12, 12, 1024, 64, true}, {1, 4, 1, 2048, 128, true}};
  }
  for (const Case& c : cases) bowline::kernels::Compare(c, rounds, best);
}
