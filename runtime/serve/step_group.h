#ifndef BOWLINE_RUNTIME_SERVE_STEP_GROUP_H_
#define BOWLINE_RUNTIME_SERVE_STEP_GROUP_H_

// Steps of a plan for several ranks: rank 0 decides which entry runs and with which inputs, and sends both to the other
// ranks before it runs the entry itself. All ranks have the same plan.
//
// A message begins with an i32 [1]: the index of an entry of kind Step, -1 for nothing (the leader is alive) or -2 for
// the end. After an entry's index follow the bytes of all its inputs, in the order of the entry's ports.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/comm/group.h"
#include "runtime/executor/session.h"
#include "runtime/hal/exchange.h"

namespace bowline::serve {

// A port of a step and all bytes of its value.
struct StepInput {
  TensorRef port;
  absl::Span<const uint8_t> bytes;
};

// Rank 0's end of the group, which sends the steps.
class StepLeader {
 public:
  struct Options {
    // The group's timeout: how long a rank waits for another. When idle, the leader sends a message in each quarter.
    std::chrono::nanoseconds timeout = std::chrono::minutes(5);
    // Called at most once, on a thread of the leader, after the group broke: no step can run any more.
    std::function<void(const absl::Status& why)> broken = {};
  };

  // Rank 0 calls this while each other rank calls FollowSteps. Session and group outlive the leader.
  static absl::StatusOr<std::unique_ptr<StepLeader>> Create(const Session& session, RankGroup& group, Options options);
  // Ends the followers, unless the group is broken.
  ~StepLeader();

  // Sends a step. `inputs` has each port of the entry once, in any order; otherwise the error is kInternal, and nothing
  // was sent. Other errors are the group's.
  absl::Status Send(int entry, absl::Span<const StepInput> inputs);
  // Breaks the group: this rank's step failed, and the others may wait for it.
  void Abort(const absl::Status& why);

 private:
  StepLeader(const Session& session, RankGroup& group, Options options, std::unique_ptr<hal::Exchange> exchange);

  void KeepAlive();
  absl::StatusOr<const std::vector<TensorRef>*> PortsOf(int entry);
  // The caller holds mutex_.
  absl::Status SendToAll(int32_t kind, absl::Span<const hal::HostPiece> pieces);

  const Session& session_;
  std::map<int, std::vector<TensorRef>> ports_;  // inputs of the entries sent so far, by entry
  RankGroup& group_;
  const Options options_;
  const std::unique_ptr<hal::Exchange> exchange_;
  std::mutex mutex_;
  std::condition_variable ends_changed_;
  std::chrono::steady_clock::time_point last_sent_;
  bool ends_ = false;
  std::thread thread_;
};

// The other ranks' end: runs the steps that rank 0 sends, until the StepLeader is destroyed. Errors are those of the
// steps and of the group; kInternal for a message with an index that is no entry of kind Step.
absl::Status FollowSteps(Session& session, RankGroup& group);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_STEP_GROUP_H_
