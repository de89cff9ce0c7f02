#include "runtime/plan/meaning/plan_meaning.h"

#include <deque>
#include <map>
#include <memory>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/plan/meaning/role_values.h"
#include "runtime/plan/view/matching.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

// The entries of one name, one per role, beside each other. A role goes on until it needs what another has not given
// yet. Whether they may wait for each other on a machine that buffers nothing is not asked here.
class EntryValues {
 public:
  EntryValues(PlanDigests& shared, absl::Span<const uint32_t> entry_of_role) : shared_(shared), plan_(shared.plan) {
    for (const uint32_t entry : entry_of_role) roles_.push_back(std::make_unique<RoleValues>(shared, entry));
  }

  absl::Status Run() {
    std::deque<uint32_t> ready;
    for (uint32_t role = 0; role < roles_.size(); ++role) ready.push_back(role);
    while (!ready.empty() && !shared_.meter.exhausted()) {
      RoleValues& role = *roles_[ready.front()];
      ready.pop_front();
      if (role.pending() == nullptr) role.Advance();
      while (role.pending() != nullptr && !shared_.meter.exhausted()) {
        BOWLINE_ASSIGN_OR_RETURN(const bool done, Communicate(role, ready));
        if (!done) break;
        role.Advance();
      }
    }
    if (shared_.meter.exhausted()) return absl::OkStatus();  // the caller returns the error
    for (const auto& role : roles_) {
      if (role->pending() != nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("role ", role->role(), ": ", role->DescribePlace(), " waits for another role for ever"));
      }
    }
    return absl::OkStatus();
  }

  EntryMeaning Finish(absl::string_view name) {
    EntryMeaning meaning;
    meaning.entry = std::string(name);
    for (const auto& role : roles_) meaning.roles.push_back(role->Finish());
    return meaning;
  }

 private:
  // Communicator, sender, receiver.
  using Channel = std::tuple<uint32_t, uint32_t, uint32_t>;
  struct Sent {
    const fbs::Command* command;
    Offer offer;
  };
  struct Transfers {
    std::deque<Sent> sent;
    bool awaited = false;
  };
  // The collective of a communicator to which roles come. Each comes once before all have come.
  struct Meeting {
    uint32_t first = 0, arrived = 0;
    std::vector<Offer> offers;  // by role
    std::vector<bool> here;
  };

  // Whether the role may go on after its pending command.
  absl::StatusOr<bool> Communicate(RoleValues& role, std::deque<uint32_t>& ready) {
    const fbs::Command& command = *role.pending();
    if (const fbs::Send* send = command.body_as_Send()) {
      Transfers& channel = channels_[{send->communicator(), role.role(), send->peer()}];
      channel.sent.push_back({&command, role.ReadPending()});
      if (channel.awaited) ready.push_back(send->peer());
      channel.awaited = false;
      return true;
    }
    if (const fbs::Receive* receive = command.body_as_Receive()) return Take(role, *receive, command);
    return Meet(role, *command.body_as_Collective(), command, ready);
  }

  absl::StatusOr<bool> Take(RoleValues& role, const fbs::Receive& receive, const fbs::Command& command) {
    Transfers& channel = channels_[{receive.communicator(), receive.peer(), role.role()}];
    channel.awaited = channel.sent.empty();
    if (channel.awaited) return false;
    const Sent sent = std::move(channel.sent.front());
    channel.sent.pop_front();
    BOWLINE_RETURN_IF_ERROR(CheckMatch(receive.peer(), *sent.command, role, command));
    role.WriteReceived(sent.offer.pieces, role.ReadPending().overlaps);
    shared_.meter.Drop(sent.offer.kept);
    return true;
  }

  absl::StatusOr<bool> Meet(RoleValues& role, const fbs::Collective& collective, const fbs::Command& command,
                            std::deque<uint32_t>& ready) {
    Meeting& meeting = meetings_[collective.communicator()];
    if (meeting.arrived == 0) {
      meeting.first = role.role();
      meeting.offers.assign(roles_.size(), {});
      meeting.here.assign(roles_.size(), false);
    }
    if (meeting.here[role.role()]) return false;
    BOWLINE_RETURN_IF_ERROR(CheckMatch(meeting.first, *roles_[meeting.first]->pending(), role, command));
    meeting.here[role.role()] = true;
    meeting.offers[role.role()] = role.ReadPending();
    if (++meeting.arrived < roles_.size()) return false;
    const Exchange exchange(plan_, collective, meeting.offers, shared_.meter);
    for (const auto& member : roles_) {
      member->WriteReceived(exchange.For(member->role()), exchange.overlaps());
      shared_.meter.Drop(meeting.offers[member->role()].kept);
      if (member->role() == role.role()) continue;
      member->Advance();
      ready.push_back(member->role());
    }
    meeting = Meeting();
    return true;
  }

  absl::Status CheckMatch(uint32_t first_role, const fbs::Command& first, const RoleValues& role,
                          const fbs::Command& command) const {
    if (&first == &command) return absl::OkStatus();
    const std::string why = WhyDifferent(first_role, first, role.role(), command);
    if (why.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("role ", role.role(), ": ", role.DescribePlace(), " does not match ",
                                                   DescribeCommand(plan_, first), " of role ", first_role, ": ", why));
  }

  PlanDigests& shared_;
  const fbs::Plan& plan_;
  std::vector<std::unique_ptr<RoleValues>> roles_;
  std::map<Channel, Transfers> channels_;
  std::map<uint32_t, Meeting> meetings_;  // by communicator
};

}  // namespace

absl::StatusOr<PlanMeaning> ComputeMeaning(const fbs::Plan& plan) {
  std::vector<absl::string_view> names;
  std::map<absl::string_view, std::vector<uint32_t>> entries;  // by role
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) {
    const absl::string_view name = TextOf(plan.entries()->Get(i)->name());
    std::vector<uint32_t>& by_role = entries[name];
    if (by_role.empty()) names.push_back(name);
    by_role.resize(RoleCount(plan));
    by_role[plan.programs()->Get(plan.entries()->Get(i)->program())->role()] = i;
  }
  PlanDigests shared(plan);
  PlanMeaning meaning;
  for (const absl::string_view name : names) {
    EntryValues values(shared, entries[name]);
    BOWLINE_RETURN_IF_ERROR(Annotate(values.Run(), absl::StrCat("entry '", name, "'")));
    meaning.entries.push_back(values.Finish(name));
    if (shared.meter.exhausted()) {
      return absl::ResourceExhaustedError(absl::StrCat("the values of the plan take more than ", kMostMeaningSteps,
                                                       " steps to evaluate, or are in too many pieces"));
    }
  }
  return meaning;
}

}  // namespace bowline
