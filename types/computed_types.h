#ifndef BOWLINE_TYPES_COMPUTED_TYPES_H_
#define BOWLINE_TYPES_COMPUTED_TYPES_H_

#include "types/element_type.h"

namespace bowline {

// Returns whether there are kernels for models in the type, so that --dtype may name it. Sums, statistics and logits
// are f32 in every model.
constexpr bool IsComputedIn(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kBF16 || type == ElementType::kF16;
}

// Returns whether models can also be trained in the type. In f16, gradients below 2^-24 would be lost, because Bowline
// does not scale the loss.
constexpr bool IsTrainedIn(ElementType type) { return IsComputedIn(type) && type != ElementType::kF16; }

}  // namespace bowline

#endif  // BOWLINE_TYPES_COMPUTED_TYPES_H_
