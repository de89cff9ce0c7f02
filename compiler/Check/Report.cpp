//===- Report.cpp - the checker's report for a person ---------------------===//

#include "compiler/Check/PlanChecker.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace bowline {

static std::string describeRole(const CheckReport::Role &role) {
  return role.name.empty() ? std::string() : absl::StrCat(" of role '", absl::Utf8SafeCEscape(role.name), "'");
}

std::string formatReport(const CheckReport &report) {
  std::string text;
  if (report.ranks > 1)
    absl::StrAppendFormat(&text, "ranks   %d (%s), %d role%s\n", report.ranks, absl::Utf8SafeCEscape(report.mesh),
                          report.roles.size(), report.roles.size() == 1 ? "" : "s");
  for (const CheckReport::Entry &entry : report.entries) {
    const CheckReport::Role &role = report.roles[entry.role];
    absl::StrAppendFormat(
        &text, "entry %-16s%s %d calls, %d launches, %d copies%s on %d stream%s; writes %d of %d states\n",
        absl::Utf8SafeCEscape(entry.name), describeRole(role), entry.calls, entry.launches, entry.copies,
        entry.communications > 0 ? absl::StrCat(", ", entry.communications, " communications") : "", entry.streams,
        entry.streams == 1 ? "" : "s", entry.statesWritten, role.states);
  }
  absl::StrAppendFormat(&text, "kernels %d registered, %d generated%s; %d commands stored\n", report.registeredKernels,
                        report.generatedKernels, report.hasCode ? "" : " without code", report.storedCommands);
  for (const CheckReport::Role &role : report.roles) {
    absl::StrAppendFormat(&text, "arena   %d bytes%s in %d buffers:", role.arenaBytes, describeRole(role),
                          role.buffers);
    for (size_t kind = 0; kind < role.bytesByKind.size(); ++kind)
      if (role.bytesByKind[kind] > 0)
        absl::StrAppendFormat(&text, " %s %d", fbs::EnumNameBufferKind(static_cast<fbs::BufferKind>(kind)),
                              role.bytesByKind[kind]);
    if (role.preparedBytes > 0)
      absl::StrAppendFormat(&text, " Prepared %d", role.preparedBytes);
    text += "\n";
  }
  for (const CheckReport::Proof &proof : report.proofs)
    absl::StrAppendFormat(&text, "proven  %-15s %d %s\n", proof.name, proof.facts, proof.what);
  return text;
}

} // namespace bowline
