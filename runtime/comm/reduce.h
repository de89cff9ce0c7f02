#ifndef BOWLINE_RUNTIME_COMM_REDUCE_H_
#define BOWLINE_RUNTIME_COMM_REDUCE_H_

#include <cstddef>

#include "absl/types/span.h"
#include "kernels/registry/registry.h"
#include "runtime/hal/operation.h"

namespace bowline {

// Sets to[0, count) to `op` over the arrays of `from`, combined in their order; each is read once. `to` may be one of
// `from`, with no other overlap. Rounds as hal::Exchange states. CanReduce(dtype) holds, and `from` is not empty.
void Reduce(absl::Span<const void* const> from, void* to, size_t count, kernels::DType dtype, hal::ReduceOp op);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_REDUCE_H_
