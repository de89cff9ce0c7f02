#ifndef BOWLINE_RUNTIME_SERVE_STEP_GROUP_H_
#define BOWLINE_RUNTIME_SERVE_STEP_GROUP_H_

// Steps of a plan for several ranks: rank 0 decides which entry runs and with which inputs, and sends both to the other
// ranks before it runs the entry itself. All ranks have the same plan.
//
// A message is a kind as i32 [1]: the index of an entry of kind Step, or one of the two below. After an entry's index
// the bytes of all its inputs follow, in the order of the entry's ports.

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

// Rank 0's end.
class StepLeader {
 public:
  struct Options {
    // The group's: how long a rank waits for another. While no step runs, something is sent in a part of it.
    std::chrono::nanoseconds timeout = std::chrono::minutes(5);
    // Is called at most once, on a thread of the leader, when the group broke: no step runs any more.
    std::function<void(const absl::Status& why)> broken = {};
  };

  // Called by rank 0 while each other rank calls FollowSteps. Session and group outlive the leader.
  static absl::StatusOr<std::unique_ptr<StepLeader>> Create(const Session& session, RankGroup& group, Options options);
  // Ends the followers, as long as the group is whole.
  ~StepLeader();

  // Sends a step. `inputs` has each port of the entry once, in any order: kInternal otherwise, and nothing was sent.
  // Other errors are the group's.
  absl::Status Send(int entry, absl::Span<const StepInput> inputs);
  // Breaks the group: this rank's step failed, and the others may wait for it.
  void Abort(const absl::Status& why);

 private:
  StepLeader(const Session& session, RankGroup& group, Options options, std::unique_ptr<hal::Exchange> exchange);

  void KeepAlive();
  absl::StatusOr<const std::vector<TensorRef>*> PortsOf(int entry);
  // The mutex is held.
  absl::Status SendToAll(int32_t kind, absl::Span<const hal::HostPiece> pieces);

  const Session& session_;
  std::map<int, std::vector<TensorRef>> ports_;  // of entries that were sent
  RankGroup& group_;
  const Options options_;
  const std::unique_ptr<hal::Exchange> exchange_;
  std::mutex mutex_;
  std::condition_variable ends_changed_;
  std::chrono::steady_clock::time_point last_sent_;
  bool ends_ = false;
  std::thread thread_;
};

// Every other rank's end: runs the steps that rank 0 sends, until its leader ends. Errors are those of the steps and
// of the group; kInternal for a message that fits no entry.
absl::Status FollowSteps(Session& session, RankGroup& group);

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_STEP_GROUP_H_
