#include "runtime/tools/flag_list.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/file_descriptor.h"

namespace bowline {
namespace {

constexpr absl::string_view kFirstLine = "bowline flags 1";

// Of a range of whole numbers, so many are offered at most.
constexpr int64_t kMostNumbers = 16;

// The choices in the description of a value, as help prints it: "TEXT:{adamw,sgd}", or "INT in [0 - 3]".
std::vector<std::string> ChoicesOf(absl::string_view type) {
  const size_t open = type.find('{'), close = type.find('}');
  if (open != type.npos && close != type.npos && open < close) {
    return absl::StrSplit(type.substr(open + 1, close - open - 1), ',', absl::SkipEmpty());
  }
  std::vector<std::string> numbers;
  const size_t range = type.find("INT in [");
  if (range == type.npos) return numbers;
  const std::vector<absl::string_view> ends =
      absl::StrSplit(type.substr(range + 8, type.find(']', range) - range - 8), " - ");
  int64_t first = 0, last = 0;
  if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &first) || !absl::SimpleAtoi(ends[1], &last)) return numbers;
  if (first < 0 || last - first >= kMostNumbers) return numbers;
  for (int64_t number = first; number <= last; ++number) numbers.push_back(absl::StrCat(number));
  return numbers;
}

void AddOptions(const CLI::App& app, CommandInfo& command) {
  for (const CLI::Option* option : app.get_options()) {
    FlagInfo flag;
    for (const std::string& name : option->get_lnames()) flag.names.push_back(absl::StrCat("--", name));
    for (const std::string& name : option->get_snames()) flag.names.push_back(absl::StrCat("-", name));
    flag.takes_value = option->get_items_expected_max() > 0;
    if (flag.takes_value) flag.choices = ChoicesOf(option->get_type_name());
    flag.description = option->get_description();
    if (!flag.names.empty()) {
      command.flags.push_back(std::move(flag));
    } else if (command.choices.empty()) {
      command.choices = std::move(flag.choices);
    }
  }
}

// Adds a command with the options of its groups, and then the commands in it.
void AddCommand(const CLI::App& app, std::vector<CommandInfo>& commands) {
  CommandInfo command;
  if (!commands.empty()) {
    command.name = app.get_name();
    command.description = app.get_description();
  }
  AddOptions(app, command);
  const std::vector<const CLI::App*> inside = app.get_subcommands({});
  for (const CLI::App* group : inside) {
    if (group->get_name().empty()) AddOptions(*group, command);
  }
  commands.push_back(std::move(command));
  for (const CLI::App* other : inside) {
    if (!other->get_name().empty()) AddCommand(*other, commands);
  }
}

// A description as one field of a line.
std::string OneLine(std::string text) {
  for (char& c : text) {
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace

std::vector<CommandInfo> DescribeCommands(const CLI::App& app) {
  std::vector<CommandInfo> commands;
  AddCommand(app, commands);
  return commands;
}

std::string FlagsToText(const std::vector<CommandInfo>& commands) {
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const CommandInfo& command : commands) {
    absl::StrAppend(&text, "command\t", command.name, "\t", absl::StrJoin(command.choices, " "), "\t",
                    OneLine(command.description), "\n");
    for (const FlagInfo& flag : command.flags) {
      absl::StrAppend(&text, flag.takes_value ? "value\t" : "flag\t", absl::StrJoin(flag.names, " "), "\t",
                      absl::StrJoin(flag.choices, " "), "\t", OneLine(flag.description), "\n");
    }
  }
  return text;
}

std::vector<CommandInfo> FlagsFromText(absl::string_view text) {
  std::vector<CommandInfo> commands;
  if (!absl::ConsumePrefix(&text, kFirstLine)) return commands;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    if (fields.size() != 4) return {};
    const std::vector<std::string> names = absl::StrSplit(fields[1], ' ', absl::SkipEmpty());
    const std::vector<std::string> choices = absl::StrSplit(fields[2], ' ', absl::SkipEmpty());
    if (fields[0] == "command") {
      commands.push_back({std::string(fields[1]), std::string(fields[3]), {}, choices});
    } else if (!commands.empty() && (fields[0] == "flag" || fields[0] == "value") && !names.empty()) {
      commands.back().flags.push_back({names, fields[0] == "value", choices, std::string(fields[3])});
    } else {
      return {};
    }
  }
  return commands;
}

std::string AskForFlags(const std::string& tool) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0 && ::dup2(null, STDIN_FILENO) >= 0 && ::dup2(null, STDERR_FILENO) >= 0 &&
        ::dup2(to.get(), STDOUT_FILENO) >= 0) {
      ::execl(tool.c_str(), tool.c_str(), kPrintFlags, nullptr);
    }
    ::_exit(EXIT_FAILURE);
  }
  to.Close();  // so that the child's end is the only one
  std::string text;
  char buffer[4096];
  for (ssize_t count = 0; child > 0 && (count = ::read(from.get(), buffer, sizeof(buffer))) != 0;) {
    if (count > 0) text.append(buffer, static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) break;
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : "";
}

}  // namespace bowline
