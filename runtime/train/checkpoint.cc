#include "runtime/train/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "runtime/base/atomic_directory.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/json.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/safetensors_writer.h"

namespace bowline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kStateVersion = 1;
constexpr absl::string_view kStateFile = "trainer_state.json";
constexpr absl::string_view kLatestFile = "latest";
constexpr absl::string_view kStepPrefix = "step-";

absl::string_view FileOf(CheckpointRole role) {
  return role == CheckpointRole::kParameter ? "model.safetensors" : "optimizer.safetensors";
}

std::string StateToJson(const TrainerState& state) {
  nlohmann::ordered_json object;
  object["version"] = kStateVersion;
  object["step"] = state.step;
  object["seed"] = state.seed;
  object["order"] = std::string(NameOf(state.order));
  object["next_draw"] = state.next_draw;
  object["data_tokens"] = state.data_tokens;
  object["plan"] = state.plan;
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::StatusOr<TrainerState> StateFromFile(const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(const json object, ReadJsonFile(path, /*max_bytes=*/1 << 20));
  const auto error = [&](absl::string_view key, absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': \"", key, "\" ", what, "; the checkpoint is damaged, resume from another"));
  };
  const auto read_count = [&](const char* key, auto* value) -> absl::Status {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_unsigned()) return error(key, "should be an integer from 0 on");
    using T = std::remove_pointer_t<decltype(value)>;
    if (found->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<T>::max()))
      return error(key, "is too large");
    *value = found->get<T>();
    return absl::OkStatus();
  };
  const auto read_text = [&](const char* key, std::string* value) -> absl::Status {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return error(key, "should be a string");
    *value = found->get_ref<const std::string&>();
    return absl::OkStatus();
  };
  if (!object.is_object()) return absl::InvalidArgumentError(absl::StrCat("'", path, "' should hold a JSON object"));
  int64_t version = 0;
  BOWLINE_RETURN_IF_ERROR(read_count("version", &version));
  if (version != kStateVersion) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' has version ", version, "; supported is ",
                                                   kStateVersion, "; resume with the Bowline that saved it"));
  }
  TrainerState state;
  std::string order;
  BOWLINE_RETURN_IF_ERROR(read_count("step", &state.step));
  BOWLINE_RETURN_IF_ERROR(read_count("seed", &state.seed));
  BOWLINE_RETURN_IF_ERROR(read_count("next_draw", &state.next_draw));
  BOWLINE_RETURN_IF_ERROR(read_count("data_tokens", &state.data_tokens));
  BOWLINE_RETURN_IF_ERROR(read_text("plan", &state.plan));
  BOWLINE_RETURN_IF_ERROR(read_text("order", &order));
  const absl::StatusOr<DataOrder> parsed = DataOrderFromName(order);
  if (!parsed.ok()) return error("order", parsed.status().message());
  state.order = *parsed;
  return state;
}

bool IsStepName(absl::string_view name) {
  return absl::ConsumePrefix(&name, kStepPrefix) && !name.empty() &&
         std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

// Numeric order of step names, also past eight digits.
bool IsLaterStep(absl::string_view a, absl::string_view b) {
  return a.size() != b.size() ? a.size() > b.size() : a > b;
}

// The checkpoint names in the directory of a run, the one to prefer first.
absl::StatusOr<std::vector<std::string>> ListCheckpoints(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    std::string name = entries->path().filename().string();
    // ".step-00000020.replaced": see AtomicDirectory.
    absl::string_view stem = name;
    if (absl::ConsumeSuffix(&stem, ".replaced")) absl::ConsumePrefix(&stem, ".");
    if (IsStepName(stem)) names.emplace_back(stem);
  }
  if (error) return ErrnoToStatus(error.value(), absl::StrCat("cannot list '", directory, "'"));
  std::sort(names.begin(), names.end(), IsLaterStep);

  const std::string latest_path = absl::StrCat(directory, "/", kLatestFile);
  const absl::StatusOr<MappedFile> latest = MappedFile::Open(latest_path);
  if (!latest.ok()) return absl::IsNotFound(latest.status()) ? names : absl::StatusOr<decltype(names)>(latest.status());
  const auto bytes = latest->bytes();
  const absl::string_view name = absl::StripAsciiWhitespace(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 64)));
  if (!IsStepName(name)) {
    return absl::InvalidArgumentError(absl::StrCat("'", latest_path, "' should name a checkpoint such as ", kStepPrefix,
                                                   "00000020; delete it to take the highest step"));
  }
  // A checkpoint that was deleted by hand gives way to the highest step.
  const auto preferred = std::find(names.begin(), names.end(), name);
  if (preferred != names.end()) std::rotate(names.begin(), preferred, preferred + 1);
  return names;
}

absl::Status WriteRole(const std::string& directory, CheckpointRole role, absl::Span<const CheckpointTensor> tensors) {
  std::vector<SafetensorsSource> sources;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.role == role) sources.push_back({{tensor.key, tensor.type, tensor.shape}, tensor.data});
  }
  // "format" is what Hugging Face's loader insists on.
  return WriteSafetensors(absl::StrCat(directory, "/", FileOf(role)), sources, {{"format", "pt"}});
}

