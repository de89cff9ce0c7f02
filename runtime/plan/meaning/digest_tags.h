#ifndef BOWLINE_RUNTIME_PLAN_MEANING_DIGEST_TAGS_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_DIGEST_TAGS_H_

// The kinds of sequences that have a digest (DigestBuilder). Certificates contain digests computed with these numbers,
// so a new tag gets the next number. Private to runtime/plan.

#include <cstdint>

namespace bowline {

enum DigestTag : uint64_t {
  kPiecesTag = 1,
  kImageTag = 2,
  kKernelTag = 3,
  kConstantTag = 4,
  kCoordinateTag = 5,
  kInputTag = 6,
  kForeignInputTag = 7,
  kStateTag = 8,
  kUnnamedStateTag = 9,
  kLaunchTag = 10,
  kResultTag = 11,
  kCollectiveTag = 12,
  kReducedTag = 13,
  kExchangedTag = 14,
  kInterfaceTag = 15,
  kOutputTag = 16,
  kFinalTag = 17,
  kPromiseTag = 18,
  kContractTag = 19,
  kPartTag = 20,
  kPartWrittenTag = 21,
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_DIGEST_TAGS_H_
