#ifndef BOWLINE_RUNTIME_TRAIN_MODEL_STATE_H_
#define BOWLINE_RUNTIME_TRAIN_MODEL_STATE_H_

// Gives checkpoints access to the states of a plan.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/executor/session.h"
#include "runtime/plan/view/attachments.h"
#include "runtime/train/tensors/checkpoint_files.h"

namespace bowline {

// Returns the mesh of the plan and the session's rank in it.
RankInMesh RankOf(const Session& session);

// Returns the tensors that checkpoints of the plan save and load: the states of all roles, in the plan's order. Those
// that the session holds have their memory, which the session must outlive. Weights go into model.safetensors under
// their Hugging Face names, all other states into optimizer.safetensors.
std::vector<CheckpointTensor> StateTensors(Session& session);

// Initializes the states that checkpoints do not save. If the plan has any, runs its entry of kind Init, which sets all
// states. So load checkpoints or weights only after this.
absl::Status InitializeUnsaved(Session& session);

// Reads the state that counts finished steps; nothing if the plan has none.
absl::StatusOr<std::optional<int32_t>> ReadStepState(const Session& session);

// Returns the text attached to the plan under `name`; empty if there is none.
absl::string_view AttachmentOf(const fbs::Plan& plan, absl::string_view name);

// Returns the config.json of the model that the plan was compiled from; empty if there is none.
inline absl::string_view AttachedConfig(const fbs::Plan& plan) { return AttachmentOf(plan, kConfigAttachment); }

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TRAIN_MODEL_STATE_H_
