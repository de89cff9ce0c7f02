#ifndef BOWLINE_TEST_UNIT_KERNELS_STORED_TESTING_H_
#define BOWLINE_TEST_UNIT_KERNELS_STORED_TESTING_H_

// Tensors of the floating-point types that kernels store, for tests that cover several.

#include "kernels/cpu/half.h"
#include "test/Unit/Kernels/kernel_testing.h"

namespace bowline::kernels::testing {

// Of `dtype` kF32, kBF16 or kF16; values given are rounded to it.
class Stored {
 public:
  Stored(DType dtype, const Floats& values) : dtype_(dtype), count_(values.size()), bytes_(count_ * SizeOf(dtype)) {
    for (size_t i = 0; i < count_; ++i) {
      if (dtype == DType::kF32) {
        std::memcpy(&bytes_[i * 4], &values[i], 4);
      } else {
        const uint16_t half = dtype == DType::kBF16 ? Narrow<Bf16>(values[i]).bits : Narrow<F16>(values[i]).bits;
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
        uint16_t half;
        std::memcpy(&half, &bytes_[i * 2], 2);
        values[i] = dtype_ == DType::kBF16 ? Widen(Bf16{half}) : Widen(F16{half});
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

// The error of storing an element of about `value`: half a unit in the last of the 8 bits of bf16, or of the 11 of f16,
// whose units end at 2^-24. Storing f32 adds none: callers count it as error.
inline double StoringError(DType dtype, double value) {
  if (dtype == DType::kBF16) return 0x1p-8 * std::abs(value);
  return dtype == DType::kF16 ? std::max(0x1p-11 * std::abs(value), 0x1p-25) : 0.0;
}

// max (|actual - expected| - the error of storing it) / max(1, max |expected|).
inline double ErrorBeyondRounding(DType dtype, const Floats& actual, const std::vector<double>& expected) {
  double error = 0, magnitude = 1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(actual[i] - expected[i]) - StoringError(dtype, expected[i]);
    error = std::isnan(difference) ? INFINITY : std::max(error, difference);
    magnitude = std::max(magnitude, std::abs(expected[i]));
  }
  return error / magnitude;
}

}  // namespace bowline::kernels::testing

#endif  // BOWLINE_TEST_UNIT_KERNELS_STORED_TESTING_H_
