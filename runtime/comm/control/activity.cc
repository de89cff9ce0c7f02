#include "runtime/comm/control/activity.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/hal/operation.h"

namespace bowline {
namespace {

using Health = RankState::Health;

std::string Ranks(const std::vector<int>& ranks) {
  constexpr size_t kMost = 8;
  const auto end = ranks.begin() + static_cast<ptrdiff_t>(std::min(kMost, ranks.size()));
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(ranks.begin(), end, ", "),
                      ranks.size() > kMost ? absl::StrCat(" and ", ranks.size() - kMost, " more") : "");
}

// Follows which rank waits for which. Messages about thousands of ranks name the first few.
class Inquiry {
 public:
  static constexpr size_t kMostNamed = 4;

  explicit Inquiry(const std::vector<RankState>& ranks) : ranks_(ranks) {}

  bool Knows(int rank) const { return rank >= 0 && static_cast<size_t>(rank) < ranks_.size(); }

  std::vector<int> WithHealth(Health health) const {
    std::vector<int> found;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].health == health) found.push_back(static_cast<int>(rank));
    }
    return found;
  }

  std::vector<int> WaitsFor(const Activity& activity) const {
    const hal::Operation operation = hal::Operation::Unpack(activity.operation);
    if (activity.creating || activity.leaving || operation.concerns_two()) return activity.waits_for;
    std::vector<int> behind;
    for (int member : activity.ranks) {
      if (Knows(member) && CollectivesOf(member, activity.communicator) < activity.collectives) {
        behind.push_back(member);
      }
    }
    return behind.empty() ? activity.waits_for : behind;
  }

  // "rank 0 waits for rank 2 in all_reduce(...)", for each of its operations.
  std::vector<std::string> Waits(int rank) const {
    std::vector<std::string> texts;
    for (const Activity& activity : ranks_[static_cast<size_t>(rank)].activities) {
      if (activity.idle()) continue;
      const std::vector<int> others = WaitsFor(activity);
      texts.push_back(absl::StrCat("rank ", rank, others.empty() ? " is" : " waits for ",
                                   others.empty() ? "" : Ranks(others), " in ", Describe(activity)));
    }
    return texts;
  }

  // Lists the living ranks that wait, those that wait for one of `causes` first.
  std::string WaitsOfTheLiving(const std::vector<int>& causes) const {
    std::vector<std::string> texts, others;
    for (int rank : WithHealth(Health::kAlive)) {
      bool direct = false;
      for (const Activity& activity : ranks_[static_cast<size_t>(rank)].activities) {
        for (int other : activity.idle() ? std::vector<int>() : WaitsFor(activity)) {
          direct |= std::count(causes.begin(), causes.end(), other) > 0;
        }
      }
      for (std::string& text : Waits(rank)) (direct ? texts : others).push_back(std::move(text));
    }
    texts.insert(texts.end(), others.begin(), others.end());
    if (texts.size() > kMostNamed) {
      const size_t more = texts.size() - kMostNamed;
      texts.resize(kMostNamed);
      texts.push_back(absl::StrCat("and ", more, " more wait"));
    }
    return texts.empty() ? "" : absl::StrCat(absl::StrJoin(texts, ", "), "; ");
  }

  std::string Named(int rank) const {
    const std::string& where = ranks_[static_cast<size_t>(rank)].where;
    return absl::StrCat("rank ", rank, where.empty() ? "" : absl::StrCat(" (", where, ")"));
  }

  std::string Named(const std::vector<int>& ranks) const {
    std::vector<std::string> texts;
    for (int rank : ranks) {
      if (texts.size() == kMostNamed) {
        texts.push_back(absl::StrCat("and ", ranks.size() - kMostNamed, " more"));
        break;
      }
      texts.push_back(Named(rank));
    }
    return absl::StrJoin(texts, ", ");
  }

 private:
  uint64_t CollectivesOf(int rank, const std::string& communicator) const {
    for (const Activity& activity : ranks_[static_cast<size_t>(rank)].activities) {
      if (activity.communicator == communicator) return activity.collectives;
    }
    return 0;
  }

  const std::vector<RankState>& ranks_;
};

// Along the chain of waits, from the rank that complained to one that waits for no rank or that was there
// before.
absl::Status ExplainChain(const Complaint& complaint, const std::vector<RankState>& ranks, const Inquiry& inquiry) {
  std::vector<int> frontier = inquiry.WaitsFor(complaint.activity);
  std::string text = absl::StrCat("rank ", complaint.rank, " waited ", complaint.waited_seconds, " s ",
                                  frontier.empty() ? "" : absl::StrCat("for ", Ranks(frontier), " "), "in ",
                                  Describe(complaint.activity));
  std::vector<int> ends, seen_list;
  std::set<int> seen = {complaint.rank};
  for (size_t i = 0; i < frontier.size(); ++i) {
    const int rank = frontier[i];
    if (!inquiry.Knows(rank) || !seen.insert(rank).second) continue;
    seen_list.push_back(rank);
    const std::vector<std::string> waits = inquiry.Waits(rank);
    if (seen.size() <= Inquiry::kMostNamed + 1) {
      absl::StrAppend(
          &text, "; ",
          waits.empty() ? absl::StrCat("rank ", rank, " is in no operation") : absl::StrJoin(waits, " and "));
    }
    bool waits_for_somebody = false;
    for (const Activity& activity : ranks[static_cast<size_t>(rank)].activities) {
      if (activity.idle()) continue;
      const std::vector<int> next = inquiry.WaitsFor(activity);
      waits_for_somebody |= !next.empty();
      frontier.insert(frontier.end(), next.begin(), next.end());
    }
    if (!waits_for_somebody) ends.push_back(rank);
  }
  // A wait for a rank that left never succeeds, even where that rank was the one to complain.
  std::vector<int> left;
  for (int rank : frontier) {
    if (inquiry.Knows(rank) && ranks[static_cast<size_t>(rank)].health == Health::kLeft &&
        std::count(left.begin(), left.end(), rank) == 0) {
      left.push_back(rank);
    }
  }
  if (!left.empty()) {
    absl::StrAppend(&text, "; cause: ", inquiry.Named(left), " left the group before the others were done");
  } else if (!ends.empty()) {
    absl::StrAppend(&text, "; cause: ", inquiry.Named(ends),
                    ", alive but not there; look at its log and its stack, or raise the timeout if it needs longer");
  } else {
    seen_list.push_back(complaint.rank);
    std::sort(seen_list.begin(), seen_list.end());
    absl::StrAppend(&text, "; cause: ", Ranks(seen_list),
                    seen_list.size() == 1 ? " waits for itself" : " wait for each other");
  }
  return absl::DeadlineExceededError(text);
}

}  // namespace

