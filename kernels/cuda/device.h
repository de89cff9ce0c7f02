#ifndef BOWLINE_KERNELS_CUDA_DEVICE_H_
#define BOWLINE_KERNELS_CUDA_DEVICE_H_

// The language of the device functions of this folder. nvcc compiles the functions for GPUs; all other compilers
// compile them for the processor, where kernels/cuda/emulator executes them and finds mistakes (see there). A function
// therefore uses only threadIdx, blockIdx, blockDim and gridDim of CUDA, and the declarations of this header.
//
// A function is declared by BOWLINE_DEVICE_FUNCTION(name, most threads of a block, parameters) { body }. Parameters are
// pointers and numbers of 4 or 8 bytes. Shared memory is dynamic alone: SharedMemory(), aligned to 1024 bytes.
// BOWLINE_DEVICE_FUNCTION_OF also says how many blocks are to run on a multiprocessor at once, which bounds registers.

#include <cstdint>

#if defined(__CUDACC__)
#define BOWLINE_DEVICE __device__ __forceinline__
#define BOWLINE_DEVICE_FUNCTION_OF(name, threads, blocks, ...) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(__VA_ARGS__)
#else
#include <cmath>

#include "kernels/cuda/fibers.h"
#define BOWLINE_DEVICE inline
#define BOWLINE_DEVICE_FUNCTION_OF(name, threads, blocks, ...)                                      \
  extern "C" void name(__VA_ARGS__);                                                                \
  static const bool emulated_##name = ::bowline::emulator::RegisterFunction(#name, threads, &name); \
  extern "C" void name(__VA_ARGS__)
#define threadIdx (::bowline::emulator::Current().thread)
#define blockIdx (::bowline::emulator::Current().block)
#define blockDim (::bowline::emulator::Current().threads)
#define gridDim (::bowline::emulator::Current().blocks)
#endif
#define BOWLINE_DEVICE_FUNCTION(name, threads, ...) BOWLINE_DEVICE_FUNCTION_OF(name, threads, 1, __VA_ARGS__)

namespace bowline::device {

constexpr float kInfinity = __builtin_huge_valf();
constexpr float kLog2E = 1.44269504088896341f;
constexpr float kLn2 = 0.693147180559945309f;

BOWLINE_DEVICE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
BOWLINE_DEVICE int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }
BOWLINE_DEVICE int64_t Clamped(int64_t x, int64_t low, int64_t high) { return Smaller(Larger(x, low), high); }
BOWLINE_DEVICE int32_t Smaller(int32_t a, int32_t b) { return a < b ? a : b; }
BOWLINE_DEVICE int32_t Larger(int32_t a, int32_t b) { return a > b ? a : b; }
BOWLINE_DEVICE int32_t Clamped(int32_t x, int32_t low, int32_t high) { return Smaller(Larger(x, low), high); }
BOWLINE_DEVICE int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The index of this thread among all threads of the grid, and their number, if blocks and grid have one dimension.
BOWLINE_DEVICE int64_t GlobalThread() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
BOWLINE_DEVICE int64_t GlobalThreads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

#if defined(__CUDACC__)

