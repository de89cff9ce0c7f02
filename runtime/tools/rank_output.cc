#include "runtime/tools/rank_output.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bowline {
namespace {

// A line without an end is passed on in parts of this size.
constexpr size_t kLongestLine = size_t{1} << 20;
// Lines of an error message beyond this are passed on as they come.
constexpr size_t kLongestMessage = size_t{1} << 20;

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
  std::vector<std::string>& errors = errors_[static_cast<size_t>(rank)];
  if (absl::StartsWith(line, absl::StrCat(tool_, ": error: "))) {
    errors.emplace_back(line);
  } else if (!errors.empty() && !absl::StartsWith(line, absl::StrCat(tool_, ": ")) &&
             errors.back().size() + line.size() < kLongestMessage) {
    // An error is the last that a process says, so that this is a line of its message.
    absl::StrAppend(&errors.back(), "\n", line);
  } else {
    Print(absl::StrCat("[rank ", rank, "] ", line, "\n"));
  }
}

bool RankOutput::HasError(int rank) const { return !errors_[static_cast<size_t>(rank)].empty(); }

void RankOutput::Say(absl::string_view text) { Print(absl::StrCat(tool_, ": ", text, "\n")); }

void RankOutput::Finish(bool errors) {
  for (size_t rank = 0; rank < pending_.size(); ++rank) {
    if (!pending_[rank].empty()) Take(static_cast<int>(rank), pending_[rank]);
    pending_[rank].clear();
  }
  struct Error {
    std::string text;
    std::vector<int> ranks;
  };
  std::vector<Error> merged;
  for (size_t rank = 0; errors && rank < errors_.size(); ++rank) {
    for (std::string& text : errors_[rank]) {
      const auto same = [&](const Error& error) { return error.text == text; };
      auto found = std::find_if(merged.begin(), merged.end(), same);
      if (found == merged.end()) found = merged.insert(found, {std::move(text), {}});
      found->ranks.push_back(static_cast<int>(rank));
    }
  }
  for (const Error& error : merged) {
    Print(absl::StrCat("[", error.ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(error.ranks, ", "), "] ",
                       error.text, "\n"));
  }
  for (std::vector<std::string>& of_rank : errors_) of_rank.clear();
}

}  // namespace bowline
