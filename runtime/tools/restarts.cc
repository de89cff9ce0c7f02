#include "runtime/tools/restarts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/small_file.h"
#include "runtime/base/status.h"
#include "runtime/tools/stop_signals.h"
#include "runtime/train/checkpoint/checkpoint.h"

namespace bowline {
namespace {

// The checkpoint that was saved last.
struct Latest {
  std::string name;   // "step-00000020"; empty where nothing was saved
  int64_t step = 0;   // of the name
  std::string stamp;  // another one after each save, also of the same step
};

Latest ReadLatest(const std::string& directory) {
  Latest latest;
  latest.name = FirstLineOf(absl::StrCat(directory, "/", kLatestFile));
  // The first save may have been cut short between the checkpoint and that file.
  if (latest.name.empty()) {
    const absl::StatusOr<Checkpoint> found = Checkpoint::Open(directory);
    if (found.ok()) latest.name = std::filesystem::path(found->path()).filename().string();
  }
  if (latest.name.empty()) return latest;
  // Each save writes this file anew, and nothing else does.
  struct stat info = {};
  ::stat(absl::StrCat(directory, "/", latest.name, "/", kStateFile).c_str(), &info);
  absl::string_view digits = latest.name;
  if (!absl::ConsumePrefix(&digits, "step-") || !absl::SimpleAtoi(digits, &latest.step)) latest.step = 0;
  latest.stamp = absl::StrCat(latest.name, " ", info.st_ino, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
  return latest;
}

std::string Describe(const Latest& latest) {
  return latest.step > 0 ? absl::StrCat("step ", latest.step) : latest.name;
}

// Whether one of the checkpoints since `before` was due. A failing run saves its last step as well, and so would a run
// that can take a step between two failures for ever.
bool HasProgress(const Latest& before, const Latest& latest, int64_t save_every) {
  if (latest.stamp == before.stamp || save_every == 0) return false;
  return latest.step % save_every == 0 || latest.step / save_every != before.step / save_every;
}

// Empties the metrics of a start that saved nothing: the next one begins at step 1.
void DropMetrics(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) std::filesystem::resize_file(path, 0, ignored);
}

// Whether `path` is a pipe that no program reads: a run would wait for one.
bool IsPipeWithoutReader(const std::string& path) {
  struct stat info = {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0 || !S_ISFIFO(info.st_mode)) return false;
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  return !file.valid() && errno == ENXIO;
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
    failures = HasProgress(known, latest, restart.save_every) ? 1 : failures + 1;
    if (failures > restart.restarts) {
      Say(options, absl::StrCat("error: ", end.failure, "; given up after ", failures,
                                failures == 1 ? " failure" : " failures in a row", " without progress"));
      return EndAs(end);
    }
    if (IsPipeWithoutReader(restart.metrics)) {
      Say(options, absl::StrCat("error: ", end.failure, "; given up, as no program reads the pipe '", restart.metrics,
                                "' any more"));
      return EndAs(end);
    }
    known = latest;
    // Checkpoints that were there before are another run's.
    const bool saved = !latest.name.empty() && latest.stamp != first.stamp;
    if (saved) next.arguments = restart.resumed;
    if (!saved && end.trained) DropMetrics(restart.metrics);
    Say(options, absl::StrCat("note: ", end.failure, "; restart ", failures, " of ", restart.restarts, ", from ",
                              saved ? Describe(latest) : restart.begin));
  }
}

}  // namespace bowline
