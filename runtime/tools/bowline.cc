// bowline: `bowline VERB ARGS` becomes `bowline-VERB ARGS`, found beside this executable or on PATH; `bowline
// completion SHELL` prints what the flags of all of them are completed with.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "bowline_version.h"
#include "runtime/base/status.h"
#include "runtime/tools/completion.h"
#include "runtime/tools/find_tool.h"
#include "runtime/tools/flag_list.h"
#include "runtime/tools/tool_support.h"
#include "runtime/tools/unknown_words.h"

namespace bowline {
namespace {

namespace fs = std::filesystem;

constexpr char kTool[] = "bowline";
constexpr char kPrefix[] = "bowline-";

// Verbs of the tools that say their flags.
constexpr absl::string_view kAnswers[] = {"check", "compile", "data", "inspect", "opt", "run", "serve", "translate"};

// Verb to executable, of everything named bowline-VERB. Folders that cannot be read have no tools.
std::map<std::string, std::string> FindTools() {
  std::map<std::string, std::string> tools;
  for (const fs::path& folder : ToolFolders()) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      absl::string_view verb = name;
      std::error_code status_error;
      if (absl::ConsumePrefix(&verb, kPrefix) && !verb.empty() && it->is_regular_file(status_error) &&
          ::access(it->path().c_str(), X_OK) == 0) {
        tools.emplace(std::string(verb), it->path().string());
      }
    }
  }
  return tools;
}

std::string HelpText(const std::map<std::string, std::string>& tools) {
  std::string text =
      "Compiles, checks, runs and inspects plans.\n\n"
      "Usage: bowline VERB [ARGUMENTS]     the same as bowline-VERB [ARGUMENTS]\n"
      "       bowline help [VERB]          this list, or the help of one verb\n"
      "       bowline completion SHELL     completion of verbs, flags and values for bash or zsh\n\n";
  if (tools.empty()) return absl::StrCat(text, "No tool named bowline-VERB is beside this executable or on PATH.\n");
  size_t width = 0;
  for (const auto& [verb, path] : tools) width = std::max(width, verb.size());
  absl::StrAppend(&text, "Verbs:\n");
  for (const auto& [verb, path] : tools) {
    absl::StrAppend(&text, "  ", verb, std::string(width - verb.size() + 2, ' '), path, "\n");
  }
  return text;
}

// "bowline data tokenize": the command of a tool that the user takes for a verb; empty where there is none.
std::string CommandOfTool(const std::string& verb, const std::map<std::string, std::string>& tools) {
  const auto data = tools.find("data");
  const std::vector<fs::path> folders = ToolFolders();
  if (data == tools.end() || folders.empty() || fs::path(data->second).parent_path() != folders.front()) return "";
  for (const CommandInfo& command : FlagsFromText(AskForFlags(data->second))) {
    if (!command.name.empty() && command.name == verb) return absl::StrCat("bowline data ", verb);
  }
  return "";
}

absl::Status UnknownVerb(const std::string& verb, const std::map<std::string, std::string>& tools) {
  const bool is_flag = verb[0] == '-';
  if (tools.empty() && !is_flag) {
    return absl::InvalidArgumentError(
        absl::StrCat("no tool for '", verb, "': no file named bowline-VERB is beside this executable or on PATH; ",
                     "build them with 'make build'"));
  }
  std::vector<std::string> words = {is_flag ? "--help" : "help", is_flag ? "--version" : "completion"};
  for (const auto& [name, path] : tools) {
    if (!is_flag) words.push_back(name);
  }
  if (const std::string command = is_flag ? "" : CommandOfTool(verb, tools); !command.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown verb '", verb, "'; it is a command: '", command, "'"));
  }
  const std::string nearest = Suggest(verb, words, "");
  return absl::InvalidArgumentError(absl::StrCat("unknown ", is_flag ? "flag" : "verb", " '", verb.substr(0, 200),
                                                 "'; ", nearest, nearest.empty() ? "" : ", and ",
                                                 "'bowline help' lists all"));
}

// Tools beside this executable say their flags; of others, which may be anybody's, the names are enough.
absl::Status PrintCompletion(const std::vector<std::string>& arguments,
                             const std::map<std::string, std::string>& tools) {
  if (arguments.size() != 1) {
    return absl::InvalidArgumentError("of which shell? 'bowline completion bash' or 'bowline completion zsh'");
  }
  const std::vector<fs::path> folders = ToolFolders();
  FlagsOfVerbs verbs;
  for (const auto& [verb, path] : tools) {
    // Others, as benchmarks, would take the flag for a mistake, or do their work.
    const bool is_own = !folders.empty() && fs::path(path).parent_path() == folders.front() &&
                        std::find(std::begin(kAnswers), std::end(kAnswers), verb) != std::end(kAnswers);
    verbs[verb] = is_own ? FlagsFromText(AskForFlags(path)) : std::vector<CommandInfo>();
  }
  BOWLINE_ASSIGN_OR_RETURN(const std::string script, CompletionScript(arguments[0], verbs));
  return PrintToStdout(script);
}

// Becomes the tool; returns only when that fails. The tool's exit code is thereby the command's.
absl::Status Become(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  argv.push_back(const_cast<char*>(path.c_str()));
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  return ErrnoToStatus(errno, absl::StrCat("cannot start '", path, "'"));
}

absl::Status Dispatch(const std::vector<std::string>& arguments) {
  const std::map<std::string, std::string> tools = FindTools();
  if (arguments.empty()) {
    return absl::InvalidArgumentError("which verb? 'bowline help' lists them");
  }
  std::string verb = arguments[0];
  std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (verb == "--version") {
    return PrintToStdout(absl::StrCat("bowline ", BOWLINE_VERSION, "\ncommit   ", BOWLINE_COMMIT, "\nLLVM     ",
                                      BOWLINE_LLVM, "\ntargets  ", BOWLINE_TARGETS, "\n"));
  }
  if (verb == "help" || verb == "--help" || verb == "-h") {
    if (rest.empty()) return PrintToStdout(HelpText(tools));
    verb = rest[0];
    rest = {"--help"};
  }
  const auto tool = tools.find(verb);
  if (verb == "completion" && tool == tools.end()) return PrintCompletion(rest, tools);
  if (tool == tools.end()) return UnknownVerb(verb, tools);
  return Become(tool->second, rest);
}

// Catches exceptions of the standard library: out of memory, a name that no path can hold.
int Main(int argc, char** argv) {
  try {
    return ReportStatus(kTool, Dispatch({argv + std::min(argc, 1), argv + argc}));
  } catch (const std::exception& error) {
    return ReportStatus(kTool, absl::InternalError(error.what()));
  }
}

}  // namespace
}  // namespace bowline

int main(int argc, char** argv) { return bowline::Main(argc, argv); }
