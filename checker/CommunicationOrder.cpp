//===- CommunicationOrder.cpp - communications follow one another ---------===//

#include "checker/CommunicationOrder.h"

#include "checker/Counterexample.h"
#include "checker/StreamOrder.h"
#include "runtime/plan/view/matching.h"
#include "targets/target.h"

#include "absl/strings/str_cat.h"

namespace bowline {

bool needsCommunicationOrder(const fbs::Plan &plan) {
  const auto target = targets::FindTarget(plan.target()->device()->string_view());
  return target.ok() && (*target)->orders_communications;
}

absl::Status CommunicationOrder::check() {
  const fbs::Program &program = timeline_.programOf(entry_);
  StreamOrder order(program, IssueMode::Asynchronous);
  StreamOrder::Stamp last;
  CommandSite lastSite;
  absl::Status status;
  const auto streamOf = [&](CommandSite site) {
    return Quoted(program.streams()->Get(timeline_.commandAt(site).stream()));
  };
  timeline_.forEachCommand(entry_, [&](CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess>) {
    const uint32_t slot = program.timeline()->Get(site.call)->slot();
    if (const fbs::Signal *signal = command.body_as_Signal()) {
      order.signal(command.stream(), EventOf(*signal, slot));
      return true;
    }
    if (const fbs::Wait *wait = command.body_as_Wait()) {
      order.wait(command.stream(), EventOf(*wait, slot));
      return true;
    }
    const bool communicates = CommunicatorOf(command).has_value();
    if (communicates && last.place > 0) {
      ++facts_;
      if (!order.precedes(last, command.stream())) {
        status = counterexample(
            "serial order",
            absl::StrCat(
                timeline_.describe(lastSite), ", on stream ", streamOf(lastSite), "; and ", timeline_.describe(site),
                ", on stream ", streamOf(site),
                "; nothing orders the two, and a device that replays recorded commands may begin either first, "
                "another rank's the other: signal an event after the first and wait for it before the second"));
        return false;
      }
    }
    const StreamOrder::Stamp stamp = order.issue(command.stream());
    if (communicates) {
      last = stamp;
      lastSite = site;
    }
    return true;
  });
  return status;
}

} // namespace bowline
