#include "runtime/train/parallel_save.h"

#include <optional>
#include <utility>

#include "runtime/train/save_checkpoint.h"

namespace bowline {
namespace {

absl::StatusOr<std::string> Save(const std::string& directory, const TrainerState& state,
                                 absl::Span<const CheckpointTensor> tensors, absl::string_view config_json,
                                 const RankInMesh& self, Agreement& agreement) {
  std::optional<CheckpointWriter> writer;  // set on rank 0 alone
  const auto begin = [&]() -> absl::Status {
    if (self.rank != 0) return absl::OkStatus();
    BOWLINE_ASSIGN_OR_RETURN(CheckpointWriter begun, CheckpointWriter::Begin(directory, state.step));
    writer.emplace(std::move(begun));
    return absl::OkStatus();
  };
  const auto write = [&](const std::string& staging) -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(WriteShards(staging, state.step, tensors, self));
    if (self.rank != 0) return absl::OkStatus();
    BOWLINE_RETURN_IF_ERROR(writer->WriteIndex(state.step, self.mesh, tensors));
    return writer->WriteState(state, config_json);
  };
  std::string path;
  const auto commit = [&]() -> absl::Status {
    if (self.rank != 0) return absl::OkStatus();
    BOWLINE_ASSIGN_OR_RETURN(path, writer->Commit());
    return absl::OkStatus();
  };
  // The writer deletes what was written when rank 0 returns without a commit; the others are done by then.
  BOWLINE_RETURN_IF_ERROR(agreement.AllOk(begin()));
  BOWLINE_ASSIGN_OR_RETURN(const std::string staging,
                           agreement.FromRankZero(writer.has_value() ? writer->staging_path() : ""));
  BOWLINE_RETURN_IF_ERROR(agreement.AllOk(write(staging)));
  BOWLINE_RETURN_IF_ERROR(agreement.AllOk(commit()));
  return agreement.FromRankZero(path);
}

}  // namespace

absl::StatusOr<std::string> SaveCheckpointOfRanks(const std::string& directory, const TrainerState& state,
                                                  absl::Span<const CheckpointTensor> tensors,
                                                  absl::string_view config_json, const RankInMesh& self,
                                                  Agreement& agreement) {
  absl::StatusOr<std::string> saved = Save(directory, state, tensors, config_json, self, agreement);
  if (saved.ok()) return saved;
  return Annotate(saved.status(), absl::StrCat("checkpoint of step ", state.step, " was not saved"));
}

}  // namespace bowline
