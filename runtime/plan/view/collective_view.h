#ifndef BOWLINE_RUNTIME_PLAN_VIEW_COLLECTIVE_VIEW_H_
#define BOWLINE_RUNTIME_PLAN_VIEW_COLLECTIVE_VIEW_H_

// Maps the collectives of a plan to kernels/registry/collectives.h. Safe on plans whose kinds were verified.

#include <cstdint>

#include "kernels/registry/collectives.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

static_assert(static_cast<size_t>(fbs::CollectiveKind::MAX) + 1 == collectives::kCount, "a kind has no definition");

inline collectives::Kind KindOf(fbs::CollectiveKind kind) { return static_cast<collectives::Kind>(kind); }
inline const collectives::Definition& DefinitionOf(fbs::CollectiveKind kind) { return collectives::Of(KindOf(kind)); }

// The parameter of a collective, read from the field that its kind uses; 0 for a kind without a parameter.
inline uint32_t ParameterOf(const fbs::Collective& collective) {
  if (DefinitionOf(collective.kind()).parameter == collectives::Parameter::kShift) return collective.shift();
  return DefinitionOf(collective.kind()).reduces() ? static_cast<uint32_t>(collective.reduction()) : 0;
}
inline uint32_t ParameterOf(const fbs::CollectiveT& collective) {
  if (DefinitionOf(collective.kind).parameter == collectives::Parameter::kShift) return collective.shift;
  return DefinitionOf(collective.kind).reduces() ? static_cast<uint32_t>(collective.reduction) : 0;
}
// Sets the field that the collective's kind, which is set, uses for its parameter. Does nothing for a kind without one.
inline void SetParameter(fbs::CollectiveT& collective, uint32_t parameter) {
  if (DefinitionOf(collective.kind).parameter == collectives::Parameter::kShift) collective.shift = parameter;
  if (DefinitionOf(collective.kind).reduces()) collective.reduction = static_cast<fbs::Reduction>(parameter);
}

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_VIEW_COLLECTIVE_VIEW_H_
