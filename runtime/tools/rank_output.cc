#include "runtime/tools/rank_output.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bowline {
namespace {

// A line without an end is passed on in parts of this size.
constexpr size_t kLongestLine = size_t{1} << 20;

void Print(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

bool RankOutput::Read(int rank, int descriptor) {
  std::array<char, 65536> bytes;
  std::string& pending = pending_[static_cast<size_t>(rank)];
  while (true) {
    const ssize_t size = ::read(descriptor, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EAGAIN;
    if (size == 0) return false;
    pending.append(bytes.data(), static_cast<size_t>(size));
    size_t begin = 0;
    for (size_t end = 0; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Take(rank, absl::string_view(pending).substr(begin, end - begin));
    }
    pending.erase(0, begin);
    if (pending.size() < kLongestLine) continue;
    Take(rank, pending);
    pending.clear();
  }
}

void RankOutput::Take(int rank, absl::string_view line) {
  if (!absl::StartsWith(line, absl::StrCat(tool_, ": error: ")))
    return Print(absl::StrCat("[rank ", rank, "] ", line, "\n"));
  const auto same = [&](const Error& error) { return error.text == line; };
  auto found = std::find_if(errors_.begin(), errors_.end(), same);
  if (found == errors_.end()) found = errors_.insert(found, {std::string(line), {}});
  found->ranks.push_back(rank);
}

bool RankOutput::HasError(int rank) const {
  return std::any_of(errors_.begin(), errors_.end(), [&](const Error& error) {
    return std::find(error.ranks.begin(), error.ranks.end(), rank) != error.ranks.end();
  });
}

void RankOutput::Say(absl::string_view text) { Print(absl::StrCat(tool_, ": ", text, "\n")); }

void RankOutput::Finish(bool errors) {
  for (size_t rank = 0; rank < pending_.size(); ++rank) {
    if (!pending_[rank].empty()) Take(static_cast<int>(rank), pending_[rank]);
    pending_[rank].clear();
  }
  if (!errors) errors_.clear();
  for (Error& error : errors_) {
    std::sort(error.ranks.begin(), error.ranks.end());
    Print(absl::StrCat("[", error.ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(error.ranks, ", "), "] ",
                       error.text, "\n"));
  }
  errors_.clear();
}

}  // namespace bowline
