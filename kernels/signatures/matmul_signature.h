#ifndef BOWLINE_KERNELS_SIGNATURES_MATMUL_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_MATMUL_SIGNATURE_H_

#include <array>

#include "kernels/registry/registry.h"
#include "kernels/signatures/pack_shape.h"

namespace bowline::kernels {

// The attributes of `matmul`, checked: every address that the strides reach lies inside its argument, and no two
// indices of C share one. Strides of dimensions of extent 1 are zero.
struct MatmulShape {
  int64_t batch, m, n, k;
  std::array<int64_t, 3> a;  // strides of [batch, m, k] in elements
  std::array<int64_t, 3> b;  // [batch, k, n]
  std::array<int64_t, 3> c;  // [batch, m, n]; as if C were dense where an epilogue takes its place
  bool accumulate;
  bool bf16x6;     // of f32: six products of bf16 may take the place of one, where they are faster
  bool b_packed;   // B is a buffer of pack_matrix; its strides then mean nothing and are zero
  DType operands;  // one of types/computed_types.h
  DType result;    // f32 or that of the operands; f32 with an epilogue
};

// The number of the product's own operands, which come before those of an epilogue.
inline constexpr int kEpilogueOperands = 2;

// Parses and checks a signature of `matmul`. The argument of a packed B is not checked, as each device has a form of
// its own for it.
absl::StatusOr<MatmulShape> ParseMatmul(const Signature& signature);

// The attributes and arguments of `pack_matrix`, checked but for the size of the packed one.
absl::StatusOr<PackShape> ParsePackMatrix(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_MATMUL_SIGNATURE_H_
