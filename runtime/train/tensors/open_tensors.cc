#include "runtime/train/tensors/open_tensors.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "runtime/base/gguf_model.h"
#include "runtime/base/safetensors.h"
#include "runtime/train/tensors/file_metadata.h"
#include "runtime/train/tensors/gguf_tensors.h"
#include "runtime/train/tensors/shard_index.h"
#include "runtime/train/tensors/trainer_state.h"

namespace bowline {
namespace {

// Tensors that are whole, in one file or several.
class WholeTensors : public StoredTensors {
 public:
  explicit WholeTensors(SafetensorsFile file)
      : StoredTensors(file.path()), file_(std::make_unique<SafetensorsFile>(std::move(file))) {
    std::map<absl::string_view, const SafetensorsTensor*> sorted;
    for (const SafetensorsTensor& tensor : file_->tensors()) sorted[tensor.name] = &tensor;
    for (const auto& [name, tensor] : sorted) Add(*file_, *tensor);
  }
  WholeTensors(const std::string& path, SafetensorsDirectory directory)
      : StoredTensors(path), directory_(std::make_unique<SafetensorsDirectory>(std::move(directory))) {
    for (const auto& [name, entry] : directory_->tensors()) Add(*entry.file, *entry.tensor);
  }

  absl::StatusOr<absl::Span<const uint8_t>> BytesFrom(const Tensor& tensor, int64_t first) override {
    return bytes_[static_cast<size_t>(&tensor - tensors_.data())].subspan(static_cast<size_t>(first) *
                                                                          SizeOf(tensor.type));
  }
  bool KeepsBytes(const Tensor&) const override { return true; }
  std::string DescribeMissing(absl::string_view key) const override {
    return directory_ == nullptr ? "" : directory_->DescribeMissing(key);
  }

 private:
  void Add(const SafetensorsFile& file, const SafetensorsTensor& tensor) {
    tensors_.push_back({tensor.name, tensor.type, tensor.shape, tensor.elements, file.path()});
    bytes_.push_back(file.Bytes(tensor));
  }

  std::unique_ptr<SafetensorsFile> file_;
  std::unique_ptr<SafetensorsDirectory> directory_;
  std::vector<absl::Span<const uint8_t>> bytes_;
};

// More than the ranks of one stage have, for tensors follow each other stage by stage; and less than what processes may
// map.
constexpr size_t kMaxOpenFiles = 4096;

// Tensors whose parts are in the files of the ranks that saved them.
class TensorsOfRanks : public StoredTensors {
 public:
  TensorsOfRanks(std::string directory, CheckpointRole role, ShardIndex index, TrainerState state)
      : StoredTensors(absl::StrCat(directory, "/", kShardIndexFile)),
        directory_(std::move(directory)),
        role_(role),
        state_(std::move(state)) {
    // The index is sorted, for that is how objects of JSON are read.
    for (ShardIndex::Tensor& tensor : index.tensors) {
      if (tensor.role != role) continue;
      tensors_.push_back(
          {std::move(tensor.key), tensor.type, std::move(tensor.shape), tensor.sharded.memory().elements(), path_});
      sharded_.push_back(std::move(tensor.sharded));
    }
  }

  absl::StatusOr<absl::Span<const uint8_t>> BytesFrom(const Tensor& tensor, int64_t first) override {
    if (current_ != &tensor) {
      current_ = &tensor;
      parts_.clear();
      if (files_.size() > kMaxOpenFiles) files_.clear();
    }
    const TensorDivision& storage = sharded_[static_cast<size_t>(&tensor - tensors_.data())].storage();
    const TensorDivision::Location location = storage.Locate(first);
    const auto [part, is_new] = parts_.try_emplace(location.place);
    if (is_new) {
      absl::StatusOr<absl::Span<const uint8_t>> opened = OpenPart(tensor, location.place);
      if (!opened.ok()) {
        parts_.erase(part);
        return opened.status();
      }
      part->second = *opened;
    }
    const size_t size = SizeOf(tensor.type);
    return part->second.subspan(static_cast<size_t>(location.offset) * size,
                                static_cast<size_t>(location.count) * size);
  }
  bool KeepsBytes(const Tensor&) const override { return false; }
  bool OpensFilesLate() const override { return true; }

