#include "runtime/tools/unknown_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/edit_distance.h"

namespace bowline {
namespace {

// Flags of other systems, with dashes for underscores, and the names that they have here. The first of several names
// that a tool takes is meant. Flags that multiply the batch, as numbers of gradient accumulation do, have no name here:
// --batch is that of all ranks and microbatches.
constexpr std::pair<absl::string_view, absl::string_view> kOfOthers[] = {
    {"--adam-beta1", "--beta1"},
    {"--adam-beta2", "--beta2"},
    {"--adam-eps", "--eps"},
    {"--adam-epsilon", "--eps"},
    {"--batch-size", "--batch"},
    {"--batch-size", "--max-batch"},
    {"--block-size", "--seq"},
    {"--block-size", "--block-tokens"},
    {"--bs", "--batch"},
    {"--checkpoint-dir", "--save"},
    {"--checkpoint-interval", "--save-every"},
    {"--clip-grad", "--clip-norm"},
    {"--context-length", "--max-context"},
    {"--context-length", "--seq"},
    {"--ctx-size", "--max-context"},
    {"--data-path", "--data"},
    {"--eval-interval", "--eval-every"},
    {"--eval-iters", "--eval-batches"},
    {"--eval-steps", "--eval-every"},
    {"--global-batch-size", "--batch"},
    {"--grad-accum", "--microbatches"},
    {"--grad-clip", "--clip-norm"},
    {"--gradient-accumulation-steps", "--microbatches"},
    {"--iterations", "--steps"},
    {"--iters", "--steps"},
    {"--kv-cache-dtype", "--kv-dtype"},
    {"--learning-rate", "--lr"},
    {"--load", "--resume"},
    {"--lr-decay-iters", "--decay-steps"},
    {"--lr-decay-style", "--lr-schedule"},
    {"--lr-scheduler", "--lr-schedule"},
    {"--lr-scheduler-type", "--lr-schedule"},
    {"--lr-warmup-iters", "--warmup-steps"},
    {"--max-grad-norm", "--clip-norm"},
    {"--max-iters", "--steps"},
    {"--max-model-len", "--max-context"},
    {"--max-num-seqs", "--max-batch"},
    {"--max-seq-length", "--seq"},
    {"--max-steps", "--steps"},
    {"--max-tokens", "--max-new-tokens"},
    {"--num-steps", "--steps"},
    {"--num-train-steps", "--steps"},
    {"--out-dir", "--save"},
    {"--output-dir", "--save"},
    {"--precision", "--dtype"},
    {"--resume-from-checkpoint", "--resume"},
    {"--save-dir", "--save"},
    {"--save-interval", "--save-every"},
    {"--save-steps", "--save-every"},
    {"--save-total-limit", "--keep"},
    {"--seq-len", "--seq"},
    {"--seq-length", "--seq"},
    {"--sequence-length", "--seq"},
    {"--tensor-model-parallel-size", "--mesh"},
    {"--tensor-parallel-size", "--mesh"},
    {"--train-iters", "--steps"},
    {"--train-steps", "--steps"},
    {"--val-data", "--eval-data"},
    {"--valid-data", "--eval-data"},
    {"--wd", "--weight-decay"},
};

// The one of `words` that other systems call `word`; null if they call none so.
const std::string* FindNameHere(absl::string_view word, const std::vector<std::string>& words) {
  std::string dashed(word);
  if (absl::StartsWith(word, "--")) std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (const auto& [theirs, ours] : kOfOthers) {
    if (theirs != dashed) continue;
    const auto found = std::find(words.begin(), words.end(), ours);
    if (found != words.end()) return &*found;
  }
  return nullptr;
}

// "--batch", "-o": the flags that `app` and its option groups take.
void AddFlags(const CLI::App& app, std::vector<std::string>& flags) {
  for (const CLI::App* group : app.get_subcommands({})) {
    if (group->get_name().empty()) AddFlags(*group, flags);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back(absl::StrCat("--", name));
    for (const std::string& name : option->get_snames()) flags.push_back(absl::StrCat("-", name));
  }
}

std::string DescribeUnknownFlag(const CLI::App& app, const std::string& word) {
  std::vector<std::string> flags;
  AddFlags(app, flags);
  if (flags.empty()) return "";
  const std::string name = word.substr(0, word.find('='));
  return absl::StrCat("unknown flag '", name.substr(0, 200), "'; ", Suggest(name, flags, "--help lists all"));
}

std::string DescribeUnknownCommand(const CLI::App& app, const std::string& word) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_name().empty()) commands.push_back(command->get_name());
  }
  if (commands.empty()) return "";
  return absl::StrCat("unknown command '", word.substr(0, 200), "'; ", Suggest(word, commands, "--help lists all"));
}

bool IsFlag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word != "--" && !absl::ascii_isdigit(word[1]) && word[1] != '.';
}

}  // namespace

const std::string& NearestWord(absl::string_view word, const std::vector<std::string>& words) {
  // Of two characters or a dash and one, everything begins so.
  constexpr size_t kLeastPrefix = 4;
  if (word.size() >= kLeastPrefix) {
    const auto longer = std::find_if(words.begin(), words.end(),
                                     [&](const std::string& known) { return absl::StartsWith(known, word); });
    if (longer != words.end()) return *longer;
  }
  return *FindNearest(std::string_view(word.data(), word.size()), words);
}

std::string Suggest(absl::string_view word, const std::vector<std::string>& words, absl::string_view otherwise) {
  if (const std::string* here = FindNameHere(word, words)) return absl::StrCat("its name here is '", *here, "'");
  const bool is_short = word.size() == 2 && word[0] == '-';  // every other one is as near
  if (is_short) return std::string(otherwise);
  const std::string& nearest = NearestWord(word, words);
  const size_t distance = EditDistance(std::string_view(word.data(), std::min<size_t>(word.size(), 256)), nearest);
  const bool is_begun = absl::StartsWith(nearest, word) || absl::EndsWith(nearest, absl::StripPrefix(word, "--"));
  // Of more edits one word is not made by mistake of the other.
  const size_t dashes = absl::StartsWith(nearest, "--") ? 2 : 0;
  const size_t letters = std::max(std::min(word.size(), nearest.size()), dashes) - dashes;
  if (!is_begun && distance > std::max<size_t>(1, letters <= 6 ? letters / 2 : letters / 3)) {
    return std::string(otherwise);
  }
  return absl::StrCat("the nearest one is '", nearest, "'");
}

std::string DescribeUnknownWord(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    if (std::string inside = DescribeUnknownWord(*command); !inside.empty()) return inside;
  }
  const std::vector<std::string> words = app.remaining();
  const auto flag = std::find_if(words.begin(), words.end(), IsFlag);
  if (flag != words.end()) return DescribeUnknownFlag(app, *flag);
  if (words.empty() || !app.get_subcommands().empty()) return "";
  return DescribeUnknownCommand(app, words.front());
}

std::string FindUnknownFlag(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  const auto flag = std::find_if(words.begin(), words.end(), IsFlag);
  return flag == words.end() ? "" : flag->substr(0, flag->find('='));
}

}  // namespace bowline
