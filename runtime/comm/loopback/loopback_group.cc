#include "runtime/comm/loopback/loopback_group.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/comm/loopback/loopback_endpoint.h"

namespace bowline {
namespace {

class RankView : public RankGroup {
 public:
  RankView(LoopbackGroup& group, int rank) : group_(group), rank_(rank) {}

  int rank() const override { return rank_; }
  int ranks() const override { return group_.ranks(); }
  absl::StatusOr<std::unique_ptr<hal::Exchange>> CreateExchange(absl::string_view name, absl::Span<const int> members,
                                                                const LinkOptions& link) override {
    return group_.CreateExchange(rank_, name, members, link);
  }
  void Abort(absl::Status why) override { group_.Abort(std::move(why)); }
  absl::Status status() const override { return group_.status(); }

 private:
  LoopbackGroup& group_;
  const int rank_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LoopbackGroup>> LoopbackGroup::Create(int ranks, const LoopbackOptions& options) {
  if (ranks < 1 || ranks > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group of ", ranks, " ranks in one process; it takes 1 to ", kMaxRanks));
  }
  // An hour-long timeout is fine; one that overflows the clock when it is added is not.
  if (options.timeout.count() <= 0 || options.timeout > std::chrono::hours(24 * 365)) {
    return absl::InvalidArgumentError(absl::StrCat("a timeout of ",
                                                   std::chrono::duration<double>(options.timeout).count(),
                                                   " s; it must be above zero and at most a year"));
  }
  return std::unique_ptr<LoopbackGroup>(new LoopbackGroup(ranks, options));
}

LoopbackGroup::~LoopbackGroup() = default;

std::unique_ptr<RankGroup> LoopbackGroup::AsRank(int rank) { return std::make_unique<RankView>(*this, rank); }

absl::StatusOr<std::unique_ptr<hal::Exchange>> LoopbackGroup::CreateExchange(int rank, absl::string_view name,
                                                                             absl::Span<const int> members,
                                                                             const LinkOptions& link) {
  BOWLINE_RETURN_IF_ERROR(CheckMembers(rank, ranks_, name, members));
  const size_t self = static_cast<size_t>(std::find(members.begin(), members.end(), rank) - members.begin());
  const std::lock_guard<std::mutex> lock(mutex_);
  BOWLINE_RETURN_IF_ERROR(status_);
  auto found = channels_.find(name);
  if (found == channels_.end()) {
    Entry entry;
    entry.channel = std::make_shared<Channel>(static_cast<ChannelOwner&>(*this), std::string(name), members, link);
    entry.taken.resize(members.size());
    found = channels_.emplace(std::string(name), std::move(entry)).first;
  }
  Entry& entry = found->second;
  if (entry.channel->ranks() != std::vector<int>(members.begin(), members.end())) {
    return absl::InvalidArgumentError(absl::StrCat("communicator '", name, "': rank ", rank, " wants the ranks ",
                                                   absl::StrJoin(members, ", "), ", another wanted ",
                                                   absl::StrJoin(entry.channel->ranks(), ", ")));
  }
  if (entry.channel->link().bandwidth != link.bandwidth || entry.channel->link().latency != link.latency) {
    return absl::InvalidArgumentError(
        absl::StrCat("communicator '", name, "': rank ", rank, " wants another link than the others"));
  }
  if (entry.taken[self]) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " has communicator '", name, "' already"));
  }
  entry.taken[self] = true;
  return std::make_unique<LoopbackEndpoint>(entry.channel, static_cast<int>(self));
}

absl::Status LoopbackGroup::status() const {
  if (!broken_.load(std::memory_order_acquire)) return absl::OkStatus();
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

absl::Status LoopbackGroup::Break(absl::Status why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!status_.ok() || why.ok()) return status_;
  status_ = std::move(why);
  broken_.store(true, std::memory_order_release);
  for (const auto& [name, entry] : channels_) entry.channel->BreakOff();
  return status_;
}

std::string LoopbackGroup::DescribeRanks(std::vector<int> ranks) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  std::set<int> seen;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int rank = ranks[i];
    if (!seen.insert(rank).second) continue;
    std::vector<std::string> activities;
    for (const auto& [name, entry] : channels_) {
      std::vector<int> waits_for;
      std::string activity = entry.channel->DescribeRank(rank, waits_for);
      if (activity.empty()) continue;
      if (!waits_for.empty()) {
        absl::StrAppend(&activity, ", which waits for ", waits_for.size() == 1 ? "rank " : "ranks ",
                        absl::StrJoin(waits_for, ", "));
      }
      activities.push_back(std::move(activity));
      ranks.insert(ranks.end(), waits_for.begin(), waits_for.end());
    }
    absl::StrAppend(&text, "; rank ", rank, " is in ",
                    activities.empty() ? std::string("no operation") : absl::StrJoin(activities, " and in "));
  }
  return text;
}

}  // namespace bowline
