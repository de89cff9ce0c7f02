#ifndef BOWLINE_KERNELS_SIGNATURES_PACK_SHAPE_H_
#define BOWLINE_KERNELS_SIGNATURES_PACK_SHAPE_H_

// Separate from the code that reads it off a signature, so that sources compiled for an instruction set may include it.

#include <cstdint>

namespace bowline::kernels {

struct PackShape {
  int64_t k, n;
  int64_t stride_k, stride_n;  // strides of the source, in elements
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_PACK_SHAPE_H_
