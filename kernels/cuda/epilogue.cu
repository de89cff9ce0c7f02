// The rest of a product's epilogue where the library computes the product alone (epilogue_program.h): threads x along
// the columns of a tile of C, blocks y along its rows. Everything is computed in f32, and a result is rounded once, at
// the end.

#include "kernels/cuda/device.h"

namespace {

using namespace bowline::device;

constexpr float kSqrt2OverPi = 0.797884560802865356f, kCubic = 0.044715f;

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): nothing cancels out.
BOWLINE_DEVICE float GeluShare(float x) {
  const float u = kSqrt2OverPi * (x + kCubic * x * x * x);
  return 1.0f / (1.0f + Exp(-2.0f * u));
}

BOWLINE_DEVICE float Gelu(float x) { return x * GeluShare(x); }

// Beyond 16 it is 0 or 1 in f32, where powers of x would overflow. A NaN stays one.
BOWLINE_DEVICE float GeluSlope(float x) {
  const float near = x > 16.0f ? 16.0f : x < -16.0f ? -16.0f : x;
  const float share = GeluShare(near), inner = kSqrt2OverPi * (1.0f + 3.0f * kCubic * near * near);
  return share + 2.0f * near * share * (1.0f - share) * inner;
}

// Calls `store`(element of the tile, its column, element of a matrix with rows of `leading` elements) for rows of
// `columns` elements.
template <typename Store>
BOWLINE_DEVICE void ForTile(int64_t rows, int64_t columns, int64_t leading, Store store) {
  const int64_t j = GlobalThread();
  if (j >= columns) return;
  for (int64_t i = blockIdx.y; i < rows; i += gridDim.y) store(i * columns + j, j, i * leading + j);
}

constexpr int kLanes = 32, kSlices = 8;

// The sums over k of 32 elements, `stride` apart, for each block: threads x along the elements, y along k, whose
// partial sums are added in their order.
template <typename T>
BOWLINE_DEVICE void SumsAcross(const T* operand, float* sums, int64_t count, int64_t depth, int64_t stride,
                               int64_t k_stride) {
  float* partial = reinterpret_cast<float*>(SharedMemory());
  const int lane = static_cast<int>(threadIdx.x), slice = static_cast<int>(threadIdx.y);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kLanes + lane;
  float sum = 0.0f;
  if (i < count) {
    for (int64_t k = slice; k < depth; k += kSlices) sum += Widen(operand[i * stride + k * k_stride]);
  }
  partial[slice * kLanes + lane] = sum;
  Barrier();
  if (slice != 0 || i >= count) return;
  for (int other = 1; other < kSlices; ++other) sum += partial[other * kLanes + lane];
  sums[i] = sum;
}

// The same where k is contiguous: a warp for each element.
template <typename T>
BOWLINE_DEVICE void SumsAlong(const T* operand, float* sums, int64_t count, int64_t depth, int64_t stride) {
  const int lane = static_cast<int>(threadIdx.x);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSlices + threadIdx.y;
  float sum = 0.0f;
  if (i < count) {
    for (int64_t k = lane; k < depth; k += kLanes) sum += Widen(operand[i * stride + k]);
  }
  sum = WarpSum(sum);
  if (lane == 0 && i < count) sums[i] = sum;
}

}  // namespace

// c += bias, rows of `columns` elements.
BOWLINE_DEVICE_FUNCTION(bowline_product_bias_f32, 256, const float* bias, float* c, int64_t rows, int64_t columns) {
  ForTile(rows, columns, columns, [&](int64_t, int64_t j, int64_t at) { c[at] += bias[j]; });
}

// A dense tile of a product, for matrices with rows of `leading` elements: c is the product, plus the bias where there
// is one (0: none), of which GELU is taken where `gelu`, and which becomes `kept` where there is one.
BOWLINE_DEVICE_FUNCTION(bowline_product_epilogue_bf16, 256, const float* product, const Bf16* bias, Bf16* c, Bf16* kept,
                        int64_t rows, int64_t columns, int64_t leading, int32_t gelu) {
  ForTile(rows, columns, leading, [&](int64_t from, int64_t j, int64_t to) {
    const float x = bias == nullptr ? product[from] : product[from] + Widen(bias[j]);
    if (kept != nullptr) kept[to] = Narrow<Bf16>(x);
    c[to] = Narrow<Bf16>(gelu != 0 ? Gelu(x) : x);
  });
}

// c is the product times the slope of GELU at `input`.
BOWLINE_DEVICE_FUNCTION(bowline_product_gelu_gradient_bf16, 256, const float* product, const Bf16* input, Bf16* c,
                        int64_t rows, int64_t columns, int64_t leading) {
  ForTile(rows, columns, leading, [&](int64_t from, int64_t, int64_t to) {
    c[to] = Narrow<Bf16>(product[from] * GeluSlope(Widen(input[to])));
  });
}

#define BOWLINE_OPERAND_SUMS(suffix, T)                                                                           \
  BOWLINE_DEVICE_FUNCTION(bowline_operand_sums_##suffix, 256, const T* operand, float* sums, int64_t count,       \
                          int64_t depth, int64_t stride, int64_t k_stride) {                                      \
    SumsAcross(operand, sums, count, depth, stride, k_stride);                                                    \
  }                                                                                                               \
  BOWLINE_DEVICE_FUNCTION(bowline_operand_sums_along_##suffix, 256, const T* operand, float* sums, int64_t count, \
                          int64_t depth, int64_t stride) {                                                        \
    SumsAlong(operand, sums, count, depth, stride);                                                               \
  }
BOWLINE_OPERAND_SUMS(f32, float)
BOWLINE_OPERAND_SUMS(bf16, Bf16)
#undef BOWLINE_OPERAND_SUMS
