//===- Communications.cpp - operations between roles, matched -------------===//

#include "checker/Communications.h"

#include "checker/Counterexample.h"
#include "runtime/plan/view/matching.h"
#include "runtime/plan/view/mesh_view.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace bowline {

Communications::Communications(const Timeline &timeline, absl::string_view entry)
    : timeline_(timeline), plan_(timeline.plan()), entries_(RoleCount(plan_)), parts_(RoleCount(plan_)) {
  for (uint32_t i = 0; i < plan_.entries()->size(); ++i) {
    if (TextOf(plan_.entries()->Get(i)->name()) != entry)
      continue;
    const fbs::Program &program = timeline.programOf(i);
    entries_[program.role()] = i;
    // Commands are found once per segment, so that a call of the segment costs only its communications.
    std::vector<std::vector<uint32_t>> between(SizeOf(program.segments()));
    for (uint32_t s = 0; s < between.size(); ++s) {
      const auto *commands = program.segments()->Get(s)->commands();
      for (uint32_t c = 0; c < SizeOf(commands); ++c)
        if (CommunicatesBetweenRoles(plan_, *commands->Get(c)))
          between[s].push_back(c);
    }
    for (uint32_t call = 0; call < SizeOf(program.timeline()); ++call)
      partCount_ += between[program.timeline()->Get(call)->segment()].size();
    if (partCount_ > kMostParts)
      return; // match() reports it
    for (uint32_t call = 0; call < SizeOf(program.timeline()); ++call) {
      const uint32_t segment = program.timeline()->Get(call)->segment();
      for (const uint32_t c : between[segment])
        parts_[program.role()].push_back({{i, call, c}, program.segments()->Get(segment)->commands()->Get(c), 0});
    }
  }
}

std::string Communications::rankOf(uint32_t role) const {
  uint32_t rank = 0;
  if (roles() > 1) {
    rank = role;
    for (uint32_t i = plan_.role_axis() + 1; i < SizeOf(plan_.mesh()); ++i)
      rank *= plan_.mesh()->Get(i)->size();
  }
  return DescribeRank(plan_, rank);
}

std::string Communications::describe(Participation member) const { return timeline_.describe(at(member).site); }

void Communications::addOperation(const Members &members) {
  for (const Participation &member : members)
    parts_[member.role][member.index].operation = operations();
  members_.push_back(members);
}

absl::Status Communications::matchPair(Participation first, Participation second) const {
  const std::string why = WhyDifferent(first.role, *at(first).command, second.role, *at(second).command);
  if (why.empty())
    return absl::OkStatus();
  return counterexample("matching",
                        absl::StrCat(rankOf(first.role), " comes to ", describe(first), "; ", rankOf(second.role),
                                     " comes to ", describe(second), " in the same place; ", why));
}

absl::Status Communications::matchCollectives(uint32_t communicator, const std::vector<Members> &byRole) {
  const auto fewest = std::min_element(byRole.begin(), byRole.end(),
                                       [](const Members &a, const Members &b) { return a.size() < b.size(); });
  for (size_t k = 0; k < fewest->size(); ++k) {
    Members members;
    for (const Members &role : byRole) {
      members.push_back(role[k]);
      BOWLINE_RETURN_IF_ERROR(matchPair(members.front(), role[k]));
    }
    addOperation(members);
  }
  for (uint32_t role = 0; role < roles(); ++role) {
    if (byRole[role].size() == fewest->size())
      continue;
    const auto lacks = static_cast<uint32_t>(fewest - byRole.begin());
    return counterexample("matching",
                          absl::StrCat(rankOf(role), " comes to ", describe(byRole[role][fewest->size()]),
                                       ", collective ", fewest->size(), " on ",
                                       Quoted(plan_.communicators()->Get(communicator)->name()), ", counted from 0; ",
                                       rankOf(lacks), " is in the group and issues only ", fewest->size()));
  }
  return absl::OkStatus();
}

