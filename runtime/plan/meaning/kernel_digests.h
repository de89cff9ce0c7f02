#ifndef BOWLINE_RUNTIME_PLAN_MEANING_KERNEL_DIGESTS_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_KERNEL_DIGESTS_H_

// Digests of the results of a verified plan's kernels, as far as the plan determines them. Private to runtime/plan.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "runtime/plan/meaning/digest.h"
#include "runtime/plan/meaning/value_map.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// Add the attributes of a kernel, in the order of their names, and how it is launched.
void AddAttributes(const fbs::Kernel& kernel, DigestBuilder& builder);
void AddGeometry(const fbs::Kernel& kernel, DigestBuilder& builder);

class KernelDigests {
 public:
  // Hashing code is work that `meter` counts.
  KernelDigests(const fbs::Plan& plan, WorkMeter& meter);

  // The digest of a kernel: of its origin, name, attributes, arguments, epilogue, the bytes of its code and the size of
  // its workspace (HasScratchOperand). Its place in the plan, its cost and its in-place pairs do not matter.
  const Digest& Of(const fbs::Launch& launch);

  // Returns whether the kernel promises that it may be given the same bytes for these two arguments.
  bool MayShare(uint32_t kernel, uint32_t output, uint32_t input);
  // The digest of all such promises of the kernel of a launch; absent if there are none.
  const absl::optional<Digest>& Promises(const fbs::Launch& launch);

 private:
  using Pair = std::pair<uint32_t, uint32_t>;  // output, input
  struct Known {
    absl::optional<Digest> digest;
    absl::optional<std::vector<Pair>> in_place;  // sorted
    bool has_promises = false;                   // whether `promises` was computed
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

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_KERNEL_DIGESTS_H_
