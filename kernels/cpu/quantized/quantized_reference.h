#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_REFERENCE_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_REFERENCE_H_

// Reference implementations of this folder's kernels, in f64 and in the plainest way. They follow ggml's definitions of
// the blocks and share no code with the fast kernels.

#include <cstdint>
#include <vector>

#include "types/element_type.h"

namespace bowline::kernels::reference {

// A decoded weight. Its exact value is scale * q + offset.
struct Weight {
  double scale, q, offset;

  double Value() const { return scale * q + offset; }
  // |scale * q| + |offset|, on which bounds of rounding errors depend.
  double Magnitude() const;
};

// Decodes whole blocks of `format`.
std::vector<Weight> DecodeWeights(ElementType format, const std::vector<uint8_t>& blocks);

// The product of x [m, k] and the transpose of weights [n, k]. Returns [m, n].
std::vector<double> QuantizedMatmul(int64_t m, int64_t n, int64_t k, const std::vector<double>& x,
                                    const std::vector<Weight>& weights);
// The same product of |x| and the weights' Magnitude(), for bounds of errors.
std::vector<double> QuantizedMagnitudes(int64_t m, int64_t n, int64_t k, const std::vector<double>& x,
                                        const std::vector<Weight>& weights);

}  // namespace bowline::kernels::reference

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_QUANTIZED_REFERENCE_H_
