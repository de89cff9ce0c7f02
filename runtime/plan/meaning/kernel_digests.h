#ifndef BOWLINE_RUNTIME_PLAN_MEANING_KERNEL_DIGESTS_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_KERNEL_DIGESTS_H_

// Digests of a verified plan's kernels, which stand for the functions that these compute. Private to runtime/plan.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "runtime/plan/meaning/digest.h"
#include "runtime/plan/meaning/value_map.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// Add to `builder` a kernel's attributes, in the order of their names, and the division of its launches.
void AddAttributes(const fbs::Kernel& kernel, DigestBuilder& builder);
void AddGeometry(const fbs::Kernel& kernel, DigestBuilder& builder);

class KernelDigests {
 public:
  // `meter` counts the work of hashing code.
  KernelDigests(const fbs::Plan& plan, WorkMeter& meter);

  // The digest of the launched kernel: its origin, name, attributes, arguments, epilogue, code and workspace size
  // (HasScratchOperand). Its index in the plan, its cost and its in-place pairs do not matter.
  const Digest& Of(const fbs::Launch& launch);

  // Returns whether the kernel promises that the two arguments may be the same bytes.
  bool MayShare(uint32_t kernel, uint32_t output, uint32_t input);
  // The digest of all such promises of the launched kernel; absent if it makes none.
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
