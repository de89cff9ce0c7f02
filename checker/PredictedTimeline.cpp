//===- PredictedTimeline.cpp - when commands would run --------------------===//

#include "checker/PredictedTimeline.h"

#include "checker/Communications.h"
#include "checker/DeadlockCheck.h"
#include "runtime/plan/view/collective_view.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/operand_uses.h"
#include "runtime/plan/view/plan_view.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

namespace bowline {
namespace {

class Cost {
public:
  Cost(const fbs::Plan &plan, const targets::CostModel &model) : plan_(plan), model_(model) {}

  double seconds(const fbs::Command &command) {
    if (const fbs::Launch *launch = command.body_as_Launch()) {
      const fbs::Kernel &kernel = *plan_.kernels()->Get(launch->kernel());
      return model_.LaunchSeconds(kernel.flops(), kernel.bytes_moved());
    }
    if (const fbs::Copy *copy = command.body_as_Copy())
      return model_.CopySeconds(static_cast<double>(copy->bytes()));
    uses_.clear();
    AppendCommunicationOperands(plan_, command, uses_);
    double read = 0, written = 0;
    for (const OperandUse &use : uses_)
      (Writes(use.access) ? written : read) += static_cast<double>(use.bytes);
    const fbs::Collective *collective = command.body_as_Collective();
    const fbs::Communicator &communicator = *plan_.communicators()->Get(*CommunicatorOf(command));
    double ranks = 1;
    std::vector<absl::string_view> axes;
    for (uint32_t i = 0; i < SizeOf(communicator.axes()); ++i) {
      const fbs::Axis &axis = *plan_.mesh()->Get(communicator.axes()->Get(i));
      ranks *= axis.size();
      axes.push_back(TextOf(axis.name()));
    }
    const targets::LinkOptions link = model_.LinkAlong(axes);
    if (!collective)
      return model_.TransferSeconds(link, read + written);
    return model_.CollectiveSeconds(link, DefinitionOf(collective->kind()), std::max(read, written), ranks);
  }

private:
  const fbs::Plan &plan_;
  const targets::CostModel &model_;
  std::vector<OperandUse> uses_;
};

/// One rank of a role, with the commands that it has run so far.
class Rank {
public:
  Rank(const Timeline &timeline, uint32_t entry, Cost &cost)
      : timeline_(timeline), program_(timeline.programOf(entry)), cost_(cost), streamEnd_(SizeOf(program_.streams())),
        eventEnd_(program_.events()) {
    timeline.forEachCommand(entry, [&](CommandSite site, const fbs::Command &, absl::Span<const OperandAccess>) {
      sites_.push_back(site);
      return true;
    });
  }

  /// Runs the commands in front of the one at `site`; all that are left where `site` is null.
  void runTo(const CommandSite *site) {
    for (; next_ < sites_.size() && !(site && isSame(sites_[next_], *site)); ++next_)
      runNext();
  }

  /// The time in seconds at which the next command can begin.
  double ready() const { return std::max(streamEnd_[streamOf(sites_[next_])], streamEnd_[0]); }

  void runNextUntil(double begin, double end) {
    commands_.push_back({sites_[next_], begin, end});
    streamEnd_[streamOf(sites_[next_])] = end;
    ++next_;
  }

  std::vector<PredictedCommand> take() { return std::move(commands_); }

private:
  static bool isSame(CommandSite a, CommandSite b) { return a.call == b.call && a.command == b.command; }
  uint16_t streamOf(CommandSite site) const { return timeline_.commandAt(site).stream(); }

  void runNext() {
    const CommandSite site = sites_[next_];
    const fbs::Command &command = timeline_.commandAt(site);
    const uint32_t slot = program_.timeline()->Get(site.call)->slot();
    double &stream = streamEnd_[command.stream()];
    const double begin = ready();
    if (const fbs::Signal *signal = command.body_as_Signal()) {
      eventEnd_[EventOf(*signal, slot)] = stream;
      return;
    }
    if (const fbs::Wait *wait = command.body_as_Wait())
      stream = std::max(begin, eventEnd_[EventOf(*wait, slot)]);
    else
      stream = begin + cost_.seconds(command);
    commands_.push_back({site, begin, stream});
  }

