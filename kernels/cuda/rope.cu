// rope_angles: threads x along head_dim / 2, whose frequency each computes once, and y along positions.

#include "kernels/cuda/trigonometry.h"

namespace {

using namespace bowline::device;

template <typename T>
BOWLINE_DEVICE void RopeAngles(const int32_t* positions, T* cosines, T* sines, int64_t count, int64_t half,
                               double theta, double rate, double slope, double offset) {
  const int64_t i = GlobalThread();
  if (i >= half) return;
  double frequency = Power(theta, -static_cast<double>(i) / static_cast<double>(half));
  // RopeAnglesShape of kernels/signatures defines the last three.
  double kept = Add(Mul(frequency, slope), -offset);
  kept = kept < 0 ? 0 : kept > 1 ? 1 : kept;
  frequency = Mul(frequency, Add(kept, Mul(1 - kept, rate)));
  const int64_t step = static_cast<int64_t>(gridDim.y) * blockDim.y;
  for (int64_t p = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; p < count; p += step) {
    double sine, cosine;
    SineCosine(Mul(positions[p], frequency), &sine, &cosine);
    cosines[p * half + i] = Narrow<T>(static_cast<float>(cosine));
    sines[p * half + i] = Narrow<T>(static_cast<float>(sine));
  }
}

}  // namespace

BOWLINE_DEVICE_FUNCTION(bowline_rope_angles_f32, 256, const int32_t* positions, float* cosines, float* sines,
                        int64_t count, int64_t half, double theta, double rate, double slope, double offset) {
  RopeAngles(positions, cosines, sines, count, half, theta, rate, slope, offset);
}
BOWLINE_DEVICE_FUNCTION(bowline_rope_angles_bf16, 256, const int32_t* positions, Bf16* cosines, Bf16* sines,
                        int64_t count, int64_t half, double theta, double rate, double slope, double offset) {
  RopeAngles(positions, cosines, sines, count, half, theta, rate, slope, offset);
}
