#include "runtime/train/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "runtime/base/atomic_directory.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/convert_elements.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/safetensors.h"
#include "runtime/train/tensors/non_finite.h"
#include "runtime/train/tensors/open_tensors.h"
#include "runtime/train/tensors/stored_part.h"
#include "runtime/train/tensors/stored_tensors.h"

namespace bowline {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kStepPrefix = "step-";

absl::Status DescribeLatest(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' should be a file that names a checkpoint such as ",
                                                 kStepPrefix, "00000020; delete it to take the highest step"));
}

struct CheckpointList {
  std::vector<std::string> names;  // the one to prefer first
  std::string lost;                // the one that `latest` names, where it is not there
};

// The checkpoints in the directory of a run.
absl::StatusOr<CheckpointList> ListCheckpoints(const std::string& directory) {
  CheckpointList list;
  BOWLINE_ASSIGN_OR_RETURN(list.names, CheckpointNames(directory));
  const std::string latest_path = absl::StrCat(directory, "/", kLatestFile);
  std::error_code ignored;
  if (fs::is_directory(latest_path, ignored)) return DescribeLatest(latest_path);
  const absl::StatusOr<MappedFile> latest = MappedFile::Open(latest_path);
  if (!latest.ok()) return absl::IsNotFound(latest.status()) ? absl::StatusOr<CheckpointList>(list) : latest.status();
  const auto bytes = latest->bytes();
  const absl::string_view name = absl::StripAsciiWhitespace(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 64)));
  if (!IsCheckpointName(name)) {
    return DescribeLatest(latest_path);
  }
  // A checkpoint that was deleted by hand gives way to the highest step.
  const auto preferred = std::find(list.names.begin(), list.names.end(), name);
  if (preferred == list.names.end()) {
    list.lost = std::string(name);
  } else {
    std::rotate(list.names.begin(), preferred, preferred + 1);
  }
  return list;
}

// The last checkpoint before another one whose state can be read; empty without any.
std::string CheckpointBefore(const std::string& checkpoint) {
  const fs::path path(checkpoint);
  const std::string name = path.filename().string();
  const std::string directory = path.has_parent_path() ? path.parent_path().string() : ".";
  const absl::StatusOr<std::vector<std::string>> names = CheckpointNames(directory);
  if (!names.ok()) return "";
  for (const std::string& other : *names) {
    if (!IsLaterStep(name, other)) continue;
    const std::string found = absl::StrCat(directory, "/", other);
    if (ReadTrainerState(absl::StrCat(found, "/", kStateFile)).ok()) return found;
  }
  return "";
}

// Adds to an error of the files of a checkpoint that it is damaged, and which one to take instead.
absl::Status DescribeDamage(const std::string& checkpoint, const absl::Status& status) {
  if (!absl::IsNotFound(status) && !absl::IsDataLoss(status) && !absl::IsInvalidArgument(status)) return status;
  const std::string before = CheckpointBefore(checkpoint);
  absl::string_view message = status.message();
  for (const absl::string_view known : {"; the checkpoint is damaged, load another", "; the checkpoint is damaged"}) {
    if (absl::ConsumeSuffix(&message, known)) break;
  }
  return absl::Status(
      status.code(),
      absl::StrCat(message, "; the checkpoint is damaged, and ",
                   before.empty() ? "there is none before it" : absl::StrCat("the one before it is '", before, "'")));
}

absl::Status DeleteCheckpoint(const std::string& name) {
  BOWLINE_ASSIGN_OR_RETURN(const std::string path, ResolveDirectory(name));
  // The next save deletes directories with hidden names, should this process end here.
  const std::string hidden = TemporarySiblingOf(name);
  std::error_code error;
  fs::rename(path, hidden, error);
  if (error) return ErrnoToStatus(error.value(), absl::StrCat("cannot delete the old checkpoint '", path, "'"));
  fs::remove_all(hidden, error);
  if (!error) return absl::OkStatus();
  return ErrnoToStatus(error.value(), absl::StrCat("cannot delete all of the old checkpoint '", path,
                                                   "'; delete the rest of it, '", hidden, "'"));
}

// A tensor and where it comes from.
struct Match {
  const CheckpointTensor* tensor;
  const StoredTensors::Tensor* stored;
  ShardedTensor sharded;
};

