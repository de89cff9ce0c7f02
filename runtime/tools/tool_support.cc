#include "runtime/tools/tool_support.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/edit_distance.h"
#include "runtime/base/mapping_faults.h"
#include "runtime/tools/find_tool.h"
#include "runtime/tools/flag_list.h"
#include "runtime/tools/unknown_words.h"

namespace bowline {
namespace {

bool stdout_is_closed = false;

}  // namespace

void PrepareSignals(const char* tool) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  ReportMappingFaults(tool);
}

namespace {

// Words that are left over may be meant as further values of a flag that takes one each time.
std::string RepeatHint(const CLI::App& app) {
  std::string hint;
  for (const CLI::Option* option : app.get_options()) {
    const bool is_repeated = option->get_expected_max() > 1 && !option->get_allow_extra_args();
    if (!is_repeated || option->count() == 0) continue;
    absl::StrAppend(&hint, ". ", option->get_name(), " takes one value each time; repeat it for more, as in ",
                    option->get_name(), " A ", option->get_name(), " B");
  }
  return hint;
}

// Says that the compiler takes a flag which `tool` does not know, or the other way round; empty where neither is so.
std::string DescribeFlagOfOther(const std::string& tool, const CLI::App& app) {
  const bool compiles = tool == "bowline-compile";
  if (!compiles && tool != "bowline-run" && tool != "bowline-serve") return "";
  const std::string flag = FindUnknownFlag(app);
  if (flag.empty()) return "";
  const std::string other = compiles ? "bowline-run" : "bowline-compile";
  const std::string path = FindTool(other);
  if (path.empty()) return "";
  for (const CommandInfo& command : FlagsFromText(AskForFlags(path))) {
    for (const FlagInfo& known : command.flags) {
      if (std::find(known.names.begin(), known.names.end(), flag) == known.names.end()) continue;
      return absl::StrCat("unknown flag '", flag, "'; it is a flag of ", other,
                          compiles ? ": give it when the plan runs" : ": compile the plan with it");
    }
  }
  return "";
}

// Whether the word is a flag of the command, perhaps with a value behind '=', or a misspelled one.
bool IsNearlyFlag(absl::string_view word, const CLI::App& app) {
  constexpr size_t kMostEdits = 2, kLeastLetters = 4;
  if (!absl::StartsWith(word, "--")) return false;
  const std::string name(word.substr(0, word.find('=')));
  if (app.get_option_no_throw(name) != nullptr) return true;
  if (name.size() < kLeastLetters + 2) return false;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) {
      if (EditDistance(name, absl::StrCat("--", known)) <= kMostEdits) return true;
    }
  }
  return false;
}

// A shell variable that is not set gives "" within quotes; without them, the next flag is taken for the value.
// `flags_alone`: only of such flags, where other messages say more about an empty value.
std::string DescribeLostValue(const CLI::App& app, bool flags_alone = false) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& value : option->results()) {
      if (option->get_items_expected_max() == 0) continue;
      const bool is_flag = IsNearlyFlag(value, app);
      if (!is_flag && (flags_alone || !value.empty())) continue;
      return absl::StrCat(option->get_name(), is_flag ? " has the flag '" : " has an empty value", value,
                          is_flag ? "' as its value" : "", "; give one, or leave it out");
    }
  }
  for (const CLI::App* command : app.get_subcommands()) {
    if (std::string lost = DescribeLostValue(*command, flags_alone); !lost.empty()) return lost;
  }
  return "";
}

}  // namespace

bool ParseCommandLine(CLI::App& app, int argc, char** argv, int* exit_code) {
  if (argc == 2 && std::strcmp(argv[1], kPrintFlags) == 0) {
    *exit_code = ReportStatus(std::filesystem::path(argv[0]).filename().string(),
                              PrintToStdout(FlagsToText(DescribeCommands(app))));
    return false;
  }
  try {
    app.parse(argc, argv);
    const std::string lost = DescribeLostValue(app);
    if (lost.empty()) return true;
    absl::FPrintF(stderr, "%s: error: %s\nRun with --help for more information.\n",
                  std::filesystem::path(argv[0]).filename().string(), lost);
    *exit_code = 1;
    return false;
  } catch (const CLI::ParseError& error) {
    // --help and --version are no mistakes.
    if (error.get_exit_code() == 0) {
      *exit_code = app.exit(error);
      return false;
    }
    // The library has a code of its own for every mistake and a form of its own for messages; ours are the tools'.
    const std::string tool = std::filesystem::path(argv[0]).filename().string();
    std::string unknown = DescribeLostValue(app, /*flags_alone=*/true);
    if (unknown.empty()) unknown = DescribeFlagOfOther(tool, app);
    if (unknown.empty()) unknown = DescribeUnknownWord(app);
    const bool has_extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    absl::FPrintF(stderr, "%s: error: %s%s\nRun with --help for more information.\n", tool,
                  unknown.empty() ? error.what() : unknown, has_extras && unknown.empty() ? RepeatHint(app) : "");
    *exit_code = 1;
    return false;
  }
}

int ReportStatus(absl::string_view tool, const absl::Status& status) {
  if (!status.ok()) absl::FPrintF(stderr, "%s: error: %s\n", tool, status.message());
  return ExitCode(status);
}

absl::Status PrintToStdout(absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    if (errno != EPIPE) return ErrnoToStatus(errno, "cannot write to the standard output");
    stdout_is_closed = true;
  }
  return absl::OkStatus();
}

bool StdoutIsClosed() { return stdout_is_closed; }

Progress::Progress(std::string verb, uint64_t total)
    : verb_(std::move(verb)),
      total_(total),
      enabled_(::isatty(STDERR_FILENO) == 1),
      next_(std::chrono::steady_clock::now() + std::chrono::milliseconds(500)) {}

Progress::~Progress() {
  if (printed_) std::fputs("\r\033[K", stderr);
}

void Progress::Update(uint64_t done) {
  if (!enabled_ || std::chrono::steady_clock::now() < next_) return;
  next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  printed_ = true;
  if (total_ > 0) {
    absl::FPrintF(stderr, "\r\033[K%s: %.0f%%", verb_, 100.0 * static_cast<double>(done) / static_cast<double>(total_));
  } else {
    absl::FPrintF(stderr, "\r\033[K%s: %.0f MB", verb_, static_cast<double>(done) / 1e6);
  }
}

}  // namespace bowline
