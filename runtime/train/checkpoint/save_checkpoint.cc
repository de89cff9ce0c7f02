#include "runtime/train/checkpoint/save_checkpoint.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/base/atomic_file.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/safetensors_writer.h"
#include "runtime/train/tensors/file_metadata.h"
#include "runtime/train/tensors/open_tensors.h"
#include "runtime/train/tensors/shard_index.h"
#include "runtime/train/tensors/stored_tensors.h"

namespace bowline {
namespace {

// Gathers runs, which may be as short as an element, into writes.
class Gatherer {
 public:
  explicit Gatherer(SafetensorsWriter& writer) : writer_(writer) { buffer_.reserve(kBytes); }

  absl::Status Append(absl::Span<const uint8_t> bytes) {
    if (buffer_.size() + bytes.size() > kBytes) BOWLINE_RETURN_IF_ERROR(Flush());
    if (bytes.size() >= kBytes) return writer_.Append(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  }

  absl::Status Finish() {
    BOWLINE_RETURN_IF_ERROR(Flush());
    return writer_.Finish();
  }

 private:
  static constexpr size_t kBytes = size_t{1} << 20;

  absl::Status Flush() {
    const absl::Status status = writer_.Append(buffer_);
    buffer_.clear();
    return status;
  }

  SafetensorsWriter& writer_;
  std::vector<uint8_t> buffer_;
};

// Writes the parts of one role into one file.
absl::Status WriteFileOfRole(const std::string& path, CheckpointRole role, absl::Span<const StoredPart> parts,
                             const std::map<std::string, std::string>& metadata, FiniteCheck* check) {
  std::map<std::string, const StoredPart*> by_name;
  std::vector<SafetensorsSpec> specs;
  for (const StoredPart& part : parts) {
    if (part.tensor().role != role) continue;
    specs.push_back(part.spec());
    by_name.emplace(part.spec().name, &part);
  }
  BOWLINE_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, std::move(specs), metadata));
  Gatherer gatherer(writer);
  for (const SafetensorsSpec& spec : writer.order()) {
    BOWLINE_RETURN_IF_ERROR(by_name.find(spec.name)->second->ForEachBlock(
        check, [&](absl::Span<const uint8_t> bytes) { return gatherer.Append(bytes); }));
  }
  return gatherer.Finish();
}

absl::Status ExportRole(const Checkpoint& checkpoint, CheckpointRole role, const std::string& output) {
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<StoredTensors> stored, OpenStoredTensors(checkpoint.path(), role));
  std::vector<SafetensorsSpec> specs;
  for (const StoredTensors::Tensor& tensor : stored->tensors()) {
    specs.push_back({tensor.key, tensor.type, tensor.shape});
  }
  BOWLINE_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                           SafetensorsWriter::Create(absl::StrCat(output, "/", WholeFileName(role)), std::move(specs),
                                                     FileMetadata(checkpoint.state(), std::nullopt)));
  Gatherer gatherer(writer);
  for (const SafetensorsSpec& spec : writer.order()) {
    const StoredTensors::Tensor& tensor = *stored->Find(spec.name);
    for (int64_t first = 0; first < tensor.elements;) {
      BOWLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes, stored->BytesFrom(tensor, first));
      BOWLINE_RETURN_IF_ERROR(gatherer.Append(bytes));
      first += static_cast<int64_t>(bytes.size() / SizeOf(tensor.type));
    }
  }
  return gatherer.Finish();
}

// Does nothing where there is no such file.
absl::Status CopyFile(const std::string& from, const std::string& to, absl::string_view name) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(absl::StrCat(from, "/", name));
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(file.status());
  return WriteFileAtomically(absl::StrCat(to, "/", name),
                             {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
}

}  // namespace

absl::StatusOr<CheckpointWriter> CheckpointWriter::Begin(const std::string& directory, int64_t step) {
  std::string name = CheckpointName(step);
  BOWLINE_ASSIGN_OR_RETURN(AtomicDirectory target, AtomicDirectory::Create(absl::StrCat(directory, "/", name)));
  return CheckpointWriter(directory, std::move(name), std::move(target));
}