// The bits of a parameter that is stored rounded, among the states of the optimizer; null if there are none.
const StoredTensors::Tensor* FindExact(const StoredTensors& optimizer, const CheckpointTensor& tensor) {
  if (tensor.role != CheckpointRole::kParameter || !tensor.is_saved) return nullptr;
  const StoredTensors::Tensor* exact = optimizer.Find(absl::StrCat(kExactPrefix, tensor.key));
  return exact != nullptr && exact->type == tensor.type && exact->shape == tensor.shape ? exact : nullptr;
}

// kInvalidArgument, naming the element, when a part of the parameter `key` is not the rounded part of `exact`.
absl::Status CheckRounded(StoredTensors& parameters, StoredTensors& optimizer, const StoredTensors::Tensor& exact,
                          const std::string& key, const ShardedTensor& sharded, int64_t rank) {
  const StoredTensors::Tensor* rounded = parameters.Find(key);
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("'", parameters.path(), "': ", what, " of '", key,
                                                   "' differs from the rounded '", exact.key, "' in '",
                                                   optimizer.path(),
                                                   "'; one of both files was changed, or is of another checkpoint. "
                                                   "Resume from another checkpoint, or begin a new run "
                                                   "from these parameters with --weights"));
  };
  if (rounded == nullptr) return absl::OkStatus();  // MatchRole says so
  if (rounded->shape != exact.shape || !CanConvert(exact.type, rounded->type)) return error("the type or shape");
  constexpr size_t kMostElements = size_t{1} << 16;
  const size_t from_size = SizeOf(exact.type), to_size = SizeOf(rounded->type);
  std::vector<uint8_t> converted(kMostElements * to_size);
  return sharded.memory().ForEachRun(sharded.MemoryPlace(rank), [&](TensorDivision::Run run) -> absl::Status {
    while (run.count > 0) {
      BOWLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> from, optimizer.BytesFrom(exact, run.global));
      BOWLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> to, parameters.BytesFrom(*rounded, run.global));
      const size_t count =
          std::min({from.size() / from_size, to.size() / to_size, static_cast<size_t>(run.count), kMostElements});
      Convert(exact.type, from.first(count * from_size), rounded->type, converted.data());
      if (std::memcmp(converted.data(), to.data(), count * to_size) != 0) {
        const auto end = converted.begin() + static_cast<std::ptrdiff_t>(count * to_size);
        const auto first =
            static_cast<size_t>(std::mismatch(converted.begin(), end, to.begin()).first - converted.begin());
        return error(
            absl::StrCat("element ", DescribeElement(run.global + static_cast<int64_t>(first / to_size), exact.shape)));
      }
      run.global += static_cast<int64_t>(count);
      run.count -= static_cast<int64_t>(count);
    }
    return absl::OkStatus();
  });
}

// Looks at the values that ReadPart reads into the memory of a place.
PieceVisitor VisitFinite(const CheckpointTensor& tensor, const TensorDivision& memory, int64_t place,
                         FiniteCheck& check) {
  return [&tensor, &memory, place, &check](absl::Span<const uint8_t> bytes, int64_t local) -> absl::Status {
    const std::optional<size_t> first = FirstNonFinite(tensor.type, bytes);
    if (!first.has_value()) return absl::OkStatus();
    const int64_t element = local + static_cast<int64_t>(*first);
    return memory.ForEachRun(place, [&](const TensorDivision::Run& run) -> absl::Status {
      if (element < run.local || element >= run.local + run.count) return absl::OkStatus();
      return check.Visit(tensor, run.global + element - run.local, bytes.subspan(*first * SizeOf(tensor.type)));
    });
  };
}

