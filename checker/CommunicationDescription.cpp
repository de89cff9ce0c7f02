//===- CommunicationDescription.cpp - why ranks communicate -----------------===//

#include "checker/CommunicationDescription.h"
#include "checker/JsonText.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

using namespace bowline;
using namespace bowline::json_text;

using Json = nlohmann::ordered_json;

/// Texts of the file, which may hold anything, with the quotes that reasons have.
static std::string escaped(const std::string &text) {
  return absl::StrReplaceAll(absl::Utf8SafeCEscape(text), {{"\\'", "'"}, {"\\\"", "\""}});
}

Json bowline::describeCommunication(const fbs::Plan &plan, const CommunicationReportOptions &options) {
  Json json = {{"ranks", RankCount(plan)}, {"entries", Json::array()}};
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) {
    const CommunicationReport report = reportCommunication(plan, i, options);
    if (report.groups.empty())
      continue;
    const fbs::Program &program = *plan.programs()->Get(plan.entries()->Get(i)->program());
    Json entry = {{"name", name(plan.entries()->Get(i)->name())}};
    if (SizeOf(plan.roles()) > 1)
      entry["role"] = name(plan.roles()->Get(program.role())->name());
    entry["communications"] = Json::array();
    for (const CommunicationGroup &group : report.groups)
      entry["communications"].push_back({{"count", group.count},
                                         {"bytes_sent", group.bytesSent},
                                         {"operation", group.operation},
                                         {"source", escaped(group.source)},
                                         {"pass", escaped(group.pass)},
                                         {"reason", escaped(group.reason)},
                                         {"tensors", escaped(group.tensors)}});
    entry["total"] = Json::object();
    for (const auto &[axes, total] : report.byAxes)
      entry["total"][escaped(axes)] = {{"count", total.count}, {"bytes_sent", total.bytesSent}};
    json["entries"].push_back(std::move(entry));
  }
  return json;
}

std::string bowline::layOutCommunication(const Json &json, bool showsTensors) {
  if (json["entries"].empty())
    return "no such communication\n";
  std::string out;
  for (const Json &entry : json["entries"]) {
    absl::StrAppend(&out, out.empty() ? "" : "\n", "entry ", text(entry["name"]),
                    entry.contains("role") ? " of role '" + text(entry["role"]) + "'" : "",
                    ": communication of each rank in a run\n   count      bytes sent  operation, source, reason\n");
    for (const Json &group : entry["communications"]) {
      const std::string reason = text(group["reason"]);
      absl::StrAppendFormat(&out, "%8s %15s  %s, %s: %s (%s)\n", text(group["count"]), text(group["bytes_sent"]),
                            text(group["operation"]), text(group["source"]),
                            reason.empty() ? "next to it in the pipeline" : reason, text(group["pass"]));
      if (showsTensors && text(group["tensors"]) != "")
        absl::StrAppendFormat(&out, "%26smoves %s\n", "", text(group["tensors"]));
    }
    for (const auto &[axes, total] : entry["total"].items())
      absl::StrAppendFormat(&out, "%8s %15s  along %s\n", text(total["count"]), text(total["bytes_sent"]), axes);
  }
  return out;
}