absl::Status CheckpointWriter::WriteState(const TrainerState& state, absl::string_view config_json) const {
  if (!config_json.empty()) {
    BOWLINE_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(staging_path(), "/config.json"), config_json));
  }
  return WriteFileAtomically(absl::StrCat(staging_path(), "/", kStateFile), TrainerStateToJson(state));
}

absl::Status CheckpointWriter::WriteIndex(int64_t step, const RankMesh& mesh,
                                          absl::Span<const CheckpointTensor> tensors) const {
  return WriteFileAtomically(absl::StrCat(staging_path(), "/", kShardIndexFile), ShardIndexToJson(step, mesh, tensors));
}

absl::StatusOr<std::string> CheckpointWriter::Commit() {
  BOWLINE_RETURN_IF_ERROR(target_.Commit());
  is_complete_ = true;
  const absl::Status named = WriteFileAtomically(absl::StrCat(directory_, "/", kLatestFile), absl::StrCat(name_, "\n"));
  if (named.ok()) return target_.path();
  return Annotate(named,
                  absl::StrCat("the checkpoint '", target_.path(), "' is complete, and --resume ", target_.path(),
                               " goes on with it; '", directory_, "/", kLatestFile, "' names the one before"));
}

absl::Status WriteParts(const std::string& staging_path, const TrainerState& state, absl::Span<const StoredPart> parts,
                        const RankInMesh& self, FiniteCheck* check) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(staging_path, ignored)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", staging_path, "', which rank 0 made, is not there; save into a directory that all ranks share"));
  }
  const bool alone = self.mesh.ranks() == 1;
  for (const CheckpointRole role : {CheckpointRole::kParameter, CheckpointRole::kOptimizer}) {
    const std::string name = alone ? std::string(WholeFileName(role)) : ShardFileName(role, self.rank);
    BOWLINE_RETURN_IF_ERROR(WriteFileOfRole(absl::StrCat(staging_path, "/", name), role, parts,
                                            FileMetadata(state, alone ? std::nullopt : std::optional(self.rank)),
                                            check));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> SaveCheckpoint(const std::string& directory, const TrainerState& state,
                                           absl::Span<const CheckpointTensor> tensors, absl::string_view config_json) {
  bool is_complete = false;
  const auto save = [&]() -> absl::StatusOr<std::string> {
    BOWLINE_ASSIGN_OR_RETURN(CheckpointWriter writer, CheckpointWriter::Begin(directory, state.step));
    BOWLINE_ASSIGN_OR_RETURN(const std::vector<StoredPart> parts, StoredParts(tensors, {}));
    BOWLINE_RETURN_IF_ERROR(WriteParts(writer.staging_path(), state, parts, {}, /*check=*/nullptr));
    BOWLINE_RETURN_IF_ERROR(writer.WriteState(state, config_json));
    absl::StatusOr<std::string> path = writer.Commit();
    is_complete = writer.is_complete();
    return path;
  };
  absl::StatusOr<std::string> saved = save();
  if (saved.ok() || is_complete) return saved;
  return Annotate(saved.status(), absl::StrCat("checkpoint of step ", state.step, " was not saved"));
}

absl::Status ExportCheckpoint(const Checkpoint& checkpoint, const std::string& output, bool with_training) {
  std::error_code ignored;
  if (std::filesystem::is_directory(output, ignored) && !std::filesystem::is_empty(output, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat("'", output, "' exists and is not empty; give another name"));
  }
  BOWLINE_ASSIGN_OR_RETURN(AtomicDirectory target, AtomicDirectory::Create(output));
  const std::string& staging = target.staging_path();
  BOWLINE_RETURN_IF_ERROR(ExportRole(checkpoint, CheckpointRole::kParameter, staging));
  BOWLINE_RETURN_IF_ERROR(CopyFile(checkpoint.path(), staging, "config.json"));
  if (with_training) {
    BOWLINE_RETURN_IF_ERROR(ExportRole(checkpoint, CheckpointRole::kOptimizer, staging));
    BOWLINE_RETURN_IF_ERROR(CopyFile(checkpoint.path(), staging, kStateFile));
  }
  return target.Commit();
}

}  // namespace bowline
