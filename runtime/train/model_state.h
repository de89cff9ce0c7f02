#ifndef BOWLINE_RUNTIME_TRAIN_MODEL_STATE_H_
#define BOWLINE_RUNTIME_TRAIN_MODEL_STATE_H_

// A plan's states as checkpoints see them.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/executor/session.h"
#include "runtime/train/checkpoint.h"

namespace bowline {

// The ranks of the plan, and the session's among them.
RankInMesh RankOf(const Session& session);

// What checkpoints of the plan have, and what is loaded from them: states in the plan's order and of all roles, with
// their memory where the session, which outlives it, has it. Weights go into model.safetensors under their Hugging Face
// names, everything else into optimizer.safetensors.
std::vector<CheckpointTensor> StateTensors(Session& session);

// Gives a value to what no checkpoint has: runs the plan's entry of kind Init, which sets everything, if the plan has
// such a state. What a checkpoint or weights have is loaded behind it.
absl::Status InitializeUnsaved(Session& session);

// The state that counts finished steps. Nothing when the plan counts nothing.
absl::StatusOr<std::optional<int32_t>> ReadStepState(const Session& session);

// The model's config.json as the plan carries it; empty when it does not.
absl::string_view AttachedConfig(const fbs::Plan& plan);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_MODEL_STATE_H_
