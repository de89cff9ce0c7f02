//===- bowline-inspect.cpp - the contents of a plan -----------------------===//

#include "checker/CommunicationDescription.h"
#include "checker/JsonText.h"
#include "checker/PlanDescription.h"
#include "checker/PlanPicture.h"
#include "checker/PredictedTimeline.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/output_files.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/view/command_trace.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"
#include "runtime/tools/tool_support.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace bowline {
namespace {

using Json = nlohmann::ordered_json;

/// The arguments of the command line.
struct Request {
  std::string file, about, trace, picture, entry;
  std::vector<std::string> links;
  bool memory = false, kernels = false, json = false, why = false;
};

/// The entry that is asked for; else the training step, else the plan's first one.
std::string chosenEntry(const fbs::Plan &plan, const std::string &entry) {
  const fbs::Entry *step = FindEntry(plan, fbs::EntryKind::TrainStep);
  const fbs::Entry *usual = step || plan.entries()->size() == 0 ? step : plan.entries()->Get(0);
  return entry.empty() && usual ? usual->name()->str() : entry;
}

/// When commands would run, by the compiler's cost model, on one rank of each role.
absl::Status writeTrace(const fbs::Plan &plan, const Request &request) {
  const Timeline timeline(plan);
  BOWLINE_ASSIGN_OR_RETURN(const auto model, costModelOf(plan, request.links));
  BOWLINE_ASSIGN_OR_RETURN(const auto predicted, predictTimeline(timeline, chosenEntry(plan, request.entry), model));
  ChromeTrace trace;
  for (uint32_t role = 0; role < predicted.size(); ++role) {
    uint32_t rank = 0;
    while (RoleOf(plan, rank) != role)
      ++rank;
    CommandTrace commands(plan, rank, trace);
    for (const PredictedCommand &command : predicted[role])
      commands.Add(0, command.site.entry, command.site.call, command.site.command, 1e6 * command.begin,
                   1e6 * (command.end - command.begin));
  }
  return Annotate(trace.Write(request.trace), "--trace");
}

/// The same, and the memory over that time, as a picture.
absl::Status writePicture(const fbs::Plan &plan, const Request &request) {
  const Timeline timeline(plan);
  BOWLINE_ASSIGN_OR_RETURN(const auto model, costModelOf(plan, request.links));
  BOWLINE_ASSIGN_OR_RETURN(const std::string picture, drawPlan(timeline, chosenEntry(plan, request.entry), model));
  return Annotate(WriteFileAtomically(request.picture, picture), "--svg");
}

absl::Status writeFiles(const fbs::Plan &plan, const Request &request) {
  if (!request.picture.empty())
    BOWLINE_RETURN_IF_ERROR(writePicture(plan, request));
  return request.trace.empty() ? absl::OkStatus() : writeTrace(plan, request);
}

absl::Status run(const Request &request) {
  const bool writes = !request.trace.empty() || !request.picture.empty();
  if (!writes && (!request.entry.empty() || !request.links.empty()))
    return absl::InvalidArgumentError(
        absl::StrCat(request.entry.empty() ? "--link" : "--entry", " requires --trace or --svg"));
  BOWLINE_RETURN_IF_ERROR(
      CheckOutputs({{"the plan", request.file}}, {{"--trace", request.trace}, {"--svg", request.picture}}));
  BOWLINE_ASSIGN_OR_RETURN(const LoadedPlan plan, LoadedPlan::FromFile(request.file));
  if (writes)
    return Annotate(writeFiles(plan.plan(), request), absl::StrCat("'", request.file, "'"));
  if (request.why || !request.about.empty()) {
    const Json communication = describeCommunication(plan.plan(), {request.about, request.about.empty()});
    return PrintToStdout(request.json ? json_text::dump(communication, 2) + "\n"
                                      : layOutCommunication(communication, !request.about.empty()));
  }
  if (request.kernels) {
    auto description = describeKernels(plan);
    if (!description.ok())
      return Annotate(description.status(), absl::StrCat("'", request.file, "'"));
    return PrintToStdout(request.json ? json_text::dump(*description, 2) + "\n"
                                      : layOutKernels((*description)["kernels"]));
  }
  const Json description = describePlan(plan, request.memory);
  return PrintToStdout(request.json ? json_text::dump(description, 2) + "\n" : layOutPlan(description, request.memory));
}

} // namespace
} // namespace bowline

int main(int argc, char **argv) {
  bowline::PrepareSignals("bowline-inspect");
  CLI::App app("Shows the contents of a plan: header, entries with their ports, segments, kernels, buffers.",
               "bowline-inspect");
  bowline::Request request;
  app.add_option("plan", request.file, "the plan, as bowline-compile wrote it")->required();
  auto *memoryFlag = app.add_flag("--memory", request.memory,
                                  "show live bytes over each entry's commands and the largest tensors at the peak");
  auto *kernelsFlag = app.add_flag("--kernels", request.kernels,
                                   "show of each kernel its arguments and how its code is launched; of code for GPUs "
                                   "also registers, stack (which holds spilled registers) and shared memory")
                          ->excludes(memoryFlag);
  app.add_flag("--why", request.why,
               "show why ranks communicate: the purpose, how often, and the bytes that a rank sends")
      ->excludes(memoryFlag)
      ->excludes(kernelsFlag);
  app.add_option(
         "--about", request.about,
         "as --why, one by one: communications with TEXT in their kind, their tensors, their source or their purpose")
      ->type_name("TEXT")
      ->excludes(memoryFlag)
      ->excludes(kernelsFlag);
  auto *traceOption = app.add_option(
      "--trace", request.trace,
      "write when commands would run, as the cost model says, for ui.perfetto.dev: one rank of each role is a "
      "process, its streams are threads");
  auto *picture = app.add_option(
      "--svg", request.picture,
      "draw the same as a picture: a row for each role and stream, in the colours of forward, backward, update and "
      "communication, with the share of idle time; below, the live bytes of each role over that time");
  app.add_option("--entry", request.entry,
                 "with --trace or --svg: the entry [the training step, else the plan's first]");
  app.add_option("--link", request.links,
                 "with --trace or --svg: the link along an axis, or along all, as bowline run emulates it: "
                 "[AXIS:]bandwidth=10GB/s,latency=5us [bandwidth=1GB/s,latency=20us]")
      ->allow_extra_args(false);
  app.add_flag("--json", request.json, "print one JSON object");
  for (const char *printed : {"--memory", "--kernels", "--why", "--about", "--json"}) {
    traceOption->excludes(printed);
    picture->excludes(printed);
  }
  int exitCode = 0;
  if (!bowline::ParseCommandLine(app, argc, argv, &exitCode))
    return exitCode;
  return bowline::ReportStatus("bowline-inspect", bowline::run(request));
}
