#include "runtime/train/checkpoint/checkpoint_saver.h"

#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/train/checkpoint/checkpoint.h"

namespace bowline {
namespace {

// The share of the available memory that a copy may take. The rest is for data not yet on the disk, and for others.
constexpr double kShareOfMemory = 0.6;

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

CheckpointSaver::~CheckpointSaver() { Abandon(); }

absl::StatusOr<bool> CheckpointSaver::CopyFits(const CheckpointContent& content) {
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<StoredPart> parts, StoredParts(content.tensors, content.self));
  uint64_t mine = 0;
  for (const StoredPart& part : parts) {
    BOWLINE_ASSIGN_OR_RETURN(const uint64_t bytes, part.bytes());
    mine += bytes;
  }
  BOWLINE_ASSIGN_OR_RETURN(neighbours_, agreement_.RanksOfThisMachine());
  BOWLINE_ASSIGN_OR_RETURN(const bool too_large, agreement_.AnyOf(!IsRoomFor(mine)));
  if (!too_large) return true;
  copy_ = PageMemory();
  NoteNoRoom(absl::StrCat(static_cast<double>(mine) * neighbours_ * 1e-9, " GB of ",
                          static_cast<double>(options_.available_memory()) * 1e-9, " GB available here"));
  return false;
}

bool CheckpointSaver::IsRoomFor(uint64_t bytes) const {
  const auto available = static_cast<double>(options_.available_memory());
  const double kept = static_cast<double>(copy_.bytes()) * neighbours_;
  return static_cast<double>(bytes) * neighbours_ <= kShareOfMemory * (available + kept);
}

void CheckpointSaver::NoteNoRoom(absl::string_view why) {
  if (!noted_no_room_ && agreement_.rank() == 0) {
    options_.on_note(absl::StrCat(
        "steps wait for saves to end: a copy of the states does not fit into the memory of each machine (", why, ")"));
  }
  noted_no_room_ = true;
}

absl::Status CheckpointSaver::Save(CheckpointContent content, bool in_background) {
  BOWLINE_RETURN_IF_ERROR(Finish());
  begin_ = Clock::now();
  ParallelSave::Options options;
  options.allows_non_finite = options_.allows_non_finite;
  if (options_.prepare != nullptr) {
    const absl::Status prepared = agreement_.AllOkAfter("looking at the save directory", options_.prepare);
    if (!prepared.ok()) {
      return absl::Status(prepared.code(), absl::StrCat("the checkpoint of step ", content.state.step,
                                                        " was not saved: ", prepared.message()));
    }
  }
  bool copied = false;
  if (in_background) {
    BOWLINE_ASSIGN_OR_RETURN(copied, CopyFits(content));
  }
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<ParallelSave> save,
                           ParallelSave::Begin(options_.directory, std::move(content), options, agreement_));
  if (copied) {
    BOWLINE_ASSIGN_OR_RETURN(copied, save->Copy(copy_, agreement_));
    if (!copied) NoteNoRoom("a machine does not grant it");
  }
  save_ = std::move(save);
  if (copied) {
    const auto write = [this] {
      written_ = save_->Write();
      is_written_ = true;
    };
    is_written_ = false;
    try {
      writer_ = std::thread(write);
    } catch (const std::system_error&) {
      write();
    }
    stall_ = SecondsSince(begin_);
    return absl::OkStatus();
  }
  written_ = save_->WriteTogether(agreement_);
  stall_ = SecondsSince(begin_);
  return Commit();
}

absl::Status CheckpointSaver::Poll() {
  if (save_ == nullptr) return absl::OkStatus();
  BOWLINE_ASSIGN_OR_RETURN(const bool at_work, agreement_.AnyOf(!is_written_.load()));
  return at_work ? absl::OkStatus() : Commit();
}

absl::Status CheckpointSaver::Finish() {
  if (save_ == nullptr) return absl::OkStatus();
  const auto begin = Clock::now();
  BOWLINE_RETURN_IF_ERROR(agreement_.AllOkAfter("saving", [&] {
    if (writer_.joinable()) writer_.join();
    return absl::OkStatus();
  }));
  stall_ += SecondsSince(begin);
  return Commit();
}

absl::Status CheckpointSaver::Commit() {
  if (writer_.joinable()) writer_.join();
  const absl::StatusOr<std::string> path = save_->Commit(written_, agreement_);
  // Ranks that cannot agree any more leave the save to Abandon.
  if (!path.ok() && agreement_.IsBroken()) return path.status();
  absl::Status deleted;
  if (path.ok()) {
    Report(*path);
    deleted = DeleteOld();
  }
  save_ = nullptr;
  if (!IsRoomFor(copy_.bytes())) copy_ = PageMemory();
  return path.ok() ? deleted : path.status();
}

void CheckpointSaver::Abandon() {
  if (save_ == nullptr) return;
  if (writer_.joinable()) writer_.join();
  absl::StatusOr<std::string> path = save_->CommitAlone(written_, options_.patience, [this] {
    // The other ranks, which do not know yet that this rank ends, write on.
    return !agreement_.IsBroken();
  });
  if (!path.ok()) {
    options_.on_note(path.status().message());
  } else if (!path->empty()) {
    Report(*std::move(path));
  }
  save_ = nullptr;
}

void CheckpointSaver::Report(std::string path) {
  const SavedCheckpoint saved = {save_->step(), std::move(path), SecondsSince(begin_), stall_};
  if (!save_->non_finite().empty()) {
    options_.on_note(absl::StrCat("step ", saved.step, ": ", save_->non_finite(), "; saved all the same"));
  }
  options_.on_saved(saved);
}

absl::Status CheckpointSaver::DeleteOld() {
  if (options_.keep == 0) return absl::OkStatus();
  absl::Status deleted;
  const absl::Status met = agreement_.AllOkAfter("deleting old checkpoints", [&] {
    if (agreement_.rank() == 0) deleted = DeleteOldCheckpoints(options_.directory, options_.keep, save_->run());
    return absl::OkStatus();
  });
  // Not before: meanwhile another thread may write a note about late ranks.
  if (!deleted.ok()) options_.on_note(deleted.message());
  return met;
}

}  // namespace bowline
