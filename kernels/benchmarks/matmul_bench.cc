// Products of matrices beside oneDNN's where the build has it; see contenders.h for how they are measured. oneDNN and
// the peaks have one thread.
//
//   bowline-matmul-bench [--rounds N] [--threads N] [--best] [--f32] [--cold] [SHAPE...]
// SHAPE: MxNxK/NT, each letter N or T for A and B. --best takes the fastest turn instead of the median one. --cold
// multiplies another copy of the operands each time, of so many that they come from memory, as in a training step.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/benchmarks/contenders.h"
#include "kernels/benchmarks/onednn.h"
#include "kernels/registry/registry.h"

namespace bowline::kernels {
namespace {

struct Case {
  int64_t m, n, k;
  bool a_t, b_t;
  double Flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  std::string Name() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + "/" + (a_t ? "T" : "N") +
           (b_t ? "T" : "N");
  }
};

Attribute Ints(std::string name, std::vector<int64_t> values) { return {std::move(name), std::move(values), {}, {}}; }

Signature Sign(const Case& c, DType operands, DType result, int threads) {
  return {"matmul",
          {Ints("batch", {1}), Ints("m", {c.m}), Ints("n", {c.n}), Ints("k", {c.k}),
           Ints("a_strides", c.a_t ? std::vector<int64_t>{0, 1, c.m} : std::vector<int64_t>{0, c.k, 1}),
           Ints("b_strides", c.b_t ? std::vector<int64_t>{0, 1, c.k} : std::vector<int64_t>{0, c.n, 1}),
           Ints("c_strides", {0, c.n, 1})},
          {{Access::kRead, operands, {c.m, c.k}},
           {Access::kRead, operands, {c.k, c.n}},
           {Access::kWrite, result, {c.m, c.n}}},
          threads};
}

struct Buffers {
  std::vector<float> a, b, c;
  explicit Buffers(const Case& s) : a(s.m * s.k), b(s.k * s.n), c(s.m * s.n) {
    std::mt19937 random(1);
    // Any bits of these are finite bf16 numbers too: the halves of a float in [1, 2) are not both, so use one constant
    // exponent in both halves.
    const auto fill = [&](std::vector<float>& x) {
      for (float& value : x) {
        const uint32_t bits = (0x3F803F80u | (random() & 0x007F007Fu)) ^ (random() & 0x80008000u);
        std::memcpy(&value, &bits, sizeof(value));
      }
    };
    fill(a);
    fill(b);
  }
};

// Copies of a case's buffers that are used one after the other.
class Rotation {
 public:
  Rotation(const Case& s, bool cold) {
    constexpr int64_t kColdBytes = int64_t{192} << 20;  // several times a last-level cache's share of one core
    const int64_t bytes = 4 * (s.m * s.k + s.k * s.n + s.m * s.n);
    const int64_t copies = cold ? std::clamp<int64_t>(kColdBytes / bytes, 2, 64) : 1;
    for (int64_t i = 0; i < copies; ++i) copies_.emplace_back(s);
  }
  Buffers& Next() { return copies_[next_++ % copies_.size()]; }

 private:
  std::vector<Buffers> copies_;
  size_t next_ = 0;
};

std::function<void()> Bowline(const Signature& signature, Rotation& rotation) {
  auto kernel = CreateKernel(signature);
  if (!kernel.ok()) {
    std::fprintf(stderr, "%s\n", kernel.status().ToString().c_str());
    std::exit(1);
  }
  std::shared_ptr<Kernel> shared = *std::move(kernel);
  std::shared_ptr<void> scratch(std::aligned_alloc(64, (shared->ScratchBytes() + 64) / 64 * 64), &std::free);
  return [shared, scratch, &rotation] {
    Buffers& x = rotation.Next();
    shared->Run({x.a.data(), x.b.data(), x.c.data()}, scratch.get());
  };
}

struct Options {
  int rounds = 9, threads = 1;
  bool bf16 = true, best = false, cold = false;
};

void Compare(const Case& s, const Options& options) {
  const bool bf16 = options.bf16;
  Rotation x(s, options.cold);
  std::vector<Contender> contenders = Peaks(bf16, /*tiles=*/true);
  contenders.push_back({"bowline f32", s.Flops(), Bowline(Sign(s, DType::kF32, DType::kF32, options.threads), x)});
  const auto add_onednn = [&](const char* name, bool of_bf16) {
    const OneDnnProduct product = MakeOneDnnProduct({s.m, s.n, s.k, s.a_t, s.b_t, of_bf16}, /*threads=*/1);
    if (product == nullptr) return;
    contenders.push_back({name, s.Flops(), [&x, product] {
                            Buffers& next = x.Next();
                            product(next.a.data(), next.b.data(), next.c.data());
                          }});
  };
  add_onednn("onednn f32", false);
  if (bf16) {
    contenders.push_back({"bowline bf16", s.Flops(), Bowline(Sign(s, DType::kBF16, DType::kF32, options.threads), x)});
    contenders.push_back({"to bf16", s.Flops(), Bowline(Sign(s, DType::kBF16, DType::kBF16, options.threads), x)});
    add_onednn("onednn bf16", true);
  }
  // Small products are repeated so that one turn takes about 10 ms.
  TakeTurns(contenders, options.rounds, static_cast<int>(std::max(1.0, 1e9 / s.Flops())),
            options.threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
  Report(s.Name(), contenders, options.best);
}

bool Parse(const char* text, Case* c) {
  char a, b;
  long long m, n, k;
  if (std::sscanf(text, "%lldx%lldx%lld/%c%c", &m, &n, &k, &a, &b) != 5) return false;
  *c = {m, n, k, a == 'T', b == 'T'};
  return m > 0 && n > 0 && k > 0 && (a == 'N' || a == 'T') && (b == 'N' || b == 'T');
}

}  // namespace
}  // namespace bowline::kernels

int main(int argc, char** argv) {
  using bowline::kernels::Case;
  bowline::kernels::Options options;
  std::vector<Case> cases;
  for (int i = 1; i < argc; ++i) {
    Case c;
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      options.rounds = std::max(1, std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
      options.threads = static_cast<int>(std::clamp(std::strtol(argv[++i], nullptr, 10), 1L, 1024L));
    } else if (std::strcmp(argv[i], "--f32") == 0) {
      options.bf16 = false;
    } else if (std::strcmp(argv[i], "--best") == 0) {
      options.best = true;
    } else if (std::strcmp(argv[i], "--cold") == 0) {
      options.cold = true;
    } else if (bowline::kernels::Parse(argv[i], &c)) {
      cases.push_back(c);
    } else {
      std::fprintf(stderr, "usage: %s [--rounds N] [--threads N] [--best] [--f32] [--cold] [MxNxK/NT...]\n", argv[0]);
      return 1;
    }
  }
  // The products of a linear layer in training, tokens x out x in: forward, gradient of the input, of the weight.
  if (cases.empty()) {
    for (int64_t tokens : {1024, 2048}) {
      for (auto [in, out] :
           {std::pair<int64_t, int64_t>{768, 768}, {768, 2304}, {768, 3072}, {3072, 768}, {384, 1024}, {768, 50257}}) {
        if (tokens == 2048 && out == 50257) continue;
        cases.push_back({tokens, out, in, false, true});
        cases.push_back({tokens, in, out, false, false});
        cases.push_back({out, in, tokens, true, false});
      }
    }
  }
  for (const Case& c : cases) bowline::kernels::Compare(c, options);
  double load[3] = {};
  if (getloadavg(load, 3) == 3) std::printf("load of the machine: %.2f %.2f %.2f\n", load[0], load[1], load[2]);
}
