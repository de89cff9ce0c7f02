#ifndef BOWLINE_TEST_UNIT_KERNELS_STORED_TESTING_H_
#define BOWLINE_TEST_UNIT_KERNELS_STORED_TESTING_H_

// Tensors of either floating-point type that kernels store, for tests that cover both.

#include "kernels/cpu/half.h"
#include "test/Unit/Kernels/kernel_testing.h"

namespace bowline::kernels::testing {

// Of `dtype` kF32 or kBF16; values given are rounded to it.
class Stored {
 public:
  Stored(DType dtype, const Floats& values) : dtype_(dtype), count_(values.size()), bytes_(count_ * SizeOf(dtype)) {
    for (size_t i = 0; i < count_; ++i) {
      if (dtype == DType::kF32) {
        std::memcpy(&bytes_[i * 4], &values[i], 4);
      } else {
        const Bf16 half = Narrow<Bf16>(values[i]);
        std::memcpy(&bytes_[i * 2], &half, 2);
      }
    }
  }

  void* data() { return bytes_.data(); }

  Floats Values() const {
    Floats values(count_);
    for (size_t i = 0; i < count_; ++i) {
      if (dtype_ == DType::kF32) {
        std::memcpy(&values[i], &bytes_[i * 4], 4);
      } else {
        Bf16 half;
        std::memcpy(&half, &bytes_[i * 2], 2);
        values[i] = Widen(half);
      }
    }
    return values;
  }
  std::vector<double> Doubles() const { return ToDouble(Values()); }

  friend bool operator==(const Stored& a, const Stored& b) { return a.dtype_ == b.dtype_ && a.bytes_ == b.bytes_; }

 private:
  DType dtype_;
  size_t count_;
  std::vector<unsigned char> bytes_;
};

inline Stored RandomStored(std::mt19937_64& random, DType dtype, int64_t count, float magnitude = 1.0f) {
  return Stored(dtype, RandomFloats(random, count, magnitude));
}
// To be written: reads as NaN.
inline Stored Unwritten(DType dtype, int64_t count) { return Stored(dtype, Floats(count, NAN)); }

// max (|actual - expected| - rounding |expected|) / max(1, max |expected|), where storing an element rounds it by at
// most half a unit in the last of the 8 bits of bf16, 2^-8 of it; f32's is counted as error.
inline double ErrorBeyondRounding(DType dtype, const Floats& actual, const std::vector<double>& expected) {
  const double rounding = dtype == DType::kBF16 ? 0x1p-8 : 0.0;
  double error = 0, magnitude = 1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(actual[i] - expected[i]) - rounding * std::abs(expected[i]);
    error = std::isnan(difference) ? INFINITY : std::max(error, difference);
    magnitude = std::max(magnitude, std::abs(expected[i]));
  }
  return error / magnitude;
}

}  // namespace bowline::kernels::testing

#endif  // BOWLINE_TEST_UNIT_KERNELS_STORED_TESTING_H_
