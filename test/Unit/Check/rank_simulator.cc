#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "runtime/plan/view/buffer_view.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"
#include "test/Unit/Check/rank_runs.h"

namespace bowline::testing {
namespace {

using fbs::CollectiveKind;

class Simulator {
 public:
  Simulator(const fbs::Plan& plan, Issue issue, uint8_t poison) : plan_(plan), issue_(issue), ranks_(RankCount(plan)) {
    for (uint32_t r = 0; r < ranks_.size(); ++r) Expand(r, poison);
    FindMembers();
  }

  RankOutcome Run(std::mt19937& random) {
    RankOutcome outcome;
    while (true) {
      std::vector<Place> ready;
      for (uint32_t r = 0; r < ranks_.size(); ++r) {
        for (const std::vector<uint32_t>& stream : ranks_[r].streams) {
          const uint32_t next = ranks_[r].next[static_cast<size_t>(&stream - ranks_[r].streams.data())];
          if (next < stream.size() && IsReady({r, stream[next]})) ready.push_back({r, stream[next]});
        }
      }
      if (ready.empty()) break;
      if (!Execute(ready[random() % ready.size()])) {
        outcome.mismatch = true;
        break;
      }
    }
    for (Rank& rank : ranks_) {
      for (const Step& step : rank.steps) outcome.hangs |= !step.done;
    }
    for (uint32_t r = 0; r < ranks_.size(); ++r) outcome.outputs.push_back(Outputs(r));
    return outcome;
  }

 private:
  struct Place {
    uint32_t rank, step;
  };
  struct Step {
    const fbs::Command* command;
    uint32_t slot;
    bool done = false;
    int64_t signal = -1;         // of a wait: the step that it is for
    std::vector<Place> members;  // of a communication, this one among them; empty if not all are there
  };
  struct Rank {
    std::vector<Step> steps;                     // in the order of issue
    std::vector<std::vector<uint32_t>> streams;  // steps
    std::vector<uint32_t> next;                  // by stream
    std::vector<uint8_t> arena;
  };

  const fbs::Entry& EntryOf(uint32_t rank) const {
    for (const fbs::Entry* entry : *plan_.entries()) {
      if (TextOf(entry->name()) == "step" && plan_.programs()->Get(entry->program())->role() == RoleOf(plan_, rank)) {
        return *entry;
      }
    }
    std::abort();
  }

  void Expand(uint32_t r, uint8_t poison) {
    Rank& rank = ranks_[r];
    rank.arena = InitialArena(plan_, r, poison);
    const fbs::Program& program = *plan_.programs()->Get(EntryOf(r).program());
    rank.streams.resize(SizeOf(program.streams()));
    rank.next.resize(rank.streams.size());
    std::map<uint32_t, int64_t> signals;
    for (uint32_t c = 0; c < SizeOf(program.timeline()); ++c) {
      const fbs::SegmentCall& call = *program.timeline()->Get(c);
      const auto* commands = program.segments()->Get(call.segment())->commands();
      for (uint32_t i = 0; i < SizeOf(commands); ++i) {
        Step step{commands->Get(i), call.slot(), false, -1, {}};
        const auto index = static_cast<uint32_t>(rank.steps.size());
        if (const auto* signal = step.command->body_as_Signal()) {
          signals[signal->event() + call.slot() % signal->slots()] = index;
        } else if (const auto* wait = step.command->body_as_Wait()) {
          const auto found = signals.find(wait->event() + call.slot() % wait->slots());
          if (found != signals.end()) step.signal = found->second;
        }
        rank.streams[step.command->stream()].push_back(index);
        rank.steps.push_back(std::move(step));
      }
    }
  }

  void FindMembers() {
    // Communicator, first rank of the group, sender and receiver (-1 for collectives), number.
    std::map<std::tuple<uint32_t, int, int64_t, int64_t, uint32_t>, std::vector<Place>> operations;
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      std::map<std::tuple<uint32_t, int64_t, int64_t>, uint32_t> counts;
      for (uint32_t i = 0; i < ranks_[r].steps.size(); ++i) {
        const fbs::Command& command = *ranks_[r].steps[i].command;
        const auto communicator = CommunicatorOf(command);
        if (!communicator.has_value()) continue;
        const auto* axes = plan_.communicators()->Get(*communicator)->axes();
        const int64_t self = PlaceAlong(plan_, axes, r);
        int64_t sender = -1, receiver = -1;
        if (const auto* send = command.body_as_Send()) std::tie(sender, receiver) = std::make_tuple(self, send->peer());
        if (const auto* receive = command.body_as_Receive()) {
          std::tie(sender, receiver) = std::make_tuple(receive->peer(), self);
        }
        const uint32_t number = counts[{*communicator, sender, receiver}]++;
        operations[{*communicator, MembersAlong(plan_, axes, r).front(), sender, receiver, number}].push_back({r, i});
      }
    }
    for (const auto& [key, members] : operations) {
      const auto* axes = plan_.communicators()->Get(std::get<0>(key))->axes();
      const size_t expected = std::get<2>(key) >= 0 ? 2 : SizeAlong(plan_, axes);
      for (const Place& member : members) {
        if (members.size() == expected) ranks_[member.rank].steps[member.step].members = members;
      }
    }
  }

