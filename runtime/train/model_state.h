#ifndef BOWLINE_RUNTIME_TRAIN_MODEL_STATE_H_
#define BOWLINE_RUNTIME_TRAIN_MODEL_STATE_H_

// A plan's states as checkpoints see them.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/executor/session.h"
#include "runtime/plan/attachments.h"
#include "runtime/train/tensors/checkpoint_files.h"

namespace bowline {

// The mesh of the plan, and the session's rank in it.
RankInMesh RankOf(const Session& session);

// The tensors that checkpoints of the plan have, and those that are loaded from them: states of all roles in the plan's
// order, with their memory if the session, which outlives it, has it. Weights go into model.safetensors under their
// Hugging Face names, everything else into optimizer.safetensors.
std::vector<CheckpointTensor> StateTensors(Session& session);

// Gives a value to states that no checkpoint has: runs the plan's entry of kind Init, which sets all states, if the
// plan has such a state. Checkpoints or weights are loaded after this.
absl::Status InitializeUnsaved(Session& session);

// The value of the state that counts finished steps; nothing if the plan has no such state.
absl::StatusOr<std::optional<int32_t>> ReadStepState(const Session& session);

// A text that the plan carries; empty when it does not.
absl::string_view AttachmentOf(const fbs::Plan& plan, absl::string_view name);

// The model's config.json.
inline absl::string_view AttachedConfig(const fbs::Plan& plan) { return AttachmentOf(plan, kConfigAttachment); }

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_MODEL_STATE_H_
