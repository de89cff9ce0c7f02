#ifndef BOWLINE_KERNELS_BENCHMARKS_CONTENDERS_H_
#define BOWLINE_KERNELS_BENCHMARKS_CONTENDERS_H_

// Rates in GFLOP per second: of code with one thread by its CPU time, so that other programs on the machine disturb as
// little as they can, of other code by the wall clock. Contenders take turns in one process and the medians are
// compared. "peak" is the rate of independent multiply-adds in registers, measured between the turns.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cpu/isa/isa.h"

namespace bowline::kernels {

inline double Seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

#if defined(__x86_64__)
// 12 independent chains; 16 multiply-adds an instruction, 32 with bf16 pairs.
#define BOWLINE_PEAK_LOOP(INSTRUCTION)                                                                            \
  for (int64_t i = 0; i < steps; ++i) {                                                                           \
    asm volatile(INSTRUCTION " %%zmm0, %%zmm0, %%zmm8\n" INSTRUCTION " %%zmm0, %%zmm0, %%zmm9\n" INSTRUCTION      \
                             " %%zmm0, %%zmm0, %%zmm10\n" INSTRUCTION " %%zmm0, %%zmm0, %%zmm11\n" INSTRUCTION    \
                             " %%zmm0, %%zmm0, %%zmm12\n" INSTRUCTION " %%zmm0, %%zmm0, %%zmm13\n" INSTRUCTION    \
                             " %%zmm0, %%zmm0, %%zmm14\n" INSTRUCTION " %%zmm0, %%zmm0, %%zmm15\n" INSTRUCTION    \
                             " %%zmm0, %%zmm0, %%zmm16\n" INSTRUCTION " %%zmm0, %%zmm0, %%zmm17\n" INSTRUCTION    \
                             " %%zmm0, %%zmm0, %%zmm18\n" INSTRUCTION " %%zmm0, %%zmm0, %%zmm19\n" ::             \
                                 : "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", \
                                   "xmm17", "xmm18", "xmm19");                                                    \
  }
inline constexpr int64_t kPeakSteps = 300000;
__attribute__((target("avx512f"))) inline void PeakF32(int64_t steps) {
  asm volatile("vpxord %%zmm0, %%zmm0, %%zmm0" ::: "xmm0");
  BOWLINE_PEAK_LOOP("vfmadd231ps")
}
__attribute__((target("avx512f,avx512bf16"))) inline void PeakBf16(int64_t steps) {
  asm volatile("vpxord %%zmm0, %%zmm0, %%zmm0" ::: "xmm0");
  BOWLINE_PEAK_LOOP("vdpbf16ps")
}
inline constexpr double kPeakFlops = kPeakSteps * 12 * 16 * 2.0;
#undef BOWLINE_PEAK_LOOP
// Four tiles of 16 x 16 sums, 32 products to each, a step.
__attribute__((target("amx-tile,amx-bf16"))) inline void PeakAmx(int64_t steps) {
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } registers = {};
  registers.palette = 1;
  for (int i = 0; i < 8; ++i) {
    registers.row_bytes[i] = 64;
    registers.rows[i] = 16;
  }
  __builtin_ia32_tile_loadconfig(&registers);
  for (int64_t i = 0; i < steps; ++i) {
    __builtin_ia32_tdpbf16ps(0, 4, 6);
    __builtin_ia32_tdpbf16ps(1, 4, 7);
    __builtin_ia32_tdpbf16ps(2, 5, 6);
    __builtin_ia32_tdpbf16ps(3, 5, 7);
  }
  __builtin_ia32_tilerelease();
}
inline constexpr double kAmxPeakFlops = kPeakSteps * 4 * 16 * 16 * 32 * 2.0;
#endif

struct Contender {
  std::string name;
  double flops;
  std::function<void()> run;
  std::vector<double> seconds = {};

  double Rate(bool best) {
    std::sort(seconds.begin(), seconds.end());
    return flops / seconds[best ? 0 : seconds.size() / 2] * 1e-9;
  }
};

// The peak rate of the machine in f32; if asked for, also that in bf16, in tiles where the machine has them or else in
// vectors. Empty for machines whose peak this benchmark cannot measure.
inline std::vector<Contender> Peaks(bool bf16, bool tiles) {
  std::vector<Contender> peaks;
#if defined(__x86_64__)
  const bool has_f32_peak = __builtin_cpu_supports("avx512f"), has_bf16_peak = __builtin_cpu_supports("avx512bf16");
  if (has_f32_peak) peaks.push_back({"peak f32", kPeakFlops, [] { PeakF32(kPeakSteps); }});
  if (bf16 && tiles && ActiveIsa() >= Isa::kAmx) {
    peaks.push_back({"peak bf16", kAmxPeakFlops, [] { PeakAmx(kPeakSteps); }});
  } else if (bf16 && has_bf16_peak) {
    peaks.push_back({"peak bf16", 2 * kPeakFlops, [] { PeakBf16(kPeakSteps); }});
  }
#endif
  return peaks;
}

// `repeats` runs a turn, but one of a peak; the first round is not counted.
inline void TakeTurns(std::vector<Contender>& contenders, int rounds, int repeats,
                      clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  for (int round = -1; round < rounds; ++round) {
    for (Contender& contender : contenders) {
      const int count = contender.name.starts_with("peak") ? 1 : repeats;
      const double begin = Seconds(clock);
      for (int i = 0; i < count; ++i) contender.run();
      if (round >= 0) contender.seconds.push_back((Seconds(clock) - begin) / count);
    }
  }
}

// One line: rates, and their shares of the peak of the type that the contender's name ends with.
inline void Report(const std::string& title, std::vector<Contender>& contenders, bool best) {
  std::printf("%-20s", title.c_str());
  double f32_peak = 0, bf16_peak = 0;
  for (Contender& contender : contenders) {
    const double rate = contender.Rate(best);
    if (contender.name == "peak f32") f32_peak = rate;
    if (contender.name == "peak bf16") bf16_peak = rate;
    const double peak = contender.name.ends_with("bf16") ? bf16_peak : f32_peak;
    std::printf("  %s %.1f", contender.name.c_str(), rate);
    if (peak > 0 && !contender.name.starts_with("peak")) std::printf(" (%.1f%%)", 100 * rate / peak);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_BENCHMARKS_CONTENDERS_H_
