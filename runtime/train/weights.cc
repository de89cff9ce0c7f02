#include "runtime/train/weights.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/half.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/weight_key.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/model_state.h"
#include "runtime/train/shard_index.h"
#include "runtime/train/sharding.h"
#include "runtime/train/stored_tensors.h"

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
  for (const absl::string_view name :
       std::initializer_list<absl::string_view>{"model.safetensors", "model.safetensors.index.json", kShardIndexFile}) {
    if (std::filesystem::exists(absl::StrCat(directory, "/", name), ignored)) return directory;
  }
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(directory);
  return checkpoint.ok() ? checkpoint->path() : directory;
}

struct Match {
  const CheckpointTensor* target;
  const StoredTensors::Tensor* source;
  ShardedTensor sharded;
};

// To `type`, which is f32, bf16 or f16, element by element of `bytes`.
void Convert(StorageType from, absl::Span<const uint8_t> bytes, StorageType type, uint8_t* out) {
  if (from == type) {
    std::memcpy(out, bytes.data(), bytes.size());
    return;
  }
  float values[1024];
  for (size_t count = bytes.size() / SizeOf(from); count > 0;) {
    const size_t some = std::min(count, std::size(values));
    ConvertToF32(from, bytes.data(), absl::MakeSpan(values, some));
    for (size_t i = 0; i < some; ++i, out += SizeOf(type)) {
      const uint16_t half = type == StorageType::kBF16 ? F32ToBf16(values[i]) : F32ToF16(values[i]);
      if (type == StorageType::kF32) {
        std::memcpy(out, &values[i], sizeof(float));
      } else {
        std::memcpy(out, &half, sizeof(half));
      }
    }
    bytes.remove_prefix(some * SizeOf(from));
    count -= some;
  }
}

absl::Status Read(StoredTensors& stored, const Match& match, int64_t rank) {
  const StorageType type = match.target->type;
  auto* const data = static_cast<uint8_t*>(match.target->data);
  const TensorDivision& memory = match.sharded.memory();
  if (memory.StoredElements(match.sharded.MemoryPlace(rank)) < memory.memory_elements()) {
    std::memset(data, 0, static_cast<size_t>(memory.memory_elements()) * SizeOf(type));
  }
  return ForEachPiece(stored, *match.source, match.sharded, rank, [&](absl::Span<const uint8_t> bytes, int64_t local) {
    Convert(match.source->type, bytes, type, data + static_cast<size_t>(local) * SizeOf(type));
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<LoadedWeights> LoadWeights(Session& session, const std::string& given) {
  LoadedWeights result;
  result.directory = ResolveWeights(given);
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<StoredTensors> weights, OpenWeightTensors(result.directory));
  const RankInMesh self = RankOf(session);
  const std::vector<CheckpointTensor> targets = StateTensors(session);
  std::vector<Match> matches;
  std::vector<std::string> problems;
  std::set<absl::string_view> used, parameters;
  for (const CheckpointTensor& target : targets) {
    if (target.role != CheckpointRole::kParameter) continue;
    const bool is_first = parameters.insert(target.key).second;
    const StoredTensors::Tensor* source = weights->Find(target.key);
    if (source == nullptr && !LegacyWeightKey(target.key).empty()) {
      source = weights->Find(LegacyWeightKey(target.key));
    }
    const std::string needs = absl::StrCat("the plan needs ", DescribeTensor(target.type, target.shape));
    if (source == nullptr) {
      if (is_first) problems.push_back(absl::StrCat("'", target.key, "' is missing; ", needs));
      continue;
    }
    used.insert(source->key);
    if (source->shape != target.shape || !CanConvert(source->type, target.type)) {
      if (!is_first) continue;
      problems.push_back(absl::StrCat("'", source->key, "' is ", DescribeTensor(source->type, source->shape), " in '",
                                      source->file, "'; ", needs));
      continue;
    }
    if (target.data == nullptr) continue;
    BOWLINE_ASSIGN_OR_RETURN(ShardedTensor sharded, ShardedTensor::Create(self.mesh, target.shape, target.sharding));
    matches.push_back({&target, source, std::move(sharded)});
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
  // Every file is opened before a parameter is touched.
  for (const Match& match : matches) {
    BOWLINE_RETURN_IF_ERROR(ForEachPiece(*weights, *match.source, match.sharded, self.rank,
                                         [](auto, int64_t) { return absl::OkStatus(); }));
  }
  for (const Match& match : matches) BOWLINE_RETURN_IF_ERROR(Read(*weights, match, self.rank));
  result.tensors = static_cast<int64_t>(parameters.size());
  for (const StoredTensors::Tensor& tensor : weights->tensors()) {
    if (used.count(tensor.key) == 0) result.unused.push_back(tensor.key);
  }
  return result;
}

}  // namespace bowline
