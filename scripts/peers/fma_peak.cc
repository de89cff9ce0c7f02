// Prints what the processors can multiply and add at most: GFLOP/s of fused multiply-adds on registers, for f32 and,
// where the processor has them, for pairs of bf16 (VDPBF16PS). A product of matrices cannot be faster.
//
//   fma_peak THREADS   ->   {"f32": 234.1, "bf16": 468.3}
//
// Each thread runs independent chains, more than latency times units; the best of several short turns is taken, because
// other programs can only slow a turn down.

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kChains = 12, kIterations = 1 << 21, kTurns = 60;

// The empty assembly keeps the compiler from seeing through a chain. Each returns its floating-point operations.
__attribute__((target("avx512f"))) double FmaAvx512() {
  __m512 sums[kChains] = {}, a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(0.25f);
  for (int i = 0; i < kIterations; ++i) {
#pragma unroll
    for (__m512& sum : sums) {
      sum = _mm512_fmadd_ps(a, b, sum);
      asm volatile("" : "+v"(sum));
    }
  }
  return 2.0 * 16 * kChains * kIterations;
}

__attribute__((target("avx2,fma"))) double FmaAvx2() {
  __m256 sums[kChains] = {}, a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(0.25f);
  for (int i = 0; i < kIterations; ++i) {
#pragma unroll
    for (__m256& sum : sums) {
      sum = _mm256_fmadd_ps(a, b, sum);
      asm volatile("" : "+v"(sum));
    }
  }
  return 2.0 * 8 * kChains * kIterations;
}

__attribute__((target("avx512f,avx512bf16"))) double DotBf16() {
  __m512 sums[kChains] = {};
  __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f));
  for (int i = 0; i < kIterations; ++i) {
#pragma unroll
    for (__m512& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, a, a);
      asm volatile("" : "+v"(sum));
    }
  }
  return 2.0 * 32 * kChains * kIterations;
}

double GflopPerSecond(double (*body)(), int threads) {
  double best = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    std::atomic<int> waiting{threads};
    std::vector<double> rates(threads);
    std::vector<std::thread> team;
    for (int i = 0; i < threads; ++i) {
      team.emplace_back([&, i] {
        --waiting;
        while (waiting > 0) {
        }
        const auto start = std::chrono::steady_clock::now();
        const double flops = body();
        rates[i] = flops / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e-9;
      });
    }
    double sum = 0;
    for (int i = 0; i < threads; ++i) {
      team[i].join();
      sum += rates[i];
    }
    best = std::max(best, sum);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc == 2 ? std::atoi(argv[1]) : 0;
  if (threads < 1) {
    std::fprintf(stderr, "usage: fma_peak THREADS\n");
    return 1;
  }
  const bool avx512 = __builtin_cpu_supports("avx512f");
  if (!avx512 && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) {
    std::fprintf(stderr, "fma_peak: error: this processor has no fused multiply-add\n");
    return 1;
  }
  std::printf("{\"f32\": %.1f", GflopPerSecond(avx512 ? FmaAvx512 : FmaAvx2, threads));
  if (__builtin_cpu_supports("avx512bf16")) std::printf(", \"bf16\": %.1f", GflopPerSecond(DotBf16, threads));
  std::printf("}\n");
}
