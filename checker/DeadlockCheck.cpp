//===- DeadlockCheck.cpp - an order that suits all ranks ------------------===//

#include "checker/DeadlockCheck.h"

#include "checker/Counterexample.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <deque>

namespace bowline {

DeadlockCheck::Successors DeadlockCheck::successorsOn(Machine machine) const {
  Successors result(communications_.roles());
  for (uint32_t role = 0; role < result.size(); ++role) {
    const auto count = static_cast<uint32_t>(communications_.of(role).size());
    result[role].resize(count);
    if (machine == Machine::IssueOrder) {
      for (uint32_t i = 1; i < count; ++i)
        result[role][i - 1].push_back(i);
      continue;
    }
    const auto before = communications_.predecessors(role, machine == Machine::AnyMachine ? IssueMode::Asynchronous
                                                                                          : IssueMode::InlineCompute);
    for (uint32_t i = 0; i < count; ++i)
      for (const uint32_t earlier : before[i])
        result[role][earlier].push_back(i);
  }
  return result;
}

std::vector<std::optional<uint32_t>> DeadlockCheck::sort(const Successors &successors) const {
  std::vector<std::optional<uint32_t>> numbers(communications_.operations());
  std::vector<uint32_t> waitsFor(communications_.operations()); // index: operation; how many edges lead to it
  for (uint32_t role = 0; role < successors.size(); ++role)
    for (const std::vector<uint32_t> &later : successors[role])
      for (const uint32_t i : later)
        ++waitsFor[communications_.of(role)[i].operation];
  std::deque<uint32_t> ready;
  for (uint32_t operation = 0; operation < waitsFor.size(); ++operation)
    if (waitsFor[operation] == 0)
      ready.push_back(operation);
  for (uint32_t next = 0; !ready.empty(); ++next) {
    const uint32_t operation = ready.front();
    ready.pop_front();
    numbers[operation] = next;
    for (const Participation &member : communications_.membersOf(operation))
      for (const uint32_t i : successors[member.role][member.index]) {
        const uint32_t later = communications_.of(member.role)[i].operation;
        if (--waitsFor[later] == 0)
          ready.push_back(later);
      }
  }
  return numbers;
}

// The search is breadth first by steps: going on within a role is free, passing to another member of an operation
// begins a step.
std::vector<WaitCycle::Step> DeadlockCheck::findCycleThrough(uint32_t operation, const Successors &successors,
                                                             const std::vector<std::optional<uint32_t>> &numbers,
                                                             size_t mostSteps, uint64_t *work) const {
  struct Visit {
    Participation member;
    int64_t from; // index of the visit before; -1 for the first
    bool begins;  // whether the visit begins a step
  };
  std::vector<std::vector<bool>> seen(communications_.roles());
  for (uint32_t role = 0; role < seen.size(); ++role)
    seen[role].resize(communications_.of(role).size());
  std::vector<Visit> visits;
  const auto path = [&](int64_t last, Participation end) {
    std::vector<WaitCycle::Step> steps;
    Participation after = end;
    for (int64_t at = last; at >= 0; at = visits[at].from) {
      if (!visits[at].begins)
        continue;
      steps.push_back({visits[at].member, after});
      if (visits[at].from >= 0)
        after = visits[visits[at].from].member;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  };
  std::vector<size_t> layer, next; // indices of visits that begin a step
  for (const Participation &member : communications_.membersOf(operation)) {
    seen[member.role][member.index] = true;
    layer.push_back(visits.size());
    visits.push_back({member, -1, true});
  }
  for (size_t step = 1; step <= mostSteps && !layer.empty(); ++step) {
    next.clear();
    for (size_t i = 0; i < layer.size(); ++i) {
      const size_t at = layer[i];
      const Participation member = visits[at].member;
      for (const uint32_t index : successors[member.role][member.index]) {
        ++*work;
        const Participation later{member.role, index};
        const uint32_t reached = communications_.at(later).operation;
        if (reached == operation)
          return path(static_cast<int64_t>(at), later);
        if (seen[later.role][index] || numbers[reached])
          continue;
        seen[later.role][index] = true;
        const size_t visit = visits.size();
        visits.push_back({later, static_cast<int64_t>(at), false});
        layer.push_back(visit);
        for (const Participation &other : communications_.membersOf(reached)) {
          if (other.role == later.role || seen[other.role][other.index])
            continue;
          next.push_back(visits.size());
          visits.push_back({other, static_cast<int64_t>(visit), true});
        }
      }
    }
    // Skip members that this step has since reached within their role: the next step need not reach them again.
    layer.clear();
    for (const size_t at : next) {
      const Participation member = visits[at].member;
      if (seen[member.role][member.index])
        continue;
      seen[member.role][member.index] = true;
      layer.push_back(at);
    }
  }
  return {};
}

std::vector<WaitCycle::Step> DeadlockCheck::findCycle(const Successors &successors,
                                                      const std::vector<std::optional<uint32_t>> &numbers) const {
  // A search costs what it visits. Real circles are short and found at once; the bound is for plans made to be slow.
  constexpr uint64_t kMostWork = uint64_t{1} << 26;
  uint64_t work = 0;
  std::vector<WaitCycle::Step> best;
  for (uint32_t operation = 0; operation < numbers.size(); ++operation) {
    if (numbers[operation])
      continue;
    const size_t most = best.empty() ? communications_.operations() : best.size() - 1;
    std::vector<WaitCycle::Step> steps = findCycleThrough(operation, successors, numbers, most, &work);
    if (!steps.empty())
      best = std::move(steps);
    if (best.size() == 2 || (!best.empty() && work > kMostWork))
      break;
  }
  return best;
}

std::string DeadlockCheck::describe(const WaitCycle &cycle) const {
  std::string text = absl::StrCat(cycle.steps.size(), " ranks wait for each other");
  switch (cycle.machine) {
  case Machine::AnyMachine:
    text += ", on every machine:";
    break;
  case Machine::InlineCompute:
    text += " where a command is issued only when the first stream is done with all earlier ones, as on CPUs:";
    break;
  case Machine::IssueOrder:
    text +=
        " where a device starts communications in the order in which they are issued, as NCCL may; ranks issue them "
        "in conflicting orders:";
    break;
  }
  for (size_t i = 0; i < cycle.steps.size(); ++i) {
    // In the role of this step, `after` waits for `before`. `before` itself waits for the role of the previous step,
    // whose `after` belongs to the same operation.
    const WaitCycle::Step &step = cycle.steps[i];
    const WaitCycle::Step &previous = cycle.steps[(i + cycle.steps.size() - 1) % cycle.steps.size()];
    absl::StrAppend(
        &text, "\n  ", communications_.rankOf(step.before.role), " is in ", communications_.describe(step.before),
        ",\n    and waits for ", communications_.rankOf(previous.after.role), ", which comes to ",
        communications_.describe(previous.after), ",\n    only after ", communications_.describe(previous.before));
  }
  return text;
}

absl::Status DeadlockCheck::check() {
  const auto inOrderOfIssue = sort(successorsOn(Machine::IssueOrder));
  const auto isSorted = [](const auto &numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](const auto &number) { return number.has_value(); });
  };
  if (isSorted(inOrderOfIssue)) {
    for (const std::optional<uint32_t> &number : inOrderOfIssue)
      numbers_.push_back(*number);
    return absl::OkStatus();
  }
  for (const Machine machine : {Machine::AnyMachine, Machine::InlineCompute, Machine::IssueOrder}) {
    const Successors successors = successorsOn(machine);
    const auto numbers = sort(successors);
    if (isSorted(numbers))
      continue;
    cycle_ = {machine, findCycle(successors, numbers)};
    break;
  }
  return counterexample("no deadlock", describe(cycle_));
}

} // namespace bowline
