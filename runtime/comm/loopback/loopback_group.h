#ifndef BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_GROUP_H_
#define BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_GROUP_H_

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/comm/loopback/channel.h"
#include "runtime/comm/loopback/link.h"
#include "runtime/hal/communicator.h"

namespace bowline {

struct LoopbackOptions {
  // How long an operation waits for another rank before it says who is missing.
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);
};

// Ranks that are threads of this process. Data goes straight from one rank's memory to another's, so each rank's device
// memory must be visible to the host. Ranks wait for each other without using the processor.
class LoopbackGroup : private ChannelOwner {
 public:
  static constexpr int kMaxRanks = MeetingPoint::kMaxMembers;

  // kInvalidArgument unless 1 <= ranks <= kMaxRanks and the timeout is above zero.
  static absl::StatusOr<std::unique_ptr<LoopbackGroup>> Create(int ranks, const LoopbackOptions& options = {});
  ~LoopbackGroup() override;

  int ranks() const { return ranks_; }

  // The communicator `name` of `members` as `rank`, one of them, sees it. Each member asks for its own, once, with the
  // same members in the same order and the same link; any number of communicators may have the same members. They must
  // be destroyed before the group. Every communicator's operations take at least as long as its link would.
  // kInvalidArgument saying what is wrong, or the error that broke the group.
  absl::StatusOr<std::unique_ptr<hal::Communicator>> CreateCommunicator(int rank, absl::string_view name,
                                                                        absl::Span<const int> members,
                                                                        const LinkOptions& link = {});

  // Ends all operations, and all that come later, with `why`: for a rank that cannot go on, so that the others do not
  // wait for it. The first error stays.
  void Abort(absl::Status why) { Break(std::move(why)).IgnoreError(); }

  // OK, or what broke the group.
  absl::Status status() const override;

  // Contract
  //   All methods may be called from several threads. An error of any communicator breaks the group.

 private:
  struct Entry {
    std::shared_ptr<Channel> channel;
    std::vector<bool> taken;  // by member
  };

  LoopbackGroup(int ranks, const LoopbackOptions& options) : ranks_(ranks), options_(options) {}

  std::chrono::nanoseconds timeout() const override { return options_.timeout; }
  absl::Status Break(absl::Status why) override;
  std::string DescribeRanks(std::vector<int> ranks) const override;
  absl::Status CheckMembers(int rank, absl::string_view name, absl::Span<const int> members) const;

  const int ranks_;
  const LoopbackOptions options_;
  std::atomic<bool> broken_{false};
  mutable std::mutex mutex_;  // of what follows; never held by an operation that succeeds
  absl::Status status_;
  std::map<std::string, Entry, std::less<>> channels_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_GROUP_H_
