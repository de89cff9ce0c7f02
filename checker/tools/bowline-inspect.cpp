//===- bowline-inspect.cpp - what is inside of a plan ---------------------===//

#include "checker/CommunicationDescription.h"
#include "checker/JsonText.h"
#include "checker/PlanDescription.h"
#include "checker/PredictedTimeline.h"
#include "runtime/base/output_files.h"
#include "runtime/plan/command_trace.h"
#include "runtime/plan/mesh_view.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_view.h"
#include "runtime/tools/tool_support.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace bowline {
namespace {

using Json = nlohmann::ordered_json;

/// When commands would run, by the compiler's cost model, on one rank of each role.
absl::Status writeTrace(const fbs::Plan &plan, const std::string &entry, const std::vector<std::string> &links,
                        const std::string &path) {
  const Timeline timeline(plan);
  BOWLINE_ASSIGN_OR_RETURN(const auto model, costModelOf(plan, links));
  const fbs::Entry *step = FindEntry(plan, fbs::EntryKind::TrainStep);
  const fbs::Entry *usual = step || plan.entries()->size() == 0 ? step : plan.entries()->Get(0);
  const std::string chosen = entry.empty() && usual ? usual->name()->str() : entry;
  BOWLINE_ASSIGN_OR_RETURN(const auto predicted, predictTimeline(timeline, chosen, model));
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
  return Annotate(trace.Write(path), "--trace");
}

absl::Status run(const std::string &file, bool memory, bool kernels, bool json, bool why, const std::string &about,
                 const std::string &trace, const std::string &entry, const std::vector<std::string> &links) {
  BOWLINE_RETURN_IF_ERROR(CheckOutputs({{"the plan", file}}, {{"--trace", trace}}));
  BOWLINE_ASSIGN_OR_RETURN(const LoadedPlan plan, LoadedPlan::FromFile(file));
  if (!trace.empty())
    return Annotate(writeTrace(plan.plan(), entry, links, trace), absl::StrCat("'", file, "'"));
  if (why || !about.empty()) {
    const Json communication = describeCommunication(plan.plan(), {about, about.empty()});
    return PrintToStdout(json ? json_text::dump(communication, 2) + "\n"
                              : layOutCommunication(communication, !about.empty()));
  }
  if (kernels) {
    auto description = describeKernels(plan);
    if (!description.ok())
      return Annotate(description.status(), absl::StrCat("'", file, "'"));
    return PrintToStdout(json ? json_text::dump(*description, 2) + "\n" : layOutKernels((*description)["kernels"]));
  }
  const Json description = describePlan(plan, memory);
  return PrintToStdout(json ? json_text::dump(description, 2) + "\n" : layOutPlan(description, memory));
}

} // namespace
} // namespace bowline

int main(int argc, char **argv) {
  bowline::PrepareSignals("bowline-inspect");
  CLI::App app("Shows what is inside of a plan: header, entries with their ports, segments, kernels, buffers.",
               "bowline-inspect");
  std::string file;
  std::string about;
  bool memory = false, kernels = false, json = false, why = false;
  app.add_option("plan", file, "the plan, as bowline-compile wrote it")->required();
  auto *memoryFlag = app.add_flag("--memory", memory,
                                  "show live bytes over each entry's commands and the largest tensors at the peak");
  auto *kernelsFlag = app.add_flag("--kernels", kernels,
                                   "show of each kernel its arguments and how its code is launched; of code for GPUs "
                                   "also registers, stack (which holds what was spilled) and shared memory")
                          ->excludes(memoryFlag);
  app.add_flag("--why", why, "show why ranks communicate: what for, how often, and the bytes that a rank sends")
      ->excludes(memoryFlag)
      ->excludes(kernelsFlag);
  app.add_option("--about", about,
                 "as --why, one by one: communications with TEXT in what they do, move, come from or are for")
      ->type_name("TEXT")
      ->excludes(memoryFlag)
      ->excludes(kernelsFlag);
  std::string trace, entry;
  auto *traceOption = app.add_option(
      "--trace", trace,
      "write when commands would run, as the cost model says, for ui.perfetto.dev: one rank of each role is a "
      "process, its streams are threads");
  app.add_option("--entry", entry, "with --trace: the entry [the training step, else the plan's first]")
      ->needs(traceOption);
  std::vector<std::string> links;
  app.add_option("--link", links,
                 "with --trace: the link along an axis, or along all, as bowline run emulates it: "
                 "[AXIS:]bandwidth=10GB/s,latency=5us [bandwidth=1GB/s,latency=20us]")
      ->allow_extra_args(false)
      ->needs(traceOption);
  app.add_flag("--json", json, "print one JSON object");
  for (const char *printed : {"--memory", "--kernels", "--why", "--about", "--json"})
    traceOption->excludes(printed);
  int exitCode = 0;
  if (!bowline::ParseCommandLine(app, argc, argv, &exitCode))
    return exitCode;
  return bowline::ReportStatus("bowline-inspect",
                               bowline::run(file, memory, kernels, json, why, about, trace, entry, links));
}
