#ifndef BOWLINE_RUNTIME_EXECUTOR_TENSOR_REF_H_
#define BOWLINE_RUNTIME_EXECUTOR_TENSOR_REF_H_

#include <cstdint>

#include "absl/types/span.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// A dense, row-major tensor in one slot of a session's buffer, for Session::Read and Session::Write.
struct TensorRef {
  uint32_t buffer = 0;  // index in Plan.buffers
  uint32_t slot = 0;
  uint64_t bytes = 0;
  fbs::DType dtype = fbs::DType::F32;
  absl::Span<const int64_t> shape;  // valid as long as the session
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_TENSOR_REF_H_
