#include "runtime/train/checkpoint/parallel_save.h"

#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/train/tensors/non_finite.h"
#include "runtime/train/tensors/shard_index.h"

namespace bowline {

absl::Status ParallelSave::Explain(const absl::Status& status) const {
  return Annotate(status, absl::StrCat("checkpoint of step ", step(), " was not saved"));
}

absl::Status ParallelSave::BeginHere(const std::string& directory) {
  if (content_.self.rank != 0) return absl::OkStatus();
  BOWLINE_ASSIGN_OR_RETURN(CheckpointWriter begun, CheckpointWriter::Begin(directory, step()));
  writer_.emplace(std::move(begun));
  return absl::OkStatus();
}

absl::Status ParallelSave::CopyParts(absl::Span<uint8_t> to) {
  for (StoredPart& part : parts_) {
    BOWLINE_ASSIGN_OR_RETURN(const uint64_t part_bytes, part.bytes());
    BOWLINE_RETURN_IF_ERROR(part.CopyTo(to.first(part_bytes), &check_));
    to.remove_prefix(part_bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ParallelSave>> ParallelSave::Begin(const std::string& directory,
                                                                  CheckpointContent content, const Options& options,
                                                                  Agreement& agreement) {
  auto save = std::unique_ptr<ParallelSave>(new ParallelSave(std::move(content), options));
  absl::StatusOr<std::vector<StoredPart>> parts = StoredParts(save->content_.tensors, save->content_.self);
  const absl::Status begun = parts.status();
  if (begun.ok()) save->parts_ = *std::move(parts);
  // The writer deletes the written files when rank 0 returns without a commit; the others are done by then.
  const absl::Status all = agreement.AllOkAfter("making the folder of a checkpoint",
                                                [&] { return begun.ok() ? save->BeginHere(directory) : begun; });
  if (!all.ok()) return save->Explain(all);
  absl::StatusOr<std::string> staging =
      agreement.FromRankZero(save->writer_.has_value() ? save->writer_->staging_path() : "");
  if (!staging.ok()) return save->Explain(staging.status());
  save->staging_ = *std::move(staging);
  return save;
}

absl::StatusOr<bool> ParallelSave::Copy(PageMemory& memory, Agreement& agreement) {
  BOWLINE_ASSIGN_OR_RETURN(const uint64_t size, bytes());
  if (memory.bytes() < size) {
    memory = PageMemory();  // before the larger one
    absl::StatusOr<PageMemory> larger = PageMemory::Create(size);
    if (larger.ok()) memory = *std::move(larger);
  }
  BOWLINE_ASSIGN_OR_RETURN(const bool none, agreement.AnyOf(memory.bytes() < size));
  if (none) return false;
  const absl::Status copied = agreement.AllOkAfter("copying its states", [&] { return CopyParts(memory.span()); });
  if (!copied.ok()) return Explain(copied);
  return true;
}

absl::StatusOr<uint64_t> ParallelSave::bytes() const {
  uint64_t sum = 0;
  for (const StoredPart& part : parts_) {
    BOWLINE_ASSIGN_OR_RETURN(const uint64_t bytes, part.bytes());
    sum += bytes;
  }
  return sum;
}

absl::Status ParallelSave::Write() {
  BOWLINE_RETURN_IF_ERROR(WriteParts(staging_, content_.state, parts_, content_.self, &check_));
  if (!writer_.has_value()) return absl::OkStatus();
  if (content_.self.mesh.ranks() > 1) {
    BOWLINE_RETURN_IF_ERROR(writer_->WriteIndex(step(), content_.self.mesh, content_.tensors));
  }
  return writer_->WriteState(content_.state, content_.config_json);
}

absl::Status ParallelSave::WriteTogether(Agreement& agreement) {
  absl::Status written;
  const absl::Status met = agreement.AllOkAfter("saving", [&] {
    written = Write();
    return absl::OkStatus();
  });
  written.Update(met);
  return written;
}

// On rank 0.
absl::StatusOr<std::string> ParallelSave::NameHere(CheckpointWriter& writer) {
  absl::StatusOr<std::string> path = writer.Commit();
  if (!path.ok()) return writer.is_complete() ? path.status() : Explain(path.status());
  named_ = *path;
  return path;
}

absl::Status ParallelSave::AgreeOnContent(const absl::Status& written, Agreement& agreement) {
  BOWLINE_RETURN_IF_ERROR(agreement.AllOk(written));
  if (!check_.allows()) return absl::OkStatus();
  const absl::Status found =
      agreement.AllOk(check_.found().empty() ? absl::OkStatus() : NotFiniteError(check_.found()));
  if (!found.ok() && !IsNotFinite(found)) return found;
  non_finite_ = std::string(found.message());
  return absl::OkStatus();
}

absl::StatusOr<std::string> ParallelSave::Commit(const absl::Status& written, Agreement& agreement) {
  if (const absl::Status agreed = AgreeOnContent(written, agreement); !agreed.ok()) return Explain(agreed);
  absl::Status named = agreement.AllOkAfter("naming a checkpoint", [&]() -> absl::Status {
    return writer_.has_value() ? NameHere(*writer_).status() : absl::OkStatus();
  });
  if (named.ok()) {
    absl::StatusOr<std::string> path = agreement.FromRankZero(named_);
    if (path.ok()) return path;
    named = path.status();
  }
  if (!named_.empty()) return Annotate(named, absl::StrCat("after the checkpoint of step ", step(), " was saved"));
  // Rank 0 adds the fate of the checkpoint to its own errors.
  return agreement.IsBroken() ? Explain(named) : named;
}

bool ParallelSave::FilesAreThere() const {
  for (int64_t rank = 0; rank < content_.self.mesh.ranks(); ++rank) {
    for (const CheckpointRole role : {CheckpointRole::kParameter, CheckpointRole::kOptimizer}) {
      std::error_code ignored;
      if (!std::filesystem::exists(absl::StrCat(staging_, "/", ShardFileName(role, rank)), ignored)) return false;
    }
  }
  return true;
}

absl::StatusOr<std::string> ParallelSave::CommitAlone(const absl::Status& written, std::chrono::nanoseconds patience,
                                                      absl::FunctionRef<bool()> others_live) {
  if (!written.ok()) return Explain(written);
  if (!writer_.has_value() || !named_.empty()) return named_;
  auto end = std::chrono::steady_clock::now() + patience;
  while (content_.self.mesh.ranks() > 1 && !FilesAreThere()) {
    if (others_live()) {
      end = std::chrono::steady_clock::now() + patience;
    } else if (std::chrono::steady_clock::now() >= end) {
      return Explain(absl::UnavailableError("a rank did not write its files"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return NameHere(*writer_);
}

absl::StatusOr<std::string> SaveCheckpointOfRanks(const std::string& directory, CheckpointContent content,
                                                  Agreement& agreement) {
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<ParallelSave> save,
                           ParallelSave::Begin(directory, std::move(content), {}, agreement));
  return save->Commit(save->WriteTogether(agreement), agreement);
}

}  // namespace bowline
