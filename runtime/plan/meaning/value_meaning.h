#ifndef BOWLINE_RUNTIME_PLAN_MEANING_VALUE_MEANING_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_VALUE_MEANING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/meaning/digest.h"

namespace bowline {

// The most steps of ComputeMeaning (plan_meaning.h).
inline constexpr uint64_t kMostMeaningSteps = uint64_t{1} << 26;

struct ValueMeaning {
  std::string what;  // "output 'loss'", "state 'model.norm.weight'"
  Digest digest;
};

// The digests of an entry's effects on the ranks of one role, in this order. First the interface, on which callers and
// proofs rely (target, attachments, seed, mesh, ports, states, in-place pairs of kernels). Then each output, sorted by
// name. Then each state that the entry changes, sorted by flags and key. Last each other buffer that the entry changes
// although it must not change.
struct RoleMeaning {
  std::vector<ValueMeaning> values;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_VALUE_MEANING_H_
