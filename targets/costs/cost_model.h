#ifndef BOWLINE_TARGETS_COSTS_COST_MODEL_H_
#define BOWLINE_TARGETS_COSTS_COST_MODEL_H_

#include <algorithm>
#include <chrono>

#include "kernels/registry/collectives.h"
#include "targets/costs/link.h"

namespace bowline::targets {

// The speed of a device, as the description of its target states it.
struct Costs {
  double flops = 80e9;            // operations/s of one host thread, or of the device if plans have no host threads
  double bytes = 5e9;             // memory traffic in bytes per second, of the same unit
  double command_seconds = 1e-6;  // the least time of any command
  LinkOptions link = {.bandwidth = 1e9, .latency = std::chrono::microseconds(20)};  // of axes without a given link
};

// Predicts the seconds that commands take. The compiler uses this one model to order commands, to divide collectives
// into chunks and layers into stages, and to predict timelines. It never affects computed values.
class CostModel {
 public:
  explicit CostModel(const Costs& costs, double threads = 1, LinkTable links = {})
      : costs_(costs), threads_(threads), links_(std::move(links)) {}

  const Costs& costs() const { return costs_; }

  // Returns the seconds of a launch: the longer of its arithmetic and its memory traffic, which all threads share, and
  // the fixed time of a command on top. The kernel states `flops` and `bytes`.
  double LaunchSeconds(double flops, double bytes) const {
    return costs_.command_seconds + std::max(flops / costs_.flops, bytes / costs_.bytes) / threads_;
  }
  double CopySeconds(double size) const { return costs_.command_seconds + 2 * size / costs_.bytes; }
  // Returns how many floating-point operations take as long as one byte of memory traffic.
  double FlopsPerByte() const { return costs_.flops / costs_.bytes; }

  // Returns the link of a communicator along `axes`, a range of names: the slowest of the links of these axes.
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
  // Returns the seconds of a collective on a ring of `ranks` members over the link `along`. `whole` is the size in
  // bytes of its tensors before a scatter or after a gather.
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
