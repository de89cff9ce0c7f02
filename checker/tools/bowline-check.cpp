//===- bowline-check.cpp - proves a plan sound ----------------------------===//

#include "checker/PlanChecker.h"
#include "runtime/plan/plan_file.h"
#include "runtime/tools/tool_support.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace bowline {
namespace {

nlohmann::ordered_json toJson(const CheckReport::Role::Arena &arena) {
  nlohmann::ordered_json json = {{"arena_bytes", arena.bytes},
                                 {"highest_byte", arena.highestByte},
                                 {"buffers", arena.buffers},
                                 {"prepared_bytes", arena.preparedBytes}};
  for (size_t kind = 0; kind < arena.bytesByKind.size(); ++kind)
    json["bytes_by_kind"][fbs::EnumNameBufferKind(static_cast<fbs::BufferKind>(kind))] = arena.bytesByKind[kind];
  return json;
}

nlohmann::ordered_json toJson(const std::string &file, const CheckReport &report, const absl::Status &status) {
  nlohmann::ordered_json json;
  json["plan"] = file;
  json["sound"] = status.ok();
  if (!status.ok())
    json["counterexample"] = std::string(status.message());
  json["ranks"] = report.ranks;
  json["mesh"] = report.mesh;
  json["roles"] = nlohmann::ordered_json::array();
  for (const CheckReport::Role &role : report.roles) {
    // The device's space holds nearly everything, so its numbers stand directly beside the role's name.
    nlohmann::ordered_json item = {{"name", role.name}, {"states", role.states}};
    item.update(toJson(role.in(fbs::MemorySpace::Device)));
    for (const fbs::MemorySpace space : fbs::EnumValuesMemorySpace())
      if (space != fbs::MemorySpace::Device && role.in(space).buffers > 0)
        item["other_arenas"][fbs::EnumNameMemorySpace(space)] = toJson(role.in(space));
    json["roles"].push_back(std::move(item));
  }
  json["registered_kernels"] = report.registeredKernels;
  json["generated_kernels"] = report.generatedKernels;
  json["has_code"] = report.hasCode;
  json["stored_commands"] = report.storedCommands;
  json["entries"] = nlohmann::ordered_json::array();
  for (const CheckReport::Entry &entry : report.entries)
    json["entries"].push_back({{"name", entry.name},
                               {"role", entry.role},
                               {"calls", entry.calls},
                               {"launches", entry.launches},
                               {"copies", entry.copies},
                               {"communications", entry.communications},
                               {"streams", entry.streams},
                               {"states_written", entry.statesWritten}});
  json["proofs"] = nlohmann::ordered_json::array();
  for (const CheckReport::Proof &proof : report.proofs)
    json["proofs"].push_back({{"name", proof.name}, {"facts", proof.facts}, {"what", proof.what}});
  return json;
}

absl::Status run(const std::string &file, bool json) {
  BOWLINE_ASSIGN_OR_RETURN(const LoadedPlan plan, LoadedPlan::FromFile(file));
  PlanChecker checker(plan.plan());
  const absl::Status status = Annotate(checker.check(), absl::StrCat("'", file, "'"));
  // File names need not be UTF-8.
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  if (json)
    BOWLINE_RETURN_IF_ERROR(PrintToStdout(toJson(file, checker.report(), status).dump(2, ' ', false, replace) + "\n"));
  else if (status.ok())
    BOWLINE_RETURN_IF_ERROR(PrintToStdout(formatReport(checker.report()) + "sound\n"));
  return status;
}

} // namespace
} // namespace bowline

int main(int argc, char **argv) {
  bowline::PrepareSignals("bowline-check");
  CLI::App app("Proves that a plan is sound: no deadlock, no race, matching communication, bounds, aliasing, "
               "initialisation, no clobbered value, complete outputs, exact memory. See docs/checker.md.\nExit codes: "
               "0 sound, 1 the file is wrong, 2 a proof fails (with its "
               "counter-example), 3 a fault.",
               "bowline-check");
  std::string file;
  bool json = false;
  app.add_option("plan", file, "the plan, as bowline-compile wrote it")->required();
  app.add_flag("--json", json, "print the report as one JSON object");
  int exitCode = 0;
  if (!bowline::ParseCommandLine(app, argc, argv, &exitCode))
    return exitCode;
  return bowline::ReportStatus("bowline-check", bowline::run(file, json));
}