  // As far as its own rank goes.
  bool MayBegin(Place place) const {
    const Rank& rank = ranks_[place.rank];
    const Step& step = rank.steps[place.step];
    const uint16_t stream = step.command->stream();
    if (rank.next[stream] >= rank.streams[stream].size() || rank.streams[stream][rank.next[stream]] != place.step) {
      return false;
    }
    if (issue_ == Issue::kInlineFirstStream && rank.next[0] < rank.streams[0].size() &&
        rank.streams[0][rank.next[0]] < place.step) {
      return false;
    }
    const bool communicates = CommunicatorOf(*step.command).has_value();
    if (issue_ == Issue::kCommunicationInOrder && communicates) {
      for (uint32_t i = 0; i < place.step; ++i) {
        if (CommunicatorOf(*rank.steps[i].command).has_value() && !rank.steps[i].done) return false;
      }
    }
    return step.command->body_type() != fbs::CommandBody::Wait ||
           (step.signal >= 0 && rank.steps[static_cast<size_t>(step.signal)].done);
  }

  bool IsReady(Place place) const {
    if (!MayBegin(place)) return false;
    const Step& step = ranks_[place.rank].steps[place.step];
    if (!CommunicatorOf(*step.command).has_value()) return true;
    return !step.members.empty() &&
           std::all_of(step.members.begin(), step.members.end(), [&](Place member) { return MayBegin(member); });
  }

  float* At(Place place, const fbs::Operand& operand) {
    const fbs::Buffer& buffer = *plan_.buffers()->Get(operand.buffer());
    const uint32_t slot = ranks_[place.rank].steps[place.step].slot;
    return reinterpret_cast<float*>(ranks_[place.rank].arena.data() + RangeOf(buffer, SlotOf(buffer, slot)).begin +
                                    ShiftOf(plan_, buffer, place.rank) + operand.offset());
  }

  const fbs::Command& CommandAt(Place place) const { return *ranks_[place.rank].steps[place.step].command; }

  // False for members that do not belong together.
  bool Execute(Place place) {
    const fbs::Command& command = CommandAt(place);
    std::vector<Place> finished = {place};
    if (const fbs::Launch* launch = command.body_as_Launch()) {
      const auto* operands = launch->operands();
      const int64_t count = plan_.kernels()->Get(launch->kernel())->arguments()->Get(2)->shape()->Get(0);
      float* out = At(place, *operands->Get(2));
      const float *a = At(place, *operands->Get(0)), *b = At(place, *operands->Get(1));
      for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
    } else if (const fbs::Copy* copy = command.body_as_Copy()) {
      std::memmove(At(place, *copy->destination()), At(place, *copy->source()), copy->bytes());
    } else if (CommunicatorOf(command).has_value()) {
      finished = ranks_[place.rank].steps[place.step].members;
      if (command.body_as_Collective() != nullptr ? !Collective(finished) : !Transfer(finished)) return false;
    }
    for (const Place& done : finished) {
      Rank& rank = ranks_[done.rank];
      rank.steps[done.step].done = true;
      ++rank.next[rank.steps[done.step].command->stream()];
    }
    return true;
  }

  bool Transfer(const std::vector<Place>& members) {
    const bool first_sends = CommandAt(members[0]).body_as_Send() != nullptr;
    const Place from = members[first_sends ? 0 : 1], to = members[first_sends ? 1 : 0];
    const fbs::Send* send = CommandAt(from).body_as_Send();
    const fbs::Receive* receive = CommandAt(to).body_as_Receive();
    if (send == nullptr || receive == nullptr || send->dtype() != receive->dtype() ||
        SizeOf(send->ranges()) != SizeOf(receive->ranges())) {
      return false;
    }
    for (uint32_t i = 0; i < send->ranges()->size(); ++i) {
      const uint64_t count = send->ranges()->Get(i)->count();
      if (count != receive->ranges()->Get(i)->count()) return false;
      std::memcpy(At(to, receive->ranges()->Get(i)->operand()), At(from, send->ranges()->Get(i)->operand()), count * 4);
    }
    return true;
  }

