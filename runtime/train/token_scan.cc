#include "runtime/train/token_scan.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/file_fingerprint.h"
#include "runtime/base/sha256.h"
#include "runtime/base/small_file.h"

namespace bowline {
namespace {

// Tokens that a rank looks at between two agreements, so that an error of one ends the scan of all soon.
constexpr int64_t kRound = int64_t{1} << 28;
// Tokens between two reports of progress.
constexpr int64_t kBlock = int64_t{1} << 22;

// A kept scan says of a file that all of its ids are below a vocabulary, and that its index, if it has one, is right.
class KeptScan {
 public:
  KeptScan(const std::string& folder, const TokenDataset& file) {
    if (folder.empty()) return;
    for (const std::string& path : FilesOfTokens(file.path())) {
      struct stat about;
      const absl::StatusOr<std::string> fingerprint = FingerprintOf(path);
      if (!fingerprint.ok() || ::stat(path.c_str(), &about) != 0) return;
      // Samples do not see every change. The times do, also where a program sets the first one back.
      absl::StrAppend(&key_, *fingerprint, " at ", about.st_mtim.tv_sec, ".", about.st_mtim.tv_nsec, " and ",
                      about.st_ctim.tv_sec, ".", about.st_ctim.tv_nsec, ", ");
    }
    absl::StrAppend(&key_, file.description(), ", ", file.size(), " tokens\nbelow ");
    Sha256 hash;
    hash.Update(key_);
    path_ = absl::StrCat(folder, "/", ToHex(hash.Finish()).substr(0, 32), ".scan");
  }

  bool Covers(int64_t vocabulary) const {
    if (path_.empty()) return false;
    const absl::StatusOr<std::string> text = ReadSmallFile(path_, key_.size() + 32);
    if (!text.ok()) return false;
    absl::string_view rest = *text;
    int64_t below = 0;
    return absl::ConsumePrefix(&rest, key_) && absl::ConsumeSuffix(&rest, "\n") && absl::SimpleAtoi(rest, &below) &&
           below > 0 && below <= vocabulary;
  }

  // A result that cannot be kept is computed again.
  void Keep(int64_t vocabulary) const {
    if (path_.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(path_);
    if (!file.ok() || !file->Append(absl::StrCat(key_, vocabulary, "\n")).ok()) return;
    file->CommitUnsynced().IgnoreError();
  }

 private:
  std::string key_, path_;  // empty: nothing is kept
};

absl::Status ScanFile(const TokenDataset& file, Agreement& agreement, ScanProgress progress) {
  const int64_t share = (file.size() - 1) / agreement.ranks() + 1;
  const int64_t begin = std::min(file.size(), share * agreement.rank());
  const int64_t end = std::min(file.size(), begin + share);
  for (int64_t round = 0; round < share; round += kRound) {
    const int64_t round_end = std::min(end, begin + round + kRound);
    BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("checking ids", [&]() -> absl::Status {
      for (int64_t at = begin + round; at < round_end; at += kBlock) {
        BOWLINE_RETURN_IF_ERROR(file.CheckTokens(at, std::min(kBlock, round_end - at)));
        progress(at - begin, share);
      }
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ScanTokens(const TokenDataset& dataset, int64_t vocabulary, const std::string& cache, Agreement& agreement,
                        ScanProgress progress) {
  for (const DatasetPart& part : dataset.Parts()) {
    const TokenDataset& file = *part.dataset;
    if (file.size() == 0 || (!file.MayBeOutside() && !file.HasIndex())) continue;
    const KeptScan kept(cache, file);
    BOWLINE_ASSIGN_OR_RETURN(const bool is_new, agreement.AnyOf(!kept.Covers(vocabulary)));
    if (!is_new) continue;
    BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("checking an index", [&] { return file.CheckIndex(); }));
    if (file.MayBeOutside()) BOWLINE_RETURN_IF_ERROR(ScanFile(file, agreement, progress));
    kept.Keep(vocabulary);
  }
  return absl::OkStatus();
}

}  // namespace bowline
