#ifndef BOWLINE_KERNELS_REGISTRY_MACHINE_MODEL_H_
#define BOWLINE_KERNELS_REGISTRY_MACHINE_MODEL_H_

#include <algorithm>

namespace bowline::kernels {

// What a machine does in a second. Orders of commands and predicted timelines come from it; results never depend on it.
struct MachineModel {
  double flops = 80e9;            // of a thread
  double bytes = 5e9;             // that a thread moves from and to memory
  double command_seconds = 1e-6;  // that any command takes at least
  double link_bytes = 1e9;        // per second, in each direction
  double link_seconds = 20e-6;    // latency

  double LaunchSeconds(double work, double traffic, double threads) const {
    return command_seconds + std::max(work / flops, traffic / bytes) / threads;
  }
  double CopySeconds(double size) const { return command_seconds + 2 * size / bytes; }
  // On a ring of the group; `whole`: bytes of the tensors before they are scattered, after they are gathered; `rounds`:
  // 2 for an all-reduce, else 1. The formulas are those of runtime/comm/link.h.
  double CollectiveSeconds(double whole, double ranks, int rounds) const {
    return command_seconds + rounds * (ranks - 1) * (link_seconds + whole / ranks / link_bytes);
  }
  double TransferSeconds(double size) const { return command_seconds + link_seconds + size / link_bytes; }
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_MACHINE_MODEL_H_
