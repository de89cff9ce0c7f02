#ifndef BOWLINE_KERNELS_CPU_SCATTER_SCRATCH_H_
#define BOWLINE_KERNELS_CPU_SCATTER_SCRATCH_H_

#include <cstddef>
#include <cstdint>

#include "kernels/signatures/embedding_signature.h"

namespace bowline::kernels {

// Bytes of scratch of scatter_add_rows. It keeps a linked list of tokens per row: the first token of each row, the next
// token of each token, and an array of the rows that have tokens.
inline size_t ScatterScratchBytes(const EmbeddingShape& shape) {
  return static_cast<size_t>(shape.rows + 2 * shape.tokens) * sizeof(int32_t);
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_SCATTER_SCRATCH_H_
