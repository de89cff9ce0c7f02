#ifndef BOWLINE_RUNTIME_TEXT_BPE_MODEL_H_
#define BOWLINE_RUNTIME_TEXT_BPE_MODEL_H_

#include <memory>

#include "runtime/text/definition.h"
#include "runtime/text/vocabulary.h"

namespace bowline {

// Byte-pair encoding: of all neighbours that may merge, those whose merge stands first in the list do, the leftmost
// first. `vocabulary` must outlive the model.
absl::StatusOr<std::unique_ptr<PieceModel>> MakeBpeModel(const BpeDefinition& definition, const Vocabulary& vocabulary);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_BPE_MODEL_H_
