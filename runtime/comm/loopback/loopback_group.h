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
#include "runtime/comm/group.h"
#include "runtime/comm/loopback/channel.h"

namespace bowline {

struct LoopbackOptions {
  // The time for which an operation waits for another rank before it reports the missing ranks.
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);
};

// Ranks that are threads of this process. Data goes straight from one rank's memory to another's, so each rank's device
// memory must be visible to the host. Ranks wait for each other without using the processor.
class LoopbackGroup : private ChannelOwner {
 public:
  static constexpr int kMaxRanks = MeetingPoint::kMaxMembers;

  // Returns kInvalidArgument unless 1 <= ranks <= kMaxRanks and the timeout is above zero.
  static absl::StatusOr<std::unique_ptr<LoopbackGroup>> Create(int ranks, const LoopbackOptions& options = {});
  ~LoopbackGroup() override;

  int ranks() const { return ranks_; }

  // Returns this group as `rank` sees it; the caller must destroy it before the group. 0 <= rank < ranks().
  std::unique_ptr<RankGroup> AsRank(int rank);

  // Does RankGroup::CreateExchange for `rank`, without waiting for other members.
  absl::StatusOr<std::unique_ptr<hal::Exchange>> CreateExchange(int rank, absl::string_view name,
                                                                absl::Span<const int> members,
                                                                const LinkOptions& link = {});

  void Abort(absl::Status why) { Break(std::move(why)).IgnoreError(); }

  absl::Status status() const override;

  // Contract
  //   All methods may be called from several threads. An error of any exchange breaks the group.

 private:
  struct Entry {
    std::shared_ptr<Channel> channel;
    std::vector<bool> taken;  // by member
  };

  LoopbackGroup(int ranks, const LoopbackOptions& options) : ranks_(ranks), options_(options) {}

  std::chrono::nanoseconds timeout() const override { return options_.timeout; }
  absl::Status Break(absl::Status why) override;
  std::string DescribeRanks(std::vector<int> ranks) const override;

  const int ranks_;
  const LoopbackOptions options_;
  std::atomic<bool> broken_{false};
  mutable std::mutex mutex_;  // guards the members below; never held by an operation that succeeds
  absl::Status status_;
  std::map<std::string, Entry, std::less<>> channels_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_GROUP_H_