  const Timeline &timeline_;
  const fbs::Program &program_;
  Cost &cost_;
  std::vector<CommandSite> sites_;
  size_t next_ = 0;
  std::vector<double> streamEnd_, eventEnd_;
  std::vector<PredictedCommand> commands_;
};

} // namespace

absl::StatusOr<targets::CostModel> costModelOf(const fbs::Plan &plan, absl::Span<const std::string> texts) {
  const absl::string_view device = TextOf(plan.target()->device());
  const auto target = targets::FindTarget(std::string_view(device.data(), device.size()));
  std::vector<std::string> axes;
  for (uint32_t i = 0; i < SizeOf(plan.mesh()); ++i)
    axes.emplace_back(TextOf(plan.mesh()->Get(i)->name()));
  BOWLINE_ASSIGN_OR_RETURN(targets::LinkTable links, targets::ParseLinks(texts, axes));
  const targets::Target &description = target.ok() ? **target : targets::DefaultTarget();
  const absl::string_view level = TextOf(plan.target()->cpu());
  return targets::CostModel(description.costs(std::string_view(level.data(), level.size())), plan.target()->threads(),
                            std::move(links));
}

absl::StatusOr<std::vector<uint32_t>> entriesOf(const Timeline &timeline, absl::string_view entry) {
  const fbs::Plan &plan = timeline.plan();
  std::vector<uint32_t> entries;
  for (uint32_t role = 0; role < RoleCount(plan); ++role)
    for (uint32_t i = 0; i < plan.entries()->size(); ++i)
      if (TextOf(plan.entries()->Get(i)->name()) == entry && timeline.programOf(i).role() == role)
        entries.push_back(i);
  if (entries.size() == RoleCount(plan))
    return entries;
  std::set<std::string> names;
  for (const fbs::Entry *each : *plan.entries())
    names.insert(Quoted(each->name()));
  return absl::NotFoundError(
      absl::StrCat("not every role of the plan has an entry '", entry, "'; it has ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<std::vector<std::vector<PredictedCommand>>>
predictTimeline(const Timeline &timeline, absl::string_view entry, const targets::CostModel &model) {
  const fbs::Plan &plan = timeline.plan();
  Cost cost(plan, model);
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<uint32_t> entries, entriesOf(timeline, entry));
  std::vector<Rank> ranks;
  for (const uint32_t each : entries)
    ranks.emplace_back(timeline, each, cost);
  Communications communications(timeline, entry);
  BOWLINE_RETURN_IF_ERROR(communications.match());
  DeadlockCheck order(communications);
  BOWLINE_RETURN_IF_ERROR(order.check());
  // One order of all operations suits every rank: when a rank comes to an operation, all earlier ones are done.
  std::vector<uint32_t> operations(communications.operations());
  std::iota(operations.begin(), operations.end(), 0);
  std::sort(operations.begin(), operations.end(),
            [&](uint32_t a, uint32_t b) { return order.numbers()[a] < order.numbers()[b]; });
  for (const uint32_t operation : operations) {
    double begin = 0, seconds = 0;
    for (const Participation &member : communications.membersOf(operation)) {
      const Communications::Part &part = communications.at(member);
      ranks[member.role].runTo(&part.site);
      begin = std::max(begin, ranks[member.role].ready());
      seconds = std::max(seconds, cost.seconds(*part.command));
    }
    for (const Participation &member : communications.membersOf(operation))
      ranks[member.role].runNextUntil(begin, begin + seconds);
  }
  std::vector<std::vector<PredictedCommand>> result;
  for (Rank &rank : ranks) {
    rank.runTo(nullptr);
    result.push_back(rank.take());
  }
  return result;
}

} // namespace bowline