// Checks the tensors of one role against the stored ones, both ways, but for those of `elsewhere`, sorted keys.
absl::StatusOr<std::vector<Match>> MatchRole(const StoredTensors& stored, CheckpointRole role,
                                             absl::Span<const CheckpointTensor> tensors, const RankMesh& mesh,
                                             const std::set<std::string>& elsewhere) {
  const auto error = [&](absl::string_view file, absl::string_view key, absl::string_view what) {
    return absl::FailedPreconditionError(absl::StrCat("'", file, "': tensor '", key, "' ", what,
                                                      "; the checkpoint was saved from another model or plan"));
  };
  std::vector<Match> matches;
  std::set<absl::string_view> wanted;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.role != role) continue;
    wanted.insert(tensor.key);
    const StoredTensors::Tensor* found = stored.Find(tensor.key);
    if (found == nullptr) return error(stored.path(), tensor.key, "is missing");
    if (elsewhere.count(tensor.key) != 0) continue;
    const bool fits = tensor.is_saved ? found->type == tensor.type : CanConvert(found->type, tensor.type);
    if (!fits || found->shape != tensor.shape) {
      return error(found->file, tensor.key,
                   absl::StrCat("is ", DescribeTensor(found->type, found->shape), " but the plan has ",
                                DescribeTensor(tensor.type, tensor.shape)));
    }
    if (tensor.memory == nullptr) continue;
    BOWLINE_ASSIGN_OR_RETURN(ShardedTensor sharded, ShardedTensor::Create(mesh, tensor.shape, tensor.sharding));
    matches.push_back({&tensor, found, std::move(sharded)});
  }
  for (const StoredTensors::Tensor& tensor : stored.tensors()) {
    absl::string_view parameter = tensor.key;
    const bool is_exact = absl::ConsumePrefix(&parameter, kExactPrefix) && elsewhere.count(std::string(parameter)) != 0;
    if (!is_exact && wanted.count(tensor.key) == 0) return error(tensor.file, tensor.key, "is not in the plan");
  }
  return matches;
}

}  // namespace

absl::string_view WholeFileName(CheckpointRole role) {
  return role == CheckpointRole::kParameter ? "model.safetensors" : "optimizer.safetensors";
}

bool IsCheckpointName(absl::string_view name) {
  return absl::ConsumePrefix(&name, kStepPrefix) && !name.empty() &&
         std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

bool IsLaterStep(absl::string_view a, absl::string_view b) {
  return a.size() != b.size() ? a.size() > b.size() : a > b;
}

absl::StatusOr<std::vector<std::string>> CheckpointNames(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    std::string name = entries->path().filename().string();
    // ".step-00000020.replaced": see AtomicDirectory.
    absl::string_view stem = name;
    if (absl::ConsumeSuffix(&stem, ".replaced")) absl::ConsumePrefix(&stem, ".");
    if (IsCheckpointName(stem)) names.emplace_back(stem);
  }
  if (error) return ErrnoToStatus(error.value(), absl::StrCat("cannot list '", directory, "'"));
  std::sort(names.begin(), names.end(), IsLaterStep);
  return names;
}

std::string CheckpointName(int64_t step) { return absl::StrFormat("%s%08d", kStepPrefix, step); }

absl::Status DeleteOldCheckpoints(const std::string& directory, int64_t keep, absl::string_view run) {
  BOWLINE_ASSIGN_OR_RETURN(const CheckpointList list, ListCheckpoints(directory));
  std::vector<std::string> names = list.names;
  if (names.empty()) return absl::OkStatus();
  const std::string last = names.front();
  // Steps beyond are of an earlier run into the same directory.
  names.erase(std::remove_if(names.begin(), names.end(), [&](const auto& name) { return IsLaterStep(name, last); }),
              names.end());
  // A name is there twice while a replaced checkpoint has not been deleted.
  names.erase(std::unique(names.begin(), names.end()), names.end());
  // Nor are those of this run that are of another one, or cannot be read.
  names.erase(std::remove_if(names.begin(), names.end(),
                             [&](const auto& name) {
                               const auto state = ReadTrainerState(absl::StrCat(directory, "/", name, "/", kStateFile));
                               return name != last && (!state.ok() || state->run != run);
                             }),
              names.end());
  absl::Status result;
  for (size_t i = static_cast<size_t>(keep); i < names.size(); ++i) {
    result.Update(DeleteCheckpoint(absl::StrCat(directory, "/", names[i])));
  }
  return result;
}

absl::StatusOr<Checkpoint> Checkpoint::OpenOne(const std::string& directory) {
  absl::StatusOr<TrainerState> state = ReadTrainerState(absl::StrCat(directory, "/", kStateFile));
  if (!state.ok()) return DescribeDamage(directory, state.status());
  return Checkpoint(directory, *std::move(state));
}

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& path) {
  // `path` itself may be a checkpoint whose replacement was cut short.
  BOWLINE_ASSIGN_OR_RETURN(const std::string directory, ResolveDirectory(std::string(absl::StripSuffix(path, "/"))));
  std::error_code ignored;
  return fs::exists(absl::StrCat(directory, "/", kStateFile), ignored) ? OpenOne(directory) : OpenLatest(directory);
}

