#ifndef BOWLINE_KERNELS_CPU_MATMUL_PREFETCH_H_
#define BOWLINE_KERNELS_CPU_MATMUL_PREFETCH_H_

// Prefetches the block that will be packed next while the current one is multiplied. Only for *_isa.cc files.

#include <cstdint>

namespace bowline::kernels::BOWLINE_ISA {

class Prefetcher {
 public:
  // Starts to prefetch `rows` rows of `bytes` contiguous bytes, `stride` bytes apart, spread over about `steps` steps.
  // Does nothing for rows shorter than half a cache line.
  void Begin(const void* from, int64_t rows, int64_t bytes, int64_t stride, int64_t steps) {
    row_ = static_cast<const char*>(from);
    stride_ = stride;
    bytes_ = bytes;
    rows_ = bytes < kLine / 2 ? 0 : rows;
    at_ = 0;
    const int64_t lines = rows_ * ((bytes + kLine - 1) / kLine);
    per_step_ = (lines + steps - 1) / steps;
  }
  void End() { rows_ = 0; }

  void Step() {
    for (int64_t i = 0; i < per_step_ && rows_ > 0; ++i) {
      __builtin_prefetch(row_ + at_, 0, 2);
      at_ += kLine;
      if (at_ < bytes_) continue;
      at_ = 0;
      row_ += stride_;
      --rows_;
    }
  }

 private:
  static constexpr int64_t kLine = 64;

  const char* row_ = nullptr;
  int64_t stride_ = 0, bytes_ = 0, rows_ = 0, at_ = 0, per_step_ = 0;
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_PREFETCH_H_
