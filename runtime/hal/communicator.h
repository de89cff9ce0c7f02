#ifndef BOWLINE_RUNTIME_HAL_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_HAL_COMMUNICATOR_H_

#include <cstddef>

#include "kernels/registry/registry.h"
#include "runtime/base/status.h"
#include "runtime/hal/stream.h"

namespace bowline::hal {

enum class ReduceOp { kSum, kMax, kMin };

// An ordered set of ranks that exchange data. Every rank calls the same operations in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Into the stream. `count` elements per rank; device addresses. `send == receive` is allowed where the shapes agree;
  // other overlaps are not.
  //   AllReduce:     receive[count]        = op over ranks of send[count]
  //   AllGather:     receive[size * count] = concatenation of every rank's send[count]
  //   ReduceScatter: receive[count]        = this rank's part of op over ranks of send[size * count]
  virtual absl::Status AllReduce(Stream& stream, const void* send, void* receive, size_t count, kernels::DType dtype,
                                 ReduceOp op) = 0;
  virtual absl::Status AllGather(Stream& stream, const void* send, void* receive, size_t count,
                                 kernels::DType dtype) = 0;
  virtual absl::Status ReduceScatter(Stream& stream, const void* send, void* receive, size_t count,
                                     kernels::DType dtype, ReduceOp op) = 0;

  // Of the calling threads; returns when every rank is there.
  virtual absl::Status Barrier() = 0;
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_COMMUNICATOR_H_
