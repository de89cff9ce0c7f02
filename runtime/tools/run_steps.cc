// Plans for serving in bowline-run: one text, by the model's own tokenizer.

#include <atomic>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/comm/agreement.h"
#include "runtime/serve/chat_renderer.h"
#include "runtime/serve/model_files.h"
#include "runtime/serve/scheduler.h"
#include "runtime/serve/step_group.h"
#include "runtime/serve/step_runner.h"
#include "runtime/tools/profile_table.h"
#include "runtime/tools/run_options.h"
#include "runtime/tools/stop_signals.h"
#include "runtime/tools/token_printer.h"
#include "runtime/tools/tool_support.h"
#include "runtime/tools/trace_log.h"

namespace bowline {
namespace {

absl::StatusOr<std::string> ReadPrompt(const RunOptions& options) {
  if (options.prompt != "-") return options.prompt;
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  if (text.empty()) return absl::InvalidArgumentError("--prompt -: the standard input is empty; give a text there");
  return text;
}

// The tokens that bowline-serve would continue.
absl::StatusOr<std::vector<int32_t>> Encode(const serve::ModelFiles& files, const RunOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(std::string text, ReadPrompt(options));
  if (options.chat) {
    if (files.chat_template.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", options.weights,
                       "' has no chat template; leave out --chat, and write the prompt as the "
                       "model was trained on it"));
    }
    BOWLINE_ASSIGN_OR_RETURN(const serve::ChatRenderer render, serve::MakeChatRenderer(files));
    BOWLINE_ASSIGN_OR_RETURN(
        text, render(serve::OrderedJson::array({serve::OrderedJson{{"role", "user"}, {"content", text}}})));
  }
  return files.tokenizer->Encode(text, PromptOptions(*files.tokenizer, options.chat));
}

absl::Status CheckIds(const std::vector<int32_t>& prompt, int64_t vocabulary) {
  for (const int32_t id : prompt) {
    if (id >= vocabulary) {
      return absl::InvalidArgumentError(absl::StrCat("the prompt has the token ", id,
                                                     ", and the plan's vocabulary ends at ", vocabulary - 1,
                                                     "; give the model's own files as --weights, or ids that it has"));
    }
  }
  return absl::OkStatus();
}

// As many tokens as were asked for, or as there is room for.
absl::StatusOr<int64_t> NewTokens(const RunOptions& options, int64_t prompted, int64_t context) {
  const int64_t left = context - prompted;
  if (left < 1 || options.max_new_tokens > left) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the prompt has ", prompted, " tokens",
        options.max_new_tokens > 0 ? absl::StrCat(" and --max-new-tokens asks for ", options.max_new_tokens) : "",
        ", and the plan's context has ", context, "; shorten them, or compile with a larger --max-context"));
  }
  return options.max_new_tokens > 0 ? options.max_new_tokens : left;
}

// Gives each token of the continuation that is no end token to `write`.
absl::StatusOr<RunEnd> Continue(serve::StepRunner& runner, serve::SequenceRequest request,
                                const std::atomic<bool>& stop, absl::FunctionRef<absl::Status(int32_t)> write) {
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<serve::Scheduler> scheduler,
                           serve::Scheduler::Create(runner.shape(), {.prefix_cache = false}));
  BOWLINE_RETURN_IF_ERROR(scheduler->Submit(std::move(request)).status());
  std::vector<serve::SampledToken> sampled;
  while (!stop) {
    const std::optional<serve::StepBatch> batch = scheduler->Next();
    if (!batch.has_value()) return RunEnd::kDone;
    BOWLINE_RETURN_IF_ERROR(runner.Run(*batch, sampled));
    for (const serve::Progress& progress : scheduler->Finish(sampled)) {
      if (progress.ended == serve::FinishReason::kFailed) return serve::LogitsNotFiniteError();
      if (progress.ended != serve::FinishReason::kStop) BOWLINE_RETURN_IF_ERROR(write(progress.sampled.token));
    }
  }
  // Else nobody reads the text.
  return StopSignalCame() ? RunEnd::kStopped : RunEnd::kDone;
}

