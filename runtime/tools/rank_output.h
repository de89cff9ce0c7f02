#ifndef BOWLINE_RUNTIME_TOOLS_RANK_OUTPUT_H_
#define BOWLINE_RUNTIME_TOOLS_RANK_OUTPUT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bowline {

// The output of ranks, merged into this process's standard error: whole lines, each with "[rank 3] " before it. Error
// messages of the tool, whose name begins them, are kept until the end with the lines that follow them, and those that
// several ranks have alike are printed once, whole.
class RankOutput {
 public:
  RankOutput(absl::string_view tool, int ranks)
      : tool_(tool), pending_(static_cast<size_t>(ranks)), errors_(pending_.size()) {}

  // Takes the available bytes from the non-blocking `descriptor`. Returns false at its end.
  bool Read(int rank, int descriptor);

  // Returns whether the rank has printed an error message.
  bool HasError(int rank) const;

  // Prints a line of this process.
  void Say(absl::string_view text);

  // Prints lines that no line break ended and, if `errors`, the error messages.
  void Finish(bool errors);

 private:
  void Take(int rank, absl::string_view line);

  const std::string tool_;
  std::vector<std::string> pending_;              // the begin of an incomplete line, by rank
  std::vector<std::vector<std::string>> errors_;  // whole messages, by rank
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_TOOLS_RANK_OUTPUT_H_
