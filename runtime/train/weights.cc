#include "runtime/train/weights.h"

#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/half.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/weight_key.h"
#include "runtime/plan/plan_view.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/model_state.h"

namespace bowline {
namespace {

// Beyond it a list of wrong tensors says no more than its length.
constexpr size_t kMaxNamed = 50;

bool IsFloat(StorageType type) {
  return type == StorageType::kF64 || type == StorageType::kF32 || type == StorageType::kF16 ||
         type == StorageType::kBF16;
}

// Same bits, or f32 in between.
bool CanConvert(StorageType from, StorageType to) {
  return from == to ||
         (IsFloat(from) && (to == StorageType::kF32 || to == StorageType::kF16 || to == StorageType::kBF16));
}

// A directory of checkpoints has weights one level further down.
std::string ResolveWeights(const std::string& directory) {
  std::error_code ignored;
  for (const char* name : {"/model.safetensors", "/model.safetensors.index.json"}) {
    if (std::filesystem::exists(absl::StrCat(directory, name), ignored)) return directory;
  }
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(directory);
  return checkpoint.ok() ? checkpoint->path() : directory;
}

struct Match {
  SafetensorsDirectory::Entry source;
  TensorView target;
};

absl::Status Read(const Match& match) {
  const auto& [file, tensor] = match.source;
  const StorageType to = StorageTypeOf(match.target.dtype);
  if (tensor->type == to) {
    const absl::Span<const uint8_t> bytes = file->Bytes(*tensor);
    if (!bytes.empty()) std::memcpy(match.target.data, bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  if (to == StorageType::kF32) return file->ReadF32(*tensor, match.target.As<float>());
  std::vector<float> values(static_cast<size_t>(tensor->elements));
  BOWLINE_RETURN_IF_ERROR(file->ReadF32(*tensor, absl::MakeSpan(values)));
  const absl::Span<uint16_t> out = match.target.As<uint16_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    out[i] = to == StorageType::kBF16 ? F32ToBf16(values[i]) : F32ToF16(values[i]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedWeights> LoadWeights(Session& session, const std::string& given) {
  LoadedWeights result;
  result.directory = ResolveWeights(given);
  BOWLINE_ASSIGN_OR_RETURN(const SafetensorsDirectory weights, SafetensorsDirectory::Open(result.directory));
  std::vector<Match> matches;
  std::vector<std::string> problems;
  std::set<absl::string_view> used;
  const auto& states = *session.plan().states();
  for (uint32_t i = 0; i < states.size(); ++i) {
    if (states.Get(i)->role() != fbs::StateRole::Parameter) continue;
    const absl::string_view key = TextOf(states.Get(i)->key());
    const TensorView target = session.StateAt(i);
    const StorageType type = StorageTypeOf(target.dtype);
    const SafetensorsDirectory::Entry* entry = weights.Find(key);
    if (entry == nullptr && !LegacyWeightKey(key).empty()) entry = weights.Find(LegacyWeightKey(key));
    if (entry == nullptr) {
      problems.push_back(absl::StrCat("'", key, "' is missing; the plan needs ", DescribeTensor(type, target.shape)));
      continue;
    }
    used.insert(entry->tensor->name);
    if (entry->tensor->shape != target.shape || !CanConvert(entry->tensor->type, type)) {
      problems.push_back(absl::StrCat("'", entry->tensor->name, "' is ",
                                      DescribeTensor(entry->tensor->type, entry->tensor->shape), " in '",
                                      entry->file->path(), "'; the plan needs ", DescribeTensor(type, target.shape)));
      continue;
    }
    matches.push_back({*entry, target});
  }
  if (!problems.empty()) {
    const size_t all = problems.size();
    if (all > kMaxNamed) {
      problems.resize(kMaxNamed);
      problems.push_back(absl::StrCat("and ", all - kMaxNamed, " more"));
    }
    return absl::FailedPreconditionError(
        absl::StrCat("the weights in '", result.directory, "' do not fit '", session.loaded_plan().name(), "':\n  ",
                     absl::StrJoin(problems, "\n  "), "\ncompile the plan from the config.json of these weights"));
  }
  for (const Match& match : matches) BOWLINE_RETURN_IF_ERROR(Read(match));
  result.tensors = static_cast<int64_t>(matches.size());
  for (const auto& [name, entry] : weights.tensors()) {
    if (used.count(name) == 0) result.unused.push_back(name);
  }
  return result;
}

}  // namespace bowline
