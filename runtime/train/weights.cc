#include "runtime/train/weights.h"

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "runtime/base/convert_elements.h"
#include "runtime/base/gguf_model.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/weight_key.h"
#include "runtime/plan/view/attachments.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/model_config.h"
#include "runtime/train/model_state.h"
#include "runtime/train/tensors/open_tensors.h"
#include "runtime/train/tensors/shard_index.h"
#include "runtime/train/tensors/sharding.h"
#include "runtime/train/tensors/stored_tensors.h"

namespace bowline {
namespace {

// Beyond it a list of wrong tensors says no more than its length.
constexpr size_t kMaxNamed = 50;

// Whether a GGUF file or directory has weights itself.
bool HasWeights(const std::string& directory) {
  if (IsGgufPath(directory)) return true;
  std::error_code ignored;
  for (const absl::string_view name :
       std::initializer_list<absl::string_view>{"model.safetensors", "model.safetensors.index.json", kShardIndexFile}) {
    if (std::filesystem::exists(absl::StrCat(directory, "/", name), ignored)) return true;
  }
  return false;
}

// The latest checkpoint of a directory that has weights itself, as that of a model into which a run saved; empty
// without any.
std::string CheckpointBeside(const std::string& directory) {
  if (!HasWeights(directory)) return "";
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::OpenLatest(std::string(absl::StripSuffix(directory, "/")));
  return checkpoint.ok() ? checkpoint->path() : "";
}

// A directory of checkpoints has weights one level further down. A checkpoint that is there and cannot be opened is an
// error.
absl::StatusOr<std::string> ResolveWeights(const std::string& directory) {
  if (HasWeights(directory)) return directory;
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(directory);
  if (checkpoint.ok()) return checkpoint->path();
  const absl::StatusOr<std::vector<std::string>> names = CheckpointNames(directory);
  return names.ok() && !names->empty() ? absl::StatusOr<std::string>(checkpoint.status()) : directory;
}

using IgnoredTensors = std::map<std::string, std::string, std::less<>>;

// Names of tensors that the model may ignore, each with the parameter of which it must be a copy, as the plan says;
// nothing where it does not, and all may be ignored.
absl::StatusOr<std::optional<IgnoredTensors>> IgnoredTensorsOf(const fbs::Plan& plan) {
  const absl::string_view text = AttachmentOf(plan, kIgnoredTensorsAttachment);
  if (text.empty()) return std::nullopt;
  BOWLINE_ASSIGN_OR_RETURN(const nlohmann::json object, ParseAttachment(kIgnoredTensorsAttachment, text));
  IgnoredTensors tensors;
  for (const auto& [key, copy_of] : object.items()) tensors[key] = copy_of.get<std::string>();
  return tensors;
}

// Returns whether two tensors have the same type, shape and bytes.
absl::StatusOr<bool> AreSame(StoredTensors& stored, const StoredTensors::Tensor& a, const StoredTensors::Tensor& b) {
  constexpr size_t kMostAtOnce = size_t{16} << 20;
  if (a.type != b.type || a.shape != b.shape) return false;
  for (int64_t first = 0; first < a.elements;) {
    // Bytes are valid until others are asked for.
    BOWLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes, stored.BytesFrom(a, first));
    const absl::Span<const uint8_t> part = bytes.subspan(0, kMostAtOnce);
    const std::vector<uint8_t> copy(part.begin(), part.end());
    BOWLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> others, stored.BytesFrom(b, first));
    const size_t size = std::min(copy.size(), others.size());
    if (std::memcmp(copy.data(), others.data(), size) != 0) return false;
    first += static_cast<int64_t>(size / SizeOf(a.type));
  }
  return true;
}

const StoredTensors::Tensor* FindParameter(const StoredTensors& weights, absl::string_view key) {
  const StoredTensors::Tensor* found = weights.Find(key);
  if (found != nullptr || LegacyWeightKey(key).empty()) return found;
  return weights.Find(LegacyWeightKey(key));
}

// Why the tensor of a parameter is not in the shard that an index names; empty where no index does.
std::string DescribeMissing(const StoredTensors& weights, absl::string_view key) {
  std::string why = weights.DescribeMissing(key);
  return why.empty() ? weights.DescribeMissing(LegacyWeightKey(key)) : why;
}

struct Match {
  const CheckpointTensor* target;
  const StoredTensors::Tensor* source;
  ShardedTensor sharded;
};

}  // namespace

