//===- Report.cpp - the checker's report for a person ---------------------===//

#include "checker/PlanChecker.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace bowline {

static std::string describeRole(const CheckReport::Role &role) {
  return role.name.empty() ? std::string() : absl::StrCat(" of role '", absl::Utf8SafeCEscape(role.name), "'");
}

/// " in PinnedHost"; empty for space Device.
static std::string describeArena(fbs::MemorySpace space) {
  return space == fbs::MemorySpace::Device ? std::string() : absl::StrCat(" in ", fbs::EnumNameMemorySpace(space));
}

static std::string describeArena(const CheckReport::Role &role, fbs::MemorySpace space) {
  const CheckReport::Role::Arena &arena = role.in(space);
  std::string text = absl::StrFormat("arena   %d bytes%s%s in %d buffers:", arena.bytes, describeArena(space),
                                     describeRole(role), arena.buffers);
  for (size_t kind = 0; kind < arena.bytesByKind.size(); ++kind)
    if (arena.bytesByKind[kind] > 0)
      absl::StrAppendFormat(&text, " %s %d", fbs::EnumNameBufferKind(static_cast<fbs::BufferKind>(kind)),
                            arena.bytesByKind[kind]);
  if (arena.preparedBytes > 0)
    absl::StrAppendFormat(&text, " Prepared %d", arena.preparedBytes);
  if (arena.highestByte < arena.bytes)
    absl::StrAppendFormat(&text, "; the last %d are unused", arena.bytes - arena.highestByte);
  return text + "\n";
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
  for (const CheckReport::Role &role : report.roles)
    for (const fbs::MemorySpace space : fbs::EnumValuesMemorySpace())
      if (space == fbs::MemorySpace::Device || role.in(space).buffers > 0)
        text += describeArena(role, space);
  for (const CheckReport::Proof &proof : report.proofs)
    absl::StrAppendFormat(&text, "proven  %-15s %d %s\n", proof.name, proof.facts, proof.what);
  return text;
}

} // namespace bowline