// Checks the tensors of one role against their file, both ways.
absl::Status CheckRole(const SafetensorsFile& file, CheckpointRole role, absl::Span<const CheckpointTensor> tensors) {
  const auto error = [&](absl::string_view key, absl::string_view what) {
    return absl::FailedPreconditionError(absl::StrCat("'", file.path(), "': tensor '", key, "' ", what,
                                                      "; the checkpoint was saved from another model or plan"));
  };
  size_t matched = 0;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.role != role) continue;
    const SafetensorsTensor* stored = file.Find(tensor.key);
    if (stored == nullptr) return error(tensor.key, "is missing");
    if (stored->type != tensor.type || stored->shape != tensor.shape) {
      return error(tensor.key, absl::StrCat("is ", DescribeTensor(stored->type, stored->shape), " but the plan has ",
                                            DescribeTensor(tensor.type, tensor.shape)));
    }
    ++matched;
  }
  if (matched == file.tensors().size()) return absl::OkStatus();
  for (const SafetensorsTensor& stored : file.tensors()) {
    const bool wanted = std::any_of(tensors.begin(), tensors.end(), [&](const CheckpointTensor& tensor) {
      return tensor.role == role && tensor.key == stored.name;
    });
    if (!wanted) return error(stored.name, "is not in the plan");
  }
  return absl::InternalError(absl::StrCat("'", file.path(), "': a tensor is asked for twice"));
}

}  // namespace

absl::StatusOr<std::string> SaveCheckpoint(const std::string& directory, const TrainerState& state,
                                           absl::Span<const CheckpointTensor> tensors, absl::string_view config_json) {
  const auto save = [&]() -> absl::StatusOr<std::string> {
    const std::string name = absl::StrFormat("%s%08d", kStepPrefix, state.step);
    const std::string path = absl::StrCat(directory, "/", name);
    BOWLINE_ASSIGN_OR_RETURN(AtomicDirectory target, AtomicDirectory::Create(path));
    const std::string& staging = target.staging_path();
    BOWLINE_RETURN_IF_ERROR(WriteRole(staging, CheckpointRole::kParameter, tensors));
    BOWLINE_RETURN_IF_ERROR(WriteRole(staging, CheckpointRole::kOptimizer, tensors));
    if (!config_json.empty()) {
      BOWLINE_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(staging, "/config.json"), config_json));
    }
    BOWLINE_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(staging, "/", kStateFile), StateToJson(state)));
    BOWLINE_RETURN_IF_ERROR(target.Commit());
    BOWLINE_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(directory, "/", kLatestFile), absl::StrCat(name, "\n")));
    return path;
  };
  absl::StatusOr<std::string> saved = save();
  if (saved.ok()) return saved;
  return Annotate(saved.status(), absl::StrCat("checkpoint of step ", state.step, " was not saved"));
}

absl::Status DeleteOldCheckpoints(const std::string& directory, int64_t keep) {
  BOWLINE_ASSIGN_OR_RETURN(std::vector<std::string> names, ListCheckpoints(directory));
  if (names.empty()) return absl::OkStatus();
  const std::string last = names.front();
  // Steps beyond are of an earlier run into the same directory.
  names.erase(std::remove_if(names.begin(), names.end(), [&](const auto& name) { return IsLaterStep(name, last); }),
              names.end());
  // A name is there twice while a replaced checkpoint has not been deleted.
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (size_t i = static_cast<size_t>(keep); i < names.size(); ++i) {
    BOWLINE_ASSIGN_OR_RETURN(const std::string path, ResolveDirectory(absl::StrCat(directory, "/", names[i])));
    // Under its hidden name the next save clears it away, should this process end here.
    const std::string hidden = TemporarySiblingOf(absl::StrCat(directory, "/", names[i]));
    std::error_code error;
    fs::rename(path, hidden, error);
    if (!error) fs::remove_all(hidden, error);
    if (error) return ErrnoToStatus(error.value(), absl::StrCat("cannot delete the old checkpoint '", path, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& path) {
  const auto open_one = [](const std::string& directory) -> absl::StatusOr<Checkpoint> {
    BOWLINE_ASSIGN_OR_RETURN(TrainerState state, StateFromFile(absl::StrCat(directory, "/", kStateFile)));
    return Checkpoint(directory, std::move(state));
  };
  // `path` itself may be a checkpoint whose replacement was cut short.
  BOWLINE_ASSIGN_OR_RETURN(const std::string directory, ResolveDirectory(std::string(absl::StripSuffix(path, "/"))));
  std::error_code ignored;
  if (fs::exists(absl::StrCat(directory, "/", kStateFile), ignored)) return open_one(directory);
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(directory));
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat("'", path, "' holds no checkpoint: neither ", kStateFile, " nor a ",
                                            kStepPrefix, "... directory; give the directory that --save wrote to"));
  }
  BOWLINE_ASSIGN_OR_RETURN(const std::string newest, ResolveDirectory(absl::StrCat(directory, "/", names.front())));
  return open_one(newest);
}

absl::Status Checkpoint::Load(absl::Span<const CheckpointTensor> tensors) const {
  std::vector<std::pair<CheckpointRole, SafetensorsFile>> files;
  for (CheckpointRole role : {CheckpointRole::kParameter, CheckpointRole::kOptimizer}) {
    BOWLINE_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(absl::StrCat(path_, "/", FileOf(role))));
    BOWLINE_RETURN_IF_ERROR(CheckRole(file, role, tensors));
    files.emplace_back(role, std::move(file));
  }
  for (const auto& [role, file] : files) {
    for (const CheckpointTensor& tensor : tensors) {
      if (tensor.role != role) continue;
      const absl::Span<const uint8_t> bytes = file.Bytes(*file.Find(tensor.key));
      if (!bytes.empty()) std::memcpy(tensor.data, bytes.data(), bytes.size());
    }
  }
  return absl::OkStatus();
}

}  // namespace bowline
