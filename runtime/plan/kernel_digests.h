#ifndef BOWLINE_RUNTIME_PLAN_KERNEL_DIGESTS_H_
#define BOWLINE_RUNTIME_PLAN_KERNEL_DIGESTS_H_

// What the kernels of a verified plan compute, as far as a plan says. Private to runtime/plan.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "runtime/plan/digest.h"
#include "runtime/plan/plan_generated.h"
#include "runtime/plan/value_map.h"

namespace bowline {

class KernelDigests {
 public:
  // Code that is hashed is work.
  KernelDigests(const fbs::Plan& plan, WorkMeter& meter);

  // Origin, name, attributes, arguments, epilogue, and the bytes of the code. Not its place in the plan, its cost, its
  // in-place pairs, nor a workspace (HasScratchOperand), whose size is the library's affair.
  const Digest& Of(const fbs::Launch& launch);

  // Whether the kernel promises that it may be given the same bytes for these two arguments.
  bool MayShare(uint32_t kernel, uint32_t output, uint32_t input);
  // All such promises of a kernel that is launched like this; absent where there are none.
  const absl::optional<Digest>& Promises(const fbs::Launch& launch);

 private:
  using Pair = std::pair<uint32_t, uint32_t>;  // output, input
  struct Known {
    absl::optional<Digest> digest;
    absl::optional<std::vector<Pair>> in_place;  // sorted
    bool has_promises = false;                   // were computed
    absl::optional<Digest> promises;
  };
  const std::vector<Pair>& InPlace(uint32_t kernel);
  const Digest& ImageDigest(uint32_t image);

  const fbs::Plan& plan_;
  WorkMeter& meter_;
  std::vector<Known> kernels_;
  std::vector<absl::optional<Digest>> images_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_KERNEL_DIGESTS_H_
