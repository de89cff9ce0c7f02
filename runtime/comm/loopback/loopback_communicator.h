#ifndef BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_COMMUNICATOR_H_

#include <memory>

#include "runtime/hal/communicator.h"

namespace bowline {

// The ranks of one process. Today that is one rank, over which every collective is the identity; more are
// kUnimplemented.
absl::StatusOr<std::unique_ptr<hal::Communicator>> CreateLoopbackCommunicator(int size);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_COMMUNICATOR_H_
