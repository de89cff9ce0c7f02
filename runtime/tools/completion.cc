#include "runtime/tools/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime/tools/unknown_words.h"

namespace bowline {
namespace {

// Verbs that are no tools.
constexpr const char* kOwnVerbs[] = {"completion", "help"};
constexpr const char* kShells[] = {"bash", "zsh"};

// `text` as one word of a shell.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string QuotedWords(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ", [](std::string* out, const std::string& word) { out->append(Quoted(word)); });
}

// "data tokenize": how the scripts name a command.
std::string PathOf(const std::string& verb, const CommandInfo& command) {
  return command.name.empty() ? verb : absl::StrCat(verb, " ", command.name);
}

std::vector<std::string> VerbsOf(const FlagsOfVerbs& verbs) {
  std::vector<std::string> names(std::begin(kOwnVerbs), std::end(kOwnVerbs));
  for (const auto& [verb, commands] : verbs) names.push_back(verb);
  return names;
}

// Beginnings of a flag's description, which stand beside it in a list.
std::string Short(absl::string_view description) {
  constexpr size_t kMost = 72;
  const absl::string_view clause = description.substr(0, description.find_first_of(";\n"));
  return clause.size() <= kMost ? std::string(clause)
                                : absl::StrCat(clause.substr(0, clause.rfind(' ', kMost)), " ...");
}

// Shell functions that answer questions about a command: its commands, its flags, and the possible values. Both shells
// read them. They set the array `reply`, and fail where there is nothing to say.
std::string Tables(const FlagsOfVerbs& verbs, bool describes) {
  std::string commands, flags, values, choices;
  const auto add_case = [](std::string& table, const std::string& pattern, const std::string& words) {
    absl::StrAppend(&table, "    ", pattern, ") reply=(", words, ") ;;\n");
  };
  for (const auto& [verb, described] : verbs) {
    std::vector<std::string> names;
    for (const CommandInfo& command : described) {
      if (!command.name.empty()) names.push_back(command.name);
      const std::string path = PathOf(verb, command);
      std::vector<std::string> words;
      for (const FlagInfo& flag : command.flags) {
        std::vector<std::string> patterns;
        for (const std::string& name : flag.names) {
          words.push_back(describes ? absl::StrCat(name, ":", Short(flag.description)) : name);
          patterns.push_back(Quoted(absl::StrCat(path, " ", name)));
        }
        if (!flag.takes_value) continue;
        add_case(values, absl::StrJoin(patterns, "|"), "");
        if (!flag.choices.empty()) add_case(choices, absl::StrJoin(patterns, "|"), QuotedWords(flag.choices));
      }
      add_case(flags, Quoted(path), QuotedWords(words));
      if (!command.choices.empty()) add_case(choices, Quoted(path), QuotedWords(command.choices));
    }
    if (!names.empty()) add_case(commands, Quoted(verb), QuotedWords(names));
  }
  add_case(commands, "help", QuotedWords(VerbsOf(verbs)));
  add_case(commands, "completion", QuotedWords({std::begin(kShells), std::end(kShells)}));
  std::string text;
  for (const auto& [name, table] : {std::pair{"commands", commands}, std::pair{"flags", flags},
                                    std::pair{"takes_value", values}, std::pair{"choices", choices}}) {
    absl::StrAppend(&text, "_bowline_", name, "() {\n  reply=()\n  case \"$*\" in\n", table, "    *) return 1 ;;\n",
                    "  esac\n}\n\n");
  }
  return text;
}

// The names of all tools, for the command that ties a function to them.
std::string ToolNames(const FlagsOfVerbs& verbs) {
  std::string names = "bowline";
  for (const auto& [verb, commands] : verbs) absl::StrAppend(&names, " bowline-", verb);
  return names;
}

std::string Bash(const FlagsOfVerbs& verbs) {
  return absl::StrCat(R"(# Completion of bowline, as `bowline completion bash` prints it. To use it:
#   source <(bowline completion bash)

)",
                      Tables(verbs, /*describes=*/false),
                      R"(_bowline_match() { # WORD: the words of `reply` that begin with it
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "${reply[*]}" -- "$1"))
}