std::string Describe(const Activity& activity) {
  if (activity.leaving) return "leaving the group";
  if (activity.creating) return absl::StrCat("the creation of communicator '", activity.communicator, "'");
  const hal::Operation operation = hal::Operation::Unpack(activity.operation);
  int peer = operation.peer;
  if (peer >= 0 && static_cast<size_t>(peer) < activity.ranks.size()) peer = activity.ranks[static_cast<size_t>(peer)];
  return absl::StrCat(Describe(operation, activity.total, peer), " (operation ", operation.number, " of communicator '",
                      activity.communicator, "')");
}

absl::Status Explain(const Complaint& complaint, const std::vector<RankState>& ranks) {
  const Inquiry inquiry(ranks);
  if (const std::vector<int> dead = inquiry.WithHealth(Health::kDead); !dead.empty()) {
    return absl::UnavailableError(absl::StrCat(
        inquiry.WaitsOfTheLiving(dead), "cause: ", inquiry.Named(dead),
        " died: its connection closed without a farewell, so it crashed or was killed; its own output says more"));
  }
  if (const std::vector<int> silent = inquiry.WithHealth(Health::kSilent); !silent.empty()) {
    double seconds = 0;
    for (int rank : silent) seconds = std::max(seconds, ranks[static_cast<size_t>(rank)].silent_seconds);
    return absl::UnavailableError(absl::StrCat(inquiry.WaitsOfTheLiving(silent), "cause: ", inquiry.Named(silent),
                                               " did not answer for ", absl::StrFormat("%.1f", seconds),
                                               " s: stopped, or its machine hangs, or the network to it is cut"));
  }
  if (inquiry.Knows(complaint.unreachable)) {
    const int other = complaint.unreachable;
    if (ranks[static_cast<size_t>(other)].health == Health::kLeft) {
      return absl::UnavailableError(absl::StrCat(inquiry.WaitsOfTheLiving({other}), "cause: ", inquiry.Named(other),
                                                 " left the group before the others were done"));
    }
    return absl::UnavailableError(absl::StrCat(inquiry.WaitsOfTheLiving({other}), "cause: the connection from ",
                                               inquiry.Named(complaint.rank), " to ", inquiry.Named(other), " failed (",
                                               complaint.failure,
                                               ") although both are alive; check the network between them"));
  }
  if (!complaint.failure.empty()) {
    const Activity& activity = complaint.activity;
    return absl::UnavailableError(
        absl::StrCat(inquiry.WaitsOfTheLiving({complaint.rank}), "cause: ", inquiry.Named(complaint.rank), " in ",
                     activity.idle() ? absl::StrCat("communicator '", activity.communicator, "'") : Describe(activity),
                     ": ", complaint.failure, "; all ranks are alive"));
  }
  return ExplainChain(complaint, ranks, inquiry);
}

void Write(WireWriter& writer, const std::vector<Activity>& activities) {
  writer.U32(static_cast<uint32_t>(activities.size()));
  for (const Activity& a : activities) {
    writer.Text(a.communicator)
        .List(a.ranks)
        .U64(a.operation)
        .U64(a.total)
        .U64(a.collectives)
        .U8(a.creating)
        .U8(a.leaving);
    writer.List(a.waits_for);
  }
}

std::vector<Activity> ReadActivities(WireReader& reader) {
  std::vector<Activity> activities;
  const uint32_t count = reader.U32();
  for (uint32_t i = 0; i < count; ++i) {
    Activity a;
    a.communicator = reader.Text();
    a.ranks = reader.List();
    a.operation = reader.U64();
    a.total = reader.U64();
    a.collectives = reader.U64();
    a.creating = reader.U8() != 0;
    a.leaving = reader.U8() != 0;
    a.waits_for = reader.List();
    if (reader.failed()) return {};
    activities.push_back(std::move(a));
  }
  return activities;
}

void Write(WireWriter& writer, const Complaint& complaint) {
  writer.U64(static_cast<uint64_t>(complaint.waited_seconds * 1e9));
  writer.I32(complaint.unreachable).Text(complaint.failure);
  Write(writer, std::vector<Activity>{complaint.activity});
}

Complaint ReadComplaint(WireReader& reader) {
  Complaint complaint;
  complaint.waited_seconds = static_cast<double>(reader.U64()) * 1e-9;
  complaint.unreachable = reader.I32();
  complaint.failure = reader.Text();
  std::vector<Activity> activities = ReadActivities(reader);
  if (activities.size() == 1) complaint.activity = std::move(activities[0]);
  return complaint;
}

}  // namespace bowline