absl::Status Communications::matchTransfers(const Channel &channel, const Members &sends, const Members &receives) {
  const size_t both = std::min(sends.size(), receives.size());
  for (size_t k = 0; k < both; ++k) {
    BOWLINE_RETURN_IF_ERROR(matchPair(sends[k], receives[k]));
    addOperation({sends[k], receives[k]});
  }
  if (sends.size() == receives.size())
    return absl::OkStatus();
  const bool sent = sends.size() > both;
  const auto &[communicator, sender, receiver] = channel;
  return counterexample("matching",
                        absl::StrCat(rankOf(sent ? sender : receiver), " comes to ",
                                     describe((sent ? sends : receives)[both]), ", number ", both,
                                     " of its kind, counted from 0; ", rankOf(sent ? receiver : sender),
                                     " issues only ", both, sent ? " receives" : " sends", " to go with it on ",
                                     Quoted(plan_.communicators()->Get(communicator)->name())));
}

absl::Status Communications::match() {
  if (partCount_ > kMostParts)
    return absl::ResourceExhaustedError(
        absl::StrCat("an entry has more than ", kMostParts, " communications between roles, too many to check"));
  std::map<uint32_t, std::vector<Members>> collectives;
  std::map<Channel, std::pair<Members, Members>> transfers;
  for (uint32_t role = 0; role < roles(); ++role) {
    for (uint32_t i = 0; i < parts_[role].size(); ++i) {
      const fbs::Command &command = *parts_[role][i].command;
      const Participation member{role, i};
      if (const fbs::Send *send = command.body_as_Send()) {
        transfers[{send->communicator(), role, send->peer()}].first.push_back(member);
      } else if (const fbs::Receive *receive = command.body_as_Receive()) {
        transfers[{receive->communicator(), receive->peer(), role}].second.push_back(member);
      } else {
        std::vector<Members> &byRole = collectives[*CommunicatorOf(command)];
        byRole.resize(roles());
        byRole[role].push_back(member);
      }
    }
  }
  for (const auto &[communicator, byRole] : collectives)
    BOWLINE_RETURN_IF_ERROR(matchCollectives(communicator, byRole));
  for (const auto &[channel, both] : transfers)
    BOWLINE_RETURN_IF_ERROR(matchTransfers(channel, both.first, both.second));
  return absl::OkStatus();
}

std::vector<std::vector<uint32_t>> Communications::predecessors(uint32_t role, IssueMode mode) const {
  const std::vector<Part> &parts = parts_[role];
  std::vector<std::vector<uint32_t>> result(parts.size());
  if (parts.empty())
    return result;
  const fbs::Program &program = timeline_.programOf(entries_[role]);
  StreamOrder order(program, mode);
  // byStream[stream][place - 1] is the index into parts of the command at that place.
  std::vector<std::vector<uint32_t>> byStream(SizeOf(program.streams()));
  uint32_t next = 0;
  for (uint32_t call = 0; call < SizeOf(program.timeline()) && next < parts.size(); ++call) {
    const fbs::SegmentCall &c = *program.timeline()->Get(call);
    const auto *commands = program.segments()->Get(c.segment())->commands();
    for (uint32_t i = 0; i < SizeOf(commands) && next < parts.size(); ++i) {
      const fbs::Command &command = *commands->Get(i);
      if (const fbs::Signal *signal = command.body_as_Signal()) {
        order.signal(command.stream(), EventOf(*signal, c.slot()));
      } else if (const fbs::Wait *wait = command.body_as_Wait()) {
        order.wait(command.stream(), EventOf(*wait, c.slot())); // another proof says that it was signalled
      } else {
        const bool counts = parts[next].command == &command;
        order.issue(command.stream(), counts);
        if (!counts)
          continue;
        const absl::Span<const uint32_t> clock = order.clock(command.stream());
        byStream[command.stream()].push_back(next);
        for (uint16_t stream = 0; stream < clock.size(); ++stream) {
          // The clock of the part's own stream counts the part, too.
          const uint32_t over = clock[stream] - (stream == command.stream());
          if (over > 0)
            result[next].push_back(byStream[stream][over - 1]);
        }
        ++next;
      }
    }
  }
  return result;
}

} // namespace bowline
