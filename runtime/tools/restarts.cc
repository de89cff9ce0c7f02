#include "runtime/tools/restarts.h"

#include <sys/stat.h>

#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/small_file.h"
#include "runtime/base/status.h"
#include "runtime/tools/stop_signals.h"
#include "runtime/train/checkpoint.h"

namespace bowline {
namespace {

// The file that names the checkpoint that was saved last.
struct Latest {
  std::string name;   // "step-00000020"; empty without a file
  std::string stamp;  // another one after each save, also of the same step
};

Latest ReadLatest(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kLatestFile);
  Latest latest;
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return latest;
  latest.name = FirstLineOf(path);
  latest.stamp = absl::StrCat(latest.name, " ", info.st_ino, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
  return latest;
}

// "step 20"
std::string DescribeStep(const std::string& name) {
  absl::string_view digits = name;
  int64_t step = 0;
  return absl::ConsumePrefix(&digits, "step-") && absl::SimpleAtoi(digits, &step) ? absl::StrCat("step ", step) : name;
}

// Whether the same command may end otherwise the next time.
bool MayEndOtherwise(const SpawnEnd& end) {
  switch (end.exit_code) {
    case 1:
    case 2:
      return end.trained;
    case kNotFiniteExitCode:
    case kStoppedExitCode:
      return false;
    default:
      return true;
  }
}

void Say(const SpawnOptions& options, absl::string_view text) {
  const std::string line = absl::StrCat(options.tool, ": ", text, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

absl::StatusOr<int> SpawnWithRestarts(const SpawnOptions& options, const RestartOptions& restart) {
  SpawnOptions next = options;
  const Latest first = ReadLatest(restart.save);
  Latest known = first;
  int failures = 0;  // in a row
  while (true) {
    BOWLINE_ASSIGN_OR_RETURN(const SpawnEnd end, SpawnOnce(next));
    if (end.exit_code == 0 || end.asked_to_stop || end.ended_by != 0) return EndAs(end);
    if (!MayEndOtherwise(end)) {
      if (end.exit_code != kStoppedExitCode) Say(options, "note: not restarted: it would end in the same way");
      return EndAs(end);
    }
    const Latest latest = ReadLatest(restart.save);
    failures = latest.stamp == known.stamp ? failures + 1 : 1;
    if (failures > restart.restarts) {
      Say(options, absl::StrCat("error: ", end.failure, "; given up after ", failures,
                                failures == 1 ? " failure" : " failures in a row", " without a new checkpoint"));
      return EndAs(end);
    }
    known = latest;
    // Checkpoints that were there before are another run's.
    const bool saved = !latest.name.empty() && latest.stamp != first.stamp;
    if (saved) next.arguments = restart.resumed;
    Say(options, absl::StrCat("note: ", end.failure, "; restart ", failures, " of ", restart.restarts, ", from ",
                              saved ? DescribeStep(latest.name) : restart.begin));
  }
}

}  // namespace bowline
