// Generation plans of bowline-run.

#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/tools/profile_table.h"
#include "runtime/tools/run_options.h"
#include "runtime/tools/stop_signals.h"
#include "runtime/tools/tool_support.h"
#include "runtime/tools/trace_log.h"
#include "runtime/train/agreement.h"
#include "runtime/train/generator.h"
#include "runtime/train/weights.h"

namespace bowline {
namespace {

// What weights do not have starts at its initial value, where there is such a state.
absl::Status SetStates(Session& session, const RunOptions& options) {
  if (const auto init = session.FindEntry(fbs::EntryKind::Init); init.ok()) {
    BOWLINE_RETURN_IF_ERROR(session.Run(*init));
  }
  BOWLINE_ASSIGN_OR_RETURN(const LoadedWeights loaded, LoadWeights(session, options.weights));
  NoteUnused(options, loaded);
  if (!options.quiet && session.rank() == 0 && loaded.external.in_place + loaded.external.copied > 0) {
    absl::FPrintF(stderr,
                  "bowline-run: note: weights: %d bytes are read in place from the mapped files, %d were copied\n",
                  loaded.external.in_place, loaded.external.copied);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunGeneration(LoadedPlan plan, const RunOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, CreateSession(std::move(plan), options));
  BOWLINE_ASSIGN_OR_RETURN(Generator generator, Generator::Create(session.get()));
  BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(options.group));
  BOWLINE_RETURN_IF_ERROR(agreement.AllOk(SetStates(*session, options)));
  const std::atomic<bool>& stop = CatchStopSignals();
  bool echo = options.echo;
  char last = '\n';
  const auto print = [&](absl::string_view text) -> absl::Status {
    if (std::exchange(echo, false)) BOWLINE_RETURN_IF_ERROR(PrintToStdout(options.prompt));
    last = text.back();
    BOWLINE_RETURN_IF_ERROR(PrintToStdout(text));
    // Nobody reads the text.
    if (StdoutIsClosed()) RequestStop();
    return absl::OkStatus();
  };
  const GenerateOptions generate = {options.max_new_tokens, options.temperature, options.seed};
  const absl::Status status = generator.Generate(options.prompt, generate, print, stop, &agreement);
  // A redirected text stays as the model wrote it; on a terminal the prompt should not follow it.
  if (last != '\n' && ::isatty(STDOUT_FILENO) == 1) BOWLINE_RETURN_IF_ERROR(PrintToStdout("\n"));
  if (status.ok() && options.trace_log != nullptr) AddTrace(*session, *options.trace_log);
  if (status.ok() && options.profile) absl::FPrintF(stderr, "%s", ProfileTable(session->Profile()));
  return status;
}

}  // namespace bowline
