#include "runtime/train/tensors/file_metadata.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/sha256.h"

namespace bowline {
namespace {

// Without the names of run and plan and the lines of metrics, which differ between runs that save equal bytes.
std::string StateDigest(TrainerState state) {
  state.run.clear();
  state.plan.clear();
  state.unwritten_metrics.clear();
  // Keys sorted, as reading it leaves them.
  if (!state.recipe.empty()) {
    state.recipe = nlohmann::json::parse(state.recipe, nullptr, /*allow_exceptions=*/false)
                       .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  return ToHex(Sha256Of(TrainerStateToJson(state))).substr(0, 16);
}

}  // namespace

std::map<std::string, std::string> FileMetadata(const TrainerState& state, std::optional<int64_t> rank) {
  // Hugging Face's loader insists on the format.
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  metadata["step"] = absl::StrCat(state.step);
  metadata["state"] = StateDigest(state);
  if (!rank.has_value()) return metadata;
  metadata["rank"] = absl::StrCat(*rank);
  if (!state.run.empty()) metadata["run"] = state.run;
  return metadata;
}

absl::Status CheckFileMetadata(const std::string& path, const std::map<std::string, std::string>& metadata,
                               const TrainerState& state, std::optional<int64_t> rank) {
  const auto of = [&](const char* key) -> std::string {
    const auto found = metadata.find(key);
    return found == metadata.end() ? "none" : absl::CHexEscape(found->second.substr(0, 64));
  };
  const auto says = [&](const char* key, const std::string& value) {
    return metadata.contains(key) && of(key) != value;
  };
  const std::string step = absl::StrCat(state.step);
  if (rank.has_value() && (of("rank") != absl::StrCat(*rank) || of("step") != step)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' was saved by rank ", of("rank"), " at step ",
                                                   of("step"), ", not by rank ", *rank, " at step ", step,
                                                   "; the checkpoint is damaged, load another"));
  }
  if (says("step", step)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' was saved at step ", of("step"), ", not at step ",
                                                   step, "; the checkpoint is damaged, load another"));
  }
  // A state without the name of its run is one of before, or was made such by hand.
  if (state.run.empty()) return absl::OkStatus();
  if (says("run", state.run)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' was saved by run ", of("run"), ", not by run ",
                                                   state.run, "; the checkpoint is damaged, load another"));
  }
  if (says("state", StateDigest(state))) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path,
                     "' was saved with other settings or data than trainer_state.json beside it says: one "
                     "of both is of another run, or was changed; the checkpoint is damaged, load another"));
  }
  return absl::OkStatus();
}

}  // namespace bowline
