// Generation plans of bowline-run.

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/comm/agreement.h"
#include "runtime/tools/profile_table.h"
#include "runtime/tools/run_options.h"
#include "runtime/tools/stop_signals.h"
#include "runtime/tools/token_printer.h"
#include "runtime/tools/tool_support.h"
#include "runtime/tools/trace_log.h"
#include "runtime/train/generator.h"

namespace bowline {
namespace {

// The model's tokens are bytes, as far as can be told: --prompt and --print text would mean nothing for others.
absl::Status RequireBytes(const Generator& generator, const std::string& weights) {
  // Bytes, and some ids for the begin and the end of a text.
  constexpr int64_t kMostOfBytes = 256 + 64;
  std::string why;
  std::error_code ignored;
  const std::string tokenizer = absl::StrCat(weights, "/tokenizer.json");
  if (std::filesystem::exists(tokenizer, ignored)) {
    why = absl::StrCat("its tokenizer is '", tokenizer, "'");
  } else if (generator.vocabulary() > kMostOfBytes) {
    why = absl::StrCat("its vocabulary has ", generator.vocabulary(), " ids");
  } else {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the tokens of this model are no bytes: ", why,
      "; make ids with its tokenizer, and give them as --prompt-tokens 1,2,3 with --print tokens for ids as output"));
}

std::vector<int32_t> PromptOf(const RunOptions& options) {
  std::vector<int32_t> prompt = options.prompt_tokens;
  for (const char byte : options.prompt) prompt.push_back(static_cast<uint8_t>(byte));
  return prompt;
}

}  // namespace

absl::StatusOr<RunEnd> RunGeneration(LoadedPlan plan, const RunOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, CreateSession(std::move(plan), options));
  BOWLINE_ASSIGN_OR_RETURN(Generator generator, Generator::Create(session.get()));
  BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(options.group, options.timeout()));
  agreement.SetNotes([&](absl::string_view note) { Note(options, note); });
  const bool prints_ids = options.print.empty() ? options.prompt.empty() : options.print == "tokens";
  if (!options.prompt.empty() || !prints_ids) BOWLINE_RETURN_IF_ERROR(RequireBytes(generator, options.weights));
  BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("loading weights", [&] { return SetStates(*session, options); }));
  const std::vector<int32_t> prompt = PromptOf(options);
  const auto prompted = static_cast<int64_t>(prompt.size());
  if (prompted > generator.context() || options.max_new_tokens > generator.context() - prompted + 1) {
    Note(options, absl::StrCat("the text becomes longer than the ", generator.context(), " tokens that the plan sees (",
                               "--seq): the next token then follows from the last ", generator.context(), " alone"));
  }
  const std::atomic<bool>& stop = CatchStopSignals();
  bool echo = options.echo;
  TokenPrinter printer =
      prints_ids ? TokenPrinter::OfIds()
                 : TokenPrinter::OfText([](int32_t token) { return std::string(1, static_cast<char>(token)); });
  int64_t printed = 0;
  const auto print = [&](int32_t token) -> absl::Status {
    ++printed;
    if (std::exchange(echo, false)) {
      for (const int32_t of_prompt : prompt) BOWLINE_RETURN_IF_ERROR(printer.Print(of_prompt));
    }
    BOWLINE_RETURN_IF_ERROR(printer.Print(token));
    // Nobody reads the text.
    if (StdoutIsClosed()) RequestStop();
    return absl::OkStatus();
  };
  const GenerateOptions generate = {options.max_new_tokens, options.temperature, options.seed, !prints_ids};
  const absl::Status status = generator.Generate(prompt, generate, print, stop, &agreement);
  BOWLINE_RETURN_IF_ERROR(printer.Finish());
  BOWLINE_RETURN_IF_ERROR(status);
  BOWLINE_ASSIGN_OR_RETURN(const bool signalled, agreement.AnyOf(StopSignalCame()));
  // Rank 0 alone prints.
  BOWLINE_ASSIGN_OR_RETURN(const bool cut_short,
                           agreement.AnyOf(agreement.rank() == 0 && printed < options.max_new_tokens));
  if (options.trace_log != nullptr) AddTrace(*session, *options.trace_log);
  if (options.profile) absl::FPrintF(stderr, "%s", ProfileTable(session->Profile()));
  return signalled && cut_short ? RunEnd::kStopped : RunEnd::kDone;
}

}  // namespace bowline
