#ifndef BOWLINE_RUNTIME_TEXT_SCORE_MODEL_H_
#define BOWLINE_RUNTIME_TEXT_SCORE_MODEL_H_

#include <memory>

#include "runtime/text/definition.h"
#include "runtime/text/vocabulary.h"

namespace bowline {

// Makes a model for SentencePiece's byte-pair encoding: of all neighbours that together are a token, it merges those
// whose token has the highest score, the leftmost first. Characters that are no token become the tokens of their bytes.
// `vocabulary` must outlive the model.
absl::StatusOr<std::unique_ptr<PieceModel>> MakeScoreModel(const ScoreDefinition& definition,
                                                           const Vocabulary& vocabulary);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TEXT_SCORE_MODEL_H_
