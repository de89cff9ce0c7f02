#ifndef BOWLINE_KERNELS_SIGNATURES_PRODUCT_SIGNATURE_H_
#define BOWLINE_KERNELS_SIGNATURES_PRODUCT_SIGNATURE_H_

#include "kernels/registry/product_epilogue.h"
#include "kernels/signatures/matmul_signature.h"

namespace bowline::kernels {

// A signature of `matmul` for devices whose library has epilogues: with the attribute `epilogue`, or as ParseMatmul
// reads it. With an epilogue the batch is 1, and C is dense and not accumulated into: there is no `c_strides`.
struct ProductShape {
  MatmulShape product;
  const ProductEpilogue* epilogue = nullptr;  // one of kProductEpilogues; null: none
  int result = 2;                             // the argument that is C
  int vector = -1;                            // the argument that is the bias or the sums, -1: none
  int matrix = -1;                            // the argument that is the gradient's input or the kept input, -1: none
};

// Returns kInvalidArgument for an unknown epilogue, and for arguments that the epilogue does not have.
absl::StatusOr<ProductShape> ParseProduct(const Signature& signature);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_SIGNATURES_PRODUCT_SIGNATURE_H_
