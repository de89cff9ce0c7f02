#ifndef BOWLINE_KERNELS_SIGNATURES_QUANTIZED_SHAPE_H_
#define BOWLINE_KERNELS_SIGNATURES_QUANTIZED_SHAPE_H_

// Apart from the code that reads them off a signature, so that sources compiled for an instruction set may include it.

#include <cstdint>

#include "types/element_type.h"

namespace bowline::kernels {

// A matrix of `rows` rows and `columns` columns, whose rows are whole blocks of `format`.
struct QuantizedMatrix {
  ElementType format;  // one for which IsBlockFormat holds
  int64_t rows, columns;
  int64_t row_bytes;
};

struct QuantizedMatmulShape {
  QuantizedMatrix weights;
  int64_t m;
  ElementType x;    // f32 or bf16
  ElementType out;  // f32, or the type of x
};

struct QuantizedGatherShape {
  QuantizedMatrix table;
  int64_t tokens;
  ElementType out;  // f32 or bf16
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_QUANTIZED_SHAPE_H_
