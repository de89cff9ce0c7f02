#include "kernels/cuda/device.h"

namespace {
using namespace bowline::device;
}

// Repeats `word` over `bytes` bytes, a multiple of 2; `out` is aligned to 16.
BOWLINE_DEVICE_FUNCTION(bowline_fill, 256, uint8_t* out, int64_t bytes, uint32_t word) {
  const Vector<uint32_t, 4> words = {{word, word, word, word}};
  const int64_t whole = bytes / 16;
  for (int64_t i = GlobalThread(); i < whole; i += GlobalThreads()) StoreAligned(out + i * 16, words);
  const int64_t rest = whole * 16 + GlobalThread() * 2;
  if (rest < bytes) StoreAligned(out + rest, static_cast<uint16_t>(rest % 4 == 0 ? word : word >> 16));
}
