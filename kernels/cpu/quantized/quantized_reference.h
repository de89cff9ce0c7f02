#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_REFERENCE_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_REFERENCE_H_

// References of the kernels of this folder, in f64 and in the plainest way. They are written from ggml's definitions of
// the blocks and share no code with the fast versions.

#include <cstdint>
#include <vector>

#include "types/element_type.h"

namespace bowline::kernels::reference {

// A weight is scale * q + offset, exactly.
struct Weight {
  double scale, q, offset;

  double Value() const { return scale * q + offset; }
  // The sum of the absolute values of the two summands, on which rounding errors depend.
  double Magnitude() const;
};

// Whole blocks of `format`.
std::vector<Weight> DecodeWeights(ElementType format, const std::vector<uint8_t>& blocks);

// x [m, k], weights [n, k]; out [m, n].
std::vector<double> QuantizedMatmul(int64_t m, int64_t n, int64_t k, const std::vector<double>& x,
                                    const std::vector<Weight>& weights);
// The sums of |x| * magnitude of the same products.
std::vector<double> QuantizedMagnitudes(int64_t m, int64_t n, int64_t k, const std::vector<double>& x,
                                        const std::vector<Weight>& weights);

}  // namespace bowline::kernels::reference

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_REFERENCE_H_