 private:
  absl::StatusOr<absl::Span<const uint8_t>> OpenPart(const Tensor& tensor, int64_t place) {
    const ShardedTensor& sharded = sharded_[static_cast<size_t>(&tensor - tensors_.data())];
    const int64_t rank = sharded.RankAt(place);
    BOWLINE_ASSIGN_OR_RETURN(const SafetensorsFile* file, OpenFile(rank));
    const std::vector<int64_t> shape = sharded.storage().StoredShape(place);
    const SafetensorsTensor* part = file->Find(tensor.key);
    if (part == nullptr || part->type != tensor.type || part->shape != shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", file->path(), "': tensor '", tensor.key, "' ",
                       part == nullptr ? "is missing" : absl::StrCat("is ", DescribeTensor(part->type, part->shape)),
                       "; ", kShardIndexFile, " has ", DescribeTensor(tensor.type, shape),
                       " there; the checkpoint is damaged, load another"));
    }
    return file->Bytes(*part);
  }

  absl::StatusOr<const SafetensorsFile*> OpenFile(int64_t rank) {
    std::unique_ptr<SafetensorsFile>& file = files_[rank];
    if (file == nullptr) {
      BOWLINE_ASSIGN_OR_RETURN(SafetensorsFile opened,
                               SafetensorsFile::Open(absl::StrCat(directory_, "/", ShardFileName(role_, rank))));
      BOWLINE_RETURN_IF_ERROR(CheckFileMetadata(opened.path(), opened.metadata(), state_, rank));
      file = std::make_unique<SafetensorsFile>(std::move(opened));
    }
    return file.get();
  }

  const std::string directory_;
  const CheckpointRole role_;
  const TrainerState state_;
  std::vector<ShardedTensor> sharded_;
  std::map<int64_t, std::unique_ptr<SafetensorsFile>> files_;  // by rank
  const Tensor* current_ = nullptr;
  std::map<int64_t, absl::Span<const uint8_t>> parts_;  // the shards of the current tensor, by place
};

bool Exists(const std::string& directory, absl::string_view file) {
  std::error_code ignored;
  return std::filesystem::exists(absl::StrCat(directory, "/", file), ignored);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StoredTensors>> OpenStoredTensors(const std::string& checkpoint, CheckpointRole role) {
  std::optional<TrainerState> state;
  if (Exists(checkpoint, kStateFile)) {
    BOWLINE_ASSIGN_OR_RETURN(state, ReadTrainerState(absl::StrCat(checkpoint, "/", kStateFile)));
  }
  if (Exists(checkpoint, kShardIndexFile)) {
    BOWLINE_ASSIGN_OR_RETURN(ShardIndex index, ReadShardIndex(absl::StrCat(checkpoint, "/", kShardIndexFile)));
    // Weights alone may be there without it.
    if (!state.has_value()) state = TrainerState{.step = index.step};
    if (state->step != index.step) {
      return absl::InvalidArgumentError(absl::StrCat("'", checkpoint, "/", kShardIndexFile, "' is of step ", index.step,
                                                     ", and ", kStateFile, " of step ", state->step,
                                                     "; the checkpoint is damaged, load another"));
    }
    return std::make_unique<TensorsOfRanks>(checkpoint, role, std::move(index), *std::move(state));
  }
  if (const std::string part = ShardFileName(role, 0); Exists(checkpoint, part)) {
    return absl::NotFoundError(absl::StrCat("'", checkpoint, "' has '", part, "' of a rank, but no ", kShardIndexFile,
                                            ", which lists the tensors of each rank"));
  }
  BOWLINE_ASSIGN_OR_RETURN(SafetensorsFile file,
                           SafetensorsFile::Open(absl::StrCat(checkpoint, "/", WholeFileName(role))));
  if (state.has_value()) {
    BOWLINE_RETURN_IF_ERROR(CheckFileMetadata(file.path(), file.metadata(), *state, /*rank=*/std::nullopt));
  }
  return std::make_unique<WholeTensors>(std::move(file));
}

absl::StatusOr<std::unique_ptr<StoredTensors>> OpenWeightTensors(const std::string& directory) {
  if (IsGgufPath(directory)) return OpenGgufTensors(directory);
  if (Exists(directory, kShardIndexFile)) return OpenStoredTensors(directory, CheckpointRole::kParameter);
  BOWLINE_ASSIGN_OR_RETURN(SafetensorsDirectory weights, SafetensorsDirectory::Open(directory));
  return std::make_unique<WholeTensors>(directory, std::move(weights));
}

}  // namespace bowline
