#ifndef BOWLINE_RUNTIME_TRAIN_AGREEMENT_H_
#define BOWLINE_RUNTIME_TRAIN_AGREEMENT_H_

#include <cstdint>
#include <memory>

#include "runtime/base/status.h"
#include "runtime/comm/group.h"
#include "runtime/hal/device.h"

namespace bowline {

// What all ranks of a run decide together, where each knows something of its own: a signal that one of them got.
class Agreement {
 public:
  // `group` may be null: a run of one rank. All ranks call this, and then AnyOf equally often. Group and device outlive
  // the result.
  static absl::StatusOr<Agreement> Create(CommunicatorGroup* group, hal::Device& device);

  // Whether `mine` is true on any rank; waits for all. No allocation. The group's error if it is broken.
  absl::StatusOr<bool> AnyOf(bool mine);

 private:
  Agreement() = default;

  std::unique_ptr<hal::Communicator> communicator_;  // null: one rank
  std::unique_ptr<hal::Stream> stream_;
  std::unique_ptr<int32_t> flag_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_AGREEMENT_H_
