#ifndef BOWLINE_RUNTIME_TEXT_BPE_MODEL_H_
#define BOWLINE_RUNTIME_TEXT_BPE_MODEL_H_

#include <memory>

#include "runtime/text/definition.h"
#include "runtime/text/vocabulary.h"

namespace bowline {

// Makes a model for byte-pair encoding: of all neighbours that have a merge, it merges those whose merge comes first in
// the list, the leftmost first. `vocabulary` must outlive the model.
absl::StatusOr<std::unique_ptr<PieceModel>> MakeBpeModel(const BpeDefinition& definition, const Vocabulary& vocabulary);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_BPE_MODEL_H_
