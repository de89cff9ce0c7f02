//===- Report.cpp - the checker's report for a person ---------------------===//

#include "compiler/Check/PlanChecker.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace bowline {

std::string formatReport(const CheckReport &report) {
  std::string text;
  for (const CheckReport::Entry &entry : report.entries) {
    absl::StrAppendFormat(&text,
                          "entry %-16s %d calls, %d launches, %d copies%s on %d stream%s; writes %d of %d states\n",
                          absl::Utf8SafeCEscape(entry.name), entry.calls, entry.launches, entry.copies,
                          entry.communications > 0 ? absl::StrCat(", ", entry.communications, " communications") : "",
                          entry.streams, entry.streams == 1 ? "" : "s", entry.statesWritten, report.states);
  }
  absl::StrAppendFormat(&text, "kernels %d registered, %d generated; %d commands stored\n", report.registeredKernels,
                        report.generatedKernels, report.storedCommands);
  absl::StrAppendFormat(&text, "arena   %d bytes in %d buffers:", report.arenaBytes, report.buffers);
  for (size_t kind = 0; kind < report.bytesByKind.size(); ++kind)
    if (report.bytesByKind[kind] > 0)
      absl::StrAppendFormat(&text, " %s %d", fbs::EnumNameBufferKind(static_cast<fbs::BufferKind>(kind)),
                            report.bytesByKind[kind]);
  text += "\n";
  for (const CheckReport::Proof &proof : report.proofs)
    absl::StrAppendFormat(&text, "proven  %-15s %d %s\n", proof.name, proof.facts, proof.what);
  return text;
}

} // namespace bowline