BOWLINE_DEVICE unsigned char* SharedMemory() {
  extern __shared__ __align__(1024) unsigned char dynamic_shared_memory[];
  return dynamic_shared_memory;
}
BOWLINE_DEVICE void Barrier() { __syncthreads(); }
BOWLINE_DEVICE void WarpBarrier() { __syncwarp(); }
// All lanes of a warp take part in each of these.
BOWLINE_DEVICE float ShuffleXor(float value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
BOWLINE_DEVICE float ShuffleFrom(float value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }

BOWLINE_DEVICE int32_t AtomicAdd(int32_t* to, int32_t value) { return atomicAdd(to, value); }

BOWLINE_DEVICE float Exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
BOWLINE_DEVICE float Exp(float x) { return expf(x); }
BOWLINE_DEVICE float Log(float x) { return logf(x); }
BOWLINE_DEVICE float Max(float a, float b) { return fmaxf(a, b); }
BOWLINE_DEVICE float MulAdd(float a, float b, float c) { return fmaf(a, b, c); }
BOWLINE_DEVICE double MulAdd(double a, double b, double c) { return fma(a, b, c); }
// Rounded each, whatever the compiler would contract.
BOWLINE_DEVICE double Mul(double a, double b) { return __dmul_rn(a, b); }
BOWLINE_DEVICE double Add(double a, double b) { return __dadd_rn(a, b); }
BOWLINE_DEVICE double SquareRoot(double x) { return __dsqrt_rn(x); }
BOWLINE_DEVICE double Power(double x, double y) { return pow(x, y); }
BOWLINE_DEVICE uint64_t BitsOf(double x) { return static_cast<uint64_t>(__double_as_longlong(x)); }
BOWLINE_DEVICE double DoubleOf(uint64_t bits) { return __longlong_as_double(static_cast<long long>(bits)); }
BOWLINE_DEVICE float FloatOf(uint32_t bits) { return __uint_as_float(bits); }

// Two f32 as bf16, rounded to nearest even, the first in the lower half.
BOWLINE_DEVICE uint32_t PackBf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Loads and stores at addresses that are multiples of the type's alignment.
template <typename T>
BOWLINE_DEVICE T LoadAligned(const void* from) {
  return *static_cast<const T*>(from);
}
template <typename T>
BOWLINE_DEVICE void StoreAligned(void* to, const T& value) {
  *static_cast<T*>(to) = value;
}

#else

inline unsigned char* SharedMemory() { return emulator::Current().shared; }
inline void Barrier() { emulator::BlockBarrier(); }
inline void WarpBarrier() { emulator::Exchange(0); }
inline float ShuffleXor(float value, int mask) {
  return emulator::Exchange(value)[static_cast<int>(emulator::Lane()) ^ mask];
}
inline float ShuffleFrom(float value, int lane) { return emulator::Exchange(value)[lane]; }
inline int32_t AtomicAdd(int32_t* to, int32_t value) {
  const int32_t before = *to;
  *to += value;
  return before;
}
inline float Exp2(float x) { return x < -126.0f ? 0.0f : std::exp2(x); }
inline float Exp(float x) { return std::exp(x); }
inline float Log(float x) { return std::log(x); }
inline float Max(float a, float b) { return std::fmax(a, b); }
inline float MulAdd(float a, float b, float c) { return std::fma(a, b, c); }
inline double MulAdd(double a, double b, double c) { return std::fma(a, b, c); }
inline double Mul(double a, double b) { return a * b; }
inline double Add(double a, double b) { return a + b; }
inline double SquareRoot(double x) { return std::sqrt(x); }
inline double Power(double x, double y) { return std::pow(x, y); }
inline uint64_t BitsOf(double x) { return emulator::Reinterpret<uint64_t>(x); }
inline double DoubleOf(uint64_t bits) { return emulator::Reinterpret<double>(bits); }
inline float FloatOf(uint32_t bits) { return emulator::Reinterpret<float>(bits); }

inline uint32_t RoundedToBf16(float value) {
  const uint32_t bits = emulator::Reinterpret<uint32_t>(value);
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}
inline uint32_t PackBf16(float low, float high) { return RoundedToBf16(low) | RoundedToBf16(high) << 16; }

template <typename T>
inline T LoadAligned(const void* from) {
  emulator::CheckAligned(from, alignof(T));
  return *static_cast<const T*>(from);
}
template <typename T>
inline void StoreAligned(void* to, const T& value) {
  emulator::CheckAligned(to, alignof(T));
  *static_cast<T*>(to) = value;
}

#endif

struct Bf16 {
  uint16_t bits;
};
BOWLINE_DEVICE float Widen(float value) { return value; }
BOWLINE_DEVICE float Widen(Bf16 value) { return FloatOf(static_cast<uint32_t>(value.bits) << 16); }

template <typename T>
BOWLINE_DEVICE T Narrow(float value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else {
    return T{static_cast<uint16_t>(PackBf16(value, 0.0f))};
  }
}

// Elements that are loaded and stored at once; 16 bytes at most.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Vector {
  T at[kCount];
};

// The sum and the largest over a warp, the same bits in every lane.
BOWLINE_DEVICE float WarpSum(float value) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value += ShuffleXor(value, mask);
  return value;
}
BOWLINE_DEVICE float WarpMax(float value) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value = Max(value, ShuffleXor(value, mask));
  return value;
}

}  // namespace bowline::device

#endif  // BOWLINE_KERNELS_CUDA_DEVICE_H_