absl::StatusOr<LoadedWeights> LoadWeights(Session& session, const std::string& given, OtherConfig other_config) {
  LoadedWeights result;
  BOWLINE_ASSIGN_OR_RETURN(result.directory, ResolveWeights(given));
  result.checkpoint = CheckpointBeside(given);
  BOWLINE_ASSIGN_OR_RETURN(const std::shared_ptr<StoredTensors> weights, OpenWeightTensors(result.directory));
  const RankInMesh self = RankOf(session);
  const std::vector<CheckpointTensor> targets = StateTensors(session);
  std::vector<Match> matches;
  std::vector<std::string> problems;
  std::set<absl::string_view> used, parameters;
  for (const CheckpointTensor& target : targets) {
    if (target.role != CheckpointRole::kParameter) continue;
    const bool is_first = parameters.insert(target.key).second;
    const StoredTensors::Tensor* source = FindParameter(*weights, target.key);
    const std::string needs = absl::StrCat("the plan needs ", DescribeTensor(target.type, target.shape));
    if (source == nullptr) {
      if (!is_first) continue;
      const std::string why = DescribeMissing(*weights, target.key);
      problems.push_back(absl::StrCat("'", target.key, "'", why.empty() ? " is missing" : ", ", why, "; ", needs));
      continue;
    }
    used.insert(source->key);
    if (target.format.has_value()) {
      ElementType format = ElementType::kF32;
      const StoredTensors::Tensor* blocks = weights->FindBlocks(source->key, format);
      if (blocks != nullptr && format == *target.format && blocks->shape == target.shape) {
        source = blocks;
      } else if (is_first) {
        problems.push_back(absl::StrCat("'", source->key, "' is ",
                                        blocks == nullptr ? "in no blocks" : std::string(NameOf(format)), " in '",
                                        source->file, "'; the plan needs ", std::string(NameOf(*target.format)),
                                        " in the order of its file; compile it with --weights-dtype f32 for others"));
      }
      if (source != blocks) continue;
    }
    if (source->shape != target.shape || !CanConvert(source->type, target.type)) {
      if (!is_first) continue;
      problems.push_back(absl::StrCat("'", source->key, "' is ", DescribeTensor(source->type, source->shape), " in '",
                                      source->file, "'; ", needs));
      continue;
    }
    if (target.memory == nullptr) continue;
    BOWLINE_ASSIGN_OR_RETURN(ShardedTensor sharded, ShardedTensor::Create(self.mesh, target.shape, target.sharding));
    matches.push_back({&target, source, std::move(sharded)});
  }
  BOWLINE_ASSIGN_OR_RETURN(const std::optional<IgnoredTensors> ignored, IgnoredTensorsOf(session.plan()));
  for (const StoredTensors::Tensor& tensor : weights->tensors()) {
    if (used.count(tensor.key) != 0) continue;
    result.unused.push_back(tensor.key);
    if (!ignored) continue;
    if (const auto found = ignored->find(tensor.key); found != ignored->end()) {
      const StoredTensors::Tensor* original = FindParameter(*weights, found->second);
      if (original == nullptr) continue;  // of nothing, or missing, which was said
      BOWLINE_ASSIGN_OR_RETURN(const bool is_copy, AreSame(*weights, tensor, *original));
      if (is_copy) continue;
      problems.push_back(absl::StrCat("'", tensor.key, "' differs from '", original->key,
                                      "', which the plan uses in its place, because the model ties the two"));
      continue;
    }
    problems.push_back(absl::StrCat("'", tensor.key, "' is ", DescribeTensor(tensor.type, tensor.shape), " in '",
                                    tensor.file, "'; the plan has no such parameter and would ignore it"));
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
  if (other_config == OtherConfig::kRefuse) {
    BOWLINE_RETURN_IF_ERROR(RequireSameConfig(session.plan(), session.loaded_plan().name(), result.directory));
  } else {
    BOWLINE_ASSIGN_OR_RETURN(result.config_differences, DifferencesOfConfig(session.plan(), result.directory));
  }
  // Every file is opened before a parameter is touched.
  for (const Match& match : matches) {
    if (!weights->OpensFilesLate()) break;
    BOWLINE_RETURN_IF_ERROR(ForEachPiece(*weights, *match.source, match.sharded, self.rank,
                                         [](auto, int64_t) { return absl::OkStatus(); }));
  }
  for (const Match& match : matches) {
    BOWLINE_ASSIGN_OR_RETURN(const bool is_borrowed, BorrowPart(weights, *match.source, match.sharded, self.rank,
                                                                match.target->type, *match.target->memory));
    if (is_borrowed) continue;
    BOWLINE_RETURN_IF_ERROR(
        ReadPart(*weights, *match.source, match.sharded, self.rank, match.target->type, *match.target->memory));
  }
  result.external = session.external_bytes();
  result.tensors = static_cast<int64_t>(parameters.size());
  return result;
}

}  // namespace bowline