  bool Collective(const std::vector<Place>& members) {
    const fbs::Collective& first = *CommandAt(members[0]).body_as_Collective();
    const size_t n = members.size();
    for (const Place& member : members) {
      const fbs::Collective& other = *CommandAt(member).body_as_Collective();
      if (other.kind() != first.kind() || other.dtype() != first.dtype() ||
          SizeOf(other.pieces()) != SizeOf(first.pieces())) {
        return false;
      }
      const bool reduces = first.kind() == CollectiveKind::AllReduce || first.kind() == CollectiveKind::ReduceScatter;
      if (reduces && other.reduction() != first.reduction()) return false;
      if (first.kind() == CollectiveKind::Permute && other.shift() != first.shift()) return false;
      for (uint32_t i = 0; i < SizeOf(first.pieces()); ++i) {
        if (other.pieces()->Get(i)->count() != first.pieces()->Get(i)->count()) return false;
      }
    }
    for (uint32_t p = 0; p < SizeOf(first.pieces()); ++p) {
      const uint64_t count = first.pieces()->Get(p)->count();
      const bool scatters = first.kind() == CollectiveKind::ReduceScatter || first.kind() == CollectiveKind::AllToAll;
      std::vector<std::vector<float>> sources;
      for (const Place& member : members) {
        const float* source = At(member, CommandAt(member).body_as_Collective()->pieces()->Get(p)->source());
        sources.emplace_back(source, source + (scatters ? count * n : count));
      }
      const auto combine = [&](uint64_t i) {
        float value = sources[0][i];
        for (size_t m = 1; m < n; ++m) {
          value = first.reduction() == fbs::Reduction::Sum ? value + sources[m][i] : std::max(value, sources[m][i]);
        }
        return value;
      };
      for (size_t m = 0; m < n; ++m) {
        float* out = At(members[m], CommandAt(members[m]).body_as_Collective()->pieces()->Get(p)->destination());
        for (uint64_t i = 0; i < count; ++i) {
          if (first.kind() == CollectiveKind::AllReduce) out[i] = combine(i);
          if (first.kind() == CollectiveKind::ReduceScatter) out[i] = combine(m * count + i);
          if (first.kind() == CollectiveKind::Permute) out[i] = sources[(m + n - first.shift()) % n][i];
          for (size_t o = 0; o < n; ++o) {
            if (first.kind() == CollectiveKind::AllGather) out[o * count + i] = sources[o][i];
            if (first.kind() == CollectiveKind::AllToAll) out[o * count + i] = sources[o][m * count + i];
          }
        }
      }
    }
    return true;
  }

  std::vector<uint8_t> Outputs(uint32_t rank) const {
    std::vector<uint8_t> bytes;
    const fbs::Entry& entry = EntryOf(rank);
    for (uint32_t i = 0; i < SizeOf(entry.outputs()); ++i) {
      const fbs::Buffer& buffer = *plan_.buffers()->Get(entry.outputs()->Get(i)->buffer());
      for (uint32_t slot = 0; slot < buffer.slots(); ++slot) {
        const ByteRange range = RangeOf(buffer, slot);
        bytes.insert(bytes.end(), ranks_[rank].arena.begin() + static_cast<int64_t>(range.begin),
                     ranks_[rank].arena.begin() + static_cast<int64_t>(range.end));
      }
    }
    return bytes;
  }

  const fbs::Plan& plan_;
  const Issue issue_;
  std::vector<Rank> ranks_;
};

}  // namespace

std::vector<uint8_t> InitialArena(const fbs::Plan& plan, uint32_t rank, uint8_t poison) {
  const uint32_t role = RoleOf(plan, rank);
  std::vector<uint8_t> arena(ArenaBytes(plan, role), poison);
  for (uint32_t b = 0; b < plan.buffers()->size(); ++b) {
    const fbs::Buffer& buffer = *plan.buffers()->Get(b);
    if (buffer.role() != role || buffer.kind() != fbs::BufferKind::Input) continue;
    for (uint32_t slot = 0; slot < buffer.slots(); ++slot) {
      for (uint64_t i = 0; i < buffer.bytes() / 4; ++i) {
        // Sums of a few of these are exact in f32.
        const float value = static_cast<float>((rank * 7919 + b * 977 + slot * 131 + i * 17) % 1021);
        std::memcpy(arena.data() + RangeOf(buffer, slot).begin + i * 4, &value, 4);
      }
    }
  }
  return arena;
}

RankOutcome Simulate(const fbs::Plan& plan, Issue issue, uint8_t poison, std::mt19937& random) {
  return Simulator(plan, issue, poison).Run(random);
}

}  // namespace bowline::testing
