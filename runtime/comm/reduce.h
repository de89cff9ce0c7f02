#ifndef BOWLINE_RUNTIME_COMM_REDUCE_H_
#define BOWLINE_RUNTIME_COMM_REDUCE_H_

#include <cstddef>

#include "absl/types/span.h"
#include "kernels/registry/registry.h"
#include "runtime/hal/operation.h"

namespace bowline {

// to[0, count) = op over `from`, combined in their order; each is read once. `to` may be one of `from`, no other
// overlap. Numerics as hal::Exchange says. CanReduce(dtype), and `from` is not empty.
void Reduce(absl::Span<const void* const> from, void* to, size_t count, kernels::DType dtype, hal::ReduceOp op);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_REDUCE_H_