_bowline_files() {
  compopt -o filenames 2>/dev/null
  local IFS=$'\n'
  COMPREPLY=($(compgen -f -- "$1"))
}

_bowline() {
  local word=${COMP_WORDS[COMP_CWORD]} flag='' path=${COMP_WORDS[0]##*/} first=1 at
  local -a reply
  COMPREPLY=()
  if [[ $path == bowline ]]; then
    if ((COMP_CWORD == 1)); then
      reply=()",
                      QuotedWords(VerbsOf(verbs)), R"()
      _bowline_match "$word"
      return
    fi
    path=${COMP_WORDS[1]} first=2
  else
    path=${path#bowline-}
  fi
  if _bowline_commands "$path"; then
    for ((at = first; at < COMP_CWORD; ++at)); do
      if [[ " ${reply[*]} " == *" ${COMP_WORDS[at]} "* ]]; then
        path="$path ${COMP_WORDS[at]}"
        reply=()
        break
      fi
    done
    if ((${#reply[@]} > 0)) && [[ $word != -* ]]; then
      _bowline_match "$word"
      return
    fi
  fi
  # Bash takes --flag=value for three words.
  flag=${COMP_WORDS[COMP_CWORD - 1]}
  if [[ $word == '=' ]]; then
    word=''
  elif [[ $flag == '=' ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if _bowline_takes_value "$path $flag"; then
    if _bowline_choices "$path $flag"; then _bowline_match "$word"; else _bowline_files "$word"; fi
  elif [[ $word == -* ]]; then
    if _bowline_flags "$path"; then _bowline_match "$word"; fi
  elif _bowline_choices "$path"; then
    _bowline_match "$word"
  else
    _bowline_files "$word"
  fi
}

complete -F _bowline )",
                      ToolNames(verbs), "\n");
}

std::string Zsh(const FlagsOfVerbs& verbs) {
  return absl::StrCat("#compdef ", ToolNames(verbs), R"(
# Completion of bowline, as `bowline completion zsh` prints it. To use it, behind `compinit` in ~/.zshrc:
#   source <(bowline completion zsh)
# or write it to a file _bowline in a folder of $fpath.

)",
                      Tables(verbs, /*describes=*/true), R"(_bowline() {
  local name=${words[1]:t} verb=${${words[1]:t}#bowline-} first=2 flag at tool
  local -a reply
  if [[ $name == bowline ]]; then
    if ((CURRENT == 2)); then
      compadd -- )",
                      QuotedWords(VerbsOf(verbs)), R"(
      return
    fi
    verb=${words[2]} first=3
  fi
  tool=$verb
  if _bowline_commands "$tool"; then
    for ((at = first; at < CURRENT; ++at)); do
      if ((${reply[(Ie)${words[at]}]})); then
        tool="$tool ${words[at]}"
        reply=()
        break
      fi
    done
    if ((${#reply} > 0)) && [[ ${words[CURRENT]} != -* ]]; then
      compadd -a reply
      return
    fi
  fi
  if [[ ${words[CURRENT]} == --*=* ]]; then
    flag=${words[CURRENT]%%=*}
    compset -P '*='
  else
    flag=${words[CURRENT - 1]}
  fi
  if _bowline_takes_value "$tool $flag"; then
    if _bowline_choices "$tool $flag"; then compadd -a reply; else _files; fi
  elif [[ ${words[CURRENT]} == -* ]]; then
    if _bowline_flags "$tool"; then _describe -o flag reply; fi
  elif _bowline_choices "$tool"; then
    compadd -a reply
  else
    _files
  fi
}

if [[ $funcstack[1] == _bowline ]]; then
  _bowline "$@"
else
  compdef _bowline )",
                      ToolNames(verbs), "\nfi\n");
}

}  // namespace

absl::StatusOr<std::string> CompletionScript(absl::string_view shell, const FlagsOfVerbs& verbs) {
  if (shell == "bash") return Bash(verbs);
  if (shell == "zsh") return Zsh(verbs);
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no completion for the shell '", shell.substr(0, 200), "'; the nearest one is '",
      NearestWord(shell, {std::begin(kShells), std::end(kShells)}), "', of ", absl::StrJoin(kShells, " and ")));
}

}  // namespace bowline
