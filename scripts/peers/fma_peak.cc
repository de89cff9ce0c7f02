// Prints the peak rate of the processors: GFLOP/s of fused multiply-adds on registers, for f32 and,
// where the processor has them, for bf16 in pairs (VDPBF16PS) or tiles (TDPBF16PS). A product of matrices cannot be
// faster.
//
//   fma_peak THREADS   ->   {"f32": 234.1, "bf16": 468.3}
//
// Each thread runs independent chains, more than latency times units; the best of several short turns is taken, because
// other programs can only slow a turn down.

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

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

__attribute__((target("amx-tile,amx-bf16"))) double TileBf16() {
  struct {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } registers;
  _tile_loadconfig(&registers);
  for (int i = 0; i < kIterations / 16; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 2.0 * 16 * 16 * 32 * 4 * (kIterations / 16);
}

// Linux gives a process tiles on request.
bool HasTiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM; the state component
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
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
  const bool tiles = HasTiles();
  if (tiles || __builtin_cpu_supports("avx512bf16")) {
    std::printf(", \"bf16\": %.1f", GflopPerSecond(tiles ? TileBf16 : DotBf16, threads));
  }
  std::printf("}\n");
}