absl::StatusOr<Checkpoint> Checkpoint::OpenLatest(const std::string& directory) {
  BOWLINE_ASSIGN_OR_RETURN(const CheckpointList list, ListCheckpoints(directory));
  if (list.names.empty()) {
    return absl::NotFoundError(absl::StrCat("'", directory, "' holds no checkpoint: neither ", kStateFile, " nor a ",
                                            kStepPrefix, "... directory; give the directory that --save wrote to"));
  }
  const std::string& first = list.names.front();
  BOWLINE_ASSIGN_OR_RETURN(const std::string newest, ResolveDirectory(absl::StrCat(directory, "/", first)));
  BOWLINE_ASSIGN_OR_RETURN(Checkpoint checkpoint, OpenOne(newest));
  const std::string& highest = *std::min_element(list.names.begin(), list.names.end(), IsLaterStep);
  std::error_code ignored;
  const bool is_checkpoint = fs::exists(absl::StrCat(directory, "/", highest, "/", kStateFile), ignored);
  if (is_checkpoint && IsLaterStep(highest, first)) checkpoint.later_ = absl::StrCat(directory, "/", highest);
  checkpoint.lost_ = list.lost;
  return checkpoint;
}

absl::Status Checkpoint::Damaged(const absl::Status& status) const { return DescribeDamage(path_, status); }

absl::Status Checkpoint::CheckState() const {
  for (const CheckpointRole role : {CheckpointRole::kParameter, CheckpointRole::kOptimizer}) {
    BOWLINE_RETURN_IF_ERROR(Damaged(OpenStoredTensors(path_, role).status()));
  }
  return absl::OkStatus();
}

absl::Status Checkpoint::Load(absl::Span<const CheckpointTensor> tensors, const RankInMesh& self,
                              absl::FunctionRef<absl::Status()> begin, FiniteCheck* check) const {
  return DescribeDamage(path_, LoadFiles(tensors, self, begin, check));
}

absl::Status Checkpoint::LoadFiles(absl::Span<const CheckpointTensor> tensors, const RankInMesh& self,
                                   absl::FunctionRef<absl::Status()> begin, FiniteCheck* check) const {
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<StoredTensors> parameters,
                           OpenStoredTensors(path_, CheckpointRole::kParameter));
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<StoredTensors> optimizer,
                           OpenStoredTensors(path_, CheckpointRole::kOptimizer));
  std::set<std::string> exact_keys;
  std::vector<Match> exact;
  for (const CheckpointTensor& tensor : tensors) {
    const StoredTensors::Tensor* found = FindExact(*optimizer, tensor);
    if (found == nullptr) continue;
    exact_keys.insert(tensor.key);
    if (tensor.memory == nullptr) continue;
    BOWLINE_ASSIGN_OR_RETURN(ShardedTensor sharded, ShardedTensor::Create(self.mesh, tensor.shape, tensor.sharding));
    BOWLINE_RETURN_IF_ERROR(CheckRounded(*parameters, *optimizer, *found, tensor.key, sharded, self.rank));
    exact.push_back({&tensor, found, std::move(sharded)});
  }
  std::vector<std::pair<std::unique_ptr<StoredTensors>, std::vector<Match>>> roles;
  for (auto [role, stored] :
       {std::pair{CheckpointRole::kParameter, &parameters}, std::pair{CheckpointRole::kOptimizer, &optimizer}}) {
    BOWLINE_ASSIGN_OR_RETURN(std::vector<Match> matches, MatchRole(**stored, role, tensors, self.mesh, exact_keys));
    roles.emplace_back(std::move(*stored), std::move(matches));
  }
  std::move(exact.begin(), exact.end(), std::back_inserter(roles.back().second));
  // Every file is opened, and every part found there, before memory is touched.
  for (const auto& [stored, matches] : roles) {
    for (const Match& match : matches) {
      BOWLINE_RETURN_IF_ERROR(ForEachPiece(*stored, *match.stored, match.sharded, self.rank,
                                           [](auto, int64_t) { return absl::OkStatus(); }));
    }
  }
  BOWLINE_RETURN_IF_ERROR(begin());
  for (const auto& [stored, matches] : roles) {
    for (const auto& [tensor, source, sharded] : matches) {
      const bool looks = check != nullptr && tensor->is_saved;
      BOWLINE_RETURN_IF_ERROR(
          ReadPart(*stored, *source, sharded, self.rank, tensor->type, *tensor->memory,
                   looks ? VisitFinite(*tensor, sharded.memory(), sharded.MemoryPlace(self.rank), *check) : nullptr));
    }
  }
  return absl::OkStatus();
}

}  // namespace bowline