// All ranks load together, so that none takes one for gone that reads slowly.
absl::Status SetStatesTogether(Session& session, const RunOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(options.group, options.timeout()));
  agreement.SetNotes([&](absl::string_view note) { Note(options, note); });
  return agreement.AllOkAfter("loading weights", [&] { return SetStates(session, options); });
}

}  // namespace

absl::StatusOr<RunEnd> RunSteps(LoadedPlan plan, const RunOptions& options) {
  if (options.group != nullptr && options.group->rank() != 0) {
    BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, CreateSession(std::move(plan), options));
    BOWLINE_RETURN_IF_ERROR(SetStatesTogether(*session, options));
    // Rank 0 has the signal as well, and ends all.
    CatchStopSignals();
    BOWLINE_RETURN_IF_ERROR(serve::FollowSteps(*session, *options.group));
    return StopSignalCame() ? RunEnd::kStopped : RunEnd::kDone;
  }
  const bool prints_ids = options.print.empty() ? options.prompt.empty() : options.print == "tokens";
  // Ids as input and output need nothing but the weights; then nothing ends a text early.
  std::optional<serve::ModelFiles> files;
  if (!options.prompt.empty() || !prints_ids) {
    BOWLINE_ASSIGN_OR_RETURN(files, serve::OpenModelFiles(options.weights));
  }
  serve::SequenceRequest request;
  request.prompt = options.prompt_tokens;
  if (!options.prompt.empty()) {
    BOWLINE_ASSIGN_OR_RETURN(request.prompt, Encode(*files, options));
  }
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, CreateSession(std::move(plan), options));
  BOWLINE_RETURN_IF_ERROR(SetStatesTogether(*session, options));
  std::unique_ptr<serve::StepLeader> leader;
  if (options.group != nullptr && options.group->ranks() > 1) {
    BOWLINE_ASSIGN_OR_RETURN(leader,
                             serve::StepLeader::Create(*session, *options.group, {.timeout = options.timeout()}));
  }
  BOWLINE_ASSIGN_OR_RETURN(serve::StepRunner runner, serve::StepRunner::Create(session.get(), leader.get()));
  BOWLINE_RETURN_IF_ERROR(CheckIds(request.prompt, runner.vocabulary()));
  BOWLINE_ASSIGN_OR_RETURN(request.max_new_tokens,
                           NewTokens(options, static_cast<int64_t>(request.prompt.size()), runner.shape().max_context));
  request.sampling = {.temperature = static_cast<float>(options.temperature),
                      .top_k = options.top_k,
                      .top_p = static_cast<float>(options.top_p),
                      .seed = options.seed};
  if (files.has_value()) request.end_tokens = files->end_tokens;

  std::optional<StreamDecoder> decoder;
  if (!prints_ids) decoder.emplace(*files->tokenizer);
  TokenPrinter printer =
      prints_ids ? TokenPrinter::OfIds() : TokenPrinter::OfText([&](int32_t token) { return decoder->Add(token); });
  if (options.echo) {
    for (const int32_t token : request.prompt) BOWLINE_RETURN_IF_ERROR(printer.Print(token));
  }
  const absl::StatusOr<RunEnd> end =
      Continue(runner, std::move(request), CatchStopSignals(), [&](int32_t token) -> absl::Status {
        BOWLINE_RETURN_IF_ERROR(printer.Print(token));
        // Nobody reads the text.
        if (StdoutIsClosed()) RequestStop();
        return absl::OkStatus();
      });
  BOWLINE_RETURN_IF_ERROR(printer.Finish(decoder.has_value() ? decoder->Finish() : ""));
  BOWLINE_RETURN_IF_ERROR(end.status());
  if (options.trace_log != nullptr) AddTrace(*session, *options.trace_log);
  if (options.profile) absl::FPrintF(stderr, "%s", ProfileTable(session->Profile()));
  return *end;
}

}  // namespace bowline
