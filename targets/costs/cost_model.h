#ifndef BOWLINE_TARGETS_COSTS_COST_MODEL_H_
#define BOWLINE_TARGETS_COSTS_COST_MODEL_H_

#include <algorithm>
#include <chrono>

#include "kernels/registry/collectives.h"
#include "targets/costs/link.h"

namespace bowline::targets {

// The speed of a target, as its description states it.
struct Costs {
  double flops = 80e9;            // per second of a thread, or of the device where a plan has no threads of the host
  double bytes = 5e9;             // per second that the same moves from and to memory
  double command_seconds = 1e-6;  // that any command takes at least
  LinkOptions link = {.bandwidth = 1e9, .latency = std::chrono::microseconds(20)};  // where nothing else is known
};

// Predicts the seconds that commands take. It is the one model by which orders of commands, chunks of collectives and
// stages are chosen and timelines predicted. Results never depend on it.
class CostModel {
 public:
  explicit CostModel(const Costs& costs, double threads = 1, LinkTable links = {})
      : costs_(costs), threads_(threads), links_(std::move(links)) {}

  const Costs& costs() const { return costs_; }

  // The seconds of a launch: those of the arithmetic or of the traffic that a kernel states, whichever are more, and
  // those that any command takes.
  double LaunchSeconds(double flops, double bytes) const {
    return costs_.command_seconds + std::max(flops / costs_.flops, bytes / costs_.bytes) / threads_;
  }
  double CopySeconds(double size) const { return costs_.command_seconds + 2 * size / costs_.bytes; }
  // The number of floating-point operations that take as long as one byte of traffic.
  double FlopsPerByte() const { return costs_.flops / costs_.bytes; }

  // The link of a communicator along `axes`, which are names: the slowest of theirs.
  template <typename Axes>
  LinkOptions LinkAlong(const Axes& axes) const {
    LinkOptions slowest;
    bool any = false;
    for (const auto& axis : axes) {
      auto found = links_.find(absl::string_view(axis.data(), axis.size()));
      if (found == links_.end()) found = links_.find("");
      const LinkOptions& own = found == links_.end() ? costs_.link : found->second;
      slowest = any ? LinkOptions(SlowestOf(slowest, own)) : own;
      any = true;
    }
    return any ? slowest : costs_.link;
  }
  // The seconds of a collective on a ring of `ranks` members over the link `along`. `whole` is the number of bytes of
  // the tensors before they are scattered or after they are gathered.
  double CollectiveSeconds(const LinkOptions& along, const collectives::Definition& collective, double whole,
                           double ranks) const {
    return costs_.command_seconds + collective.Steps(ranks) * along.Seconds(collective.BytesOfStep(whole, ranks));
  }
  double TransferSeconds(const LinkOptions& along, double size) const {
    return costs_.command_seconds + along.Seconds(size);
  }

 private:
  Costs costs_;
  double threads_;
  LinkTable links_;
};

}  // namespace bowline::targets

#endif  // BOWLINE_TARGETS_COSTS_COST_MODEL_H_
