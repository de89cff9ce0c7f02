#ifndef BOWLINE_KERNELS_REGISTRY_MACHINE_MODEL_H_
#define BOWLINE_KERNELS_REGISTRY_MACHINE_MODEL_H_

#include <algorithm>

#include "kernels/registry/collectives.h"
#include "kernels/registry/link.h"

namespace bowline::kernels {

// What a machine does in a second. Orders of commands and predicted timelines come from it; results never depend on it.
struct MachineModel {
  double flops = 80e9;            // of a thread
  double bytes = 5e9;             // that a thread moves from and to memory
  double command_seconds = 1e-6;  // that any command takes at least
  // What is not in `links`.
  LinkOptions link = {.bandwidth = 1e9, .latency = std::chrono::microseconds(20)};
  LinkTable links = {};

  double LaunchSeconds(double work, double traffic, double threads) const {
    return command_seconds + std::max(work / flops, traffic / bytes) / threads;
  }
  double CopySeconds(double size) const { return command_seconds + 2 * size / bytes; }
  // Of a communicator along `axes`, which are names: the slowest of theirs.
  template <typename Axes>
  LinkOptions LinkAlong(const Axes& axes) const {
    LinkOptions slowest;
    bool any = false;
    for (const auto& axis : axes) {
      auto found = links.find(absl::string_view(axis.data(), axis.size()));
      if (found == links.end()) found = links.find("");
      const LinkOptions& own = found == links.end() ? link : found->second;
      slowest = any ? LinkOptions(SlowestOf(slowest, own)) : own;
      any = true;
    }
    return any ? slowest : link;
  }
  // On a ring of the group over `along`; `whole`: bytes of the tensors before they are scattered, after they are
  // gathered.
  double CollectiveSeconds(const LinkOptions& along, const collectives::Definition& collective, double whole,
                           double ranks) const {
    return command_seconds + collective.Steps(ranks) * along.Seconds(collective.BytesOfStep(whole, ranks));
  }
  double TransferSeconds(const LinkOptions& along, double size) const { return command_seconds + along.Seconds(size); }
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_MACHINE_MODEL_H_
