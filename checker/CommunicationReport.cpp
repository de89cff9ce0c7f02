//===- CommunicationReport.cpp - messages of ranks ------------------------===//

#include "checker/CommunicationReport.h"
#include "runtime/plan/view/collective_view.h"
#include "runtime/plan/view/mesh_view.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/plan/view/operand_uses.h"

#include <algorithm>
#include <tuple>

namespace bowline {
namespace {

std::string nameOf(const flatbuffers::String *text) { return std::string(TextOf(text)); }

std::string axesOf(const fbs::Plan &plan, uint32_t communicator) {
  const fbs::Communicator &found = *plan.communicators()->Get(communicator);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < SizeOf(found.axes()); ++i)
    names.push_back(nameOf(plan.mesh()->Get(found.axes()->Get(i))->name()));
  return absl::StrJoin(names, ", ");
}

/// Replaces numbers between dots, which are those of layers, by stars in every word of a text.
std::string withoutNumbers(absl::string_view text) {
  std::vector<std::string> words;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    std::vector<std::string> parts = absl::StrSplit(word, '.');
    for (size_t i = 1; i < parts.size(); ++i)
      if (!parts[i].empty() && parts[i].find_first_not_of("0123456789") == std::string::npos)
        parts[i] = "*";
    words.push_back(absl::StrJoin(parts, "."));
  }
  return absl::StrJoin(words, " ");
}

uint64_t bytesSent(const fbs::Plan &plan, const fbs::Command &command) {
  if (const fbs::Send *send = command.body_as_Send()) {
    uint64_t elements = 0;
    for (uint32_t i = 0; i < SizeOf(send->ranges()); ++i)
      elements += send->ranges()->Get(i)->count();
    return elements * ElementSize(send->dtype());
  }
  const fbs::Collective *collective = command.body_as_Collective();
  if (collective == nullptr)
    return 0;
  const uint64_t ranks = SizeAlong(plan, plan.communicators()->Get(collective->communicator())->axes());
  uint64_t elements = 0;
  for (uint32_t i = 0; i < SizeOf(collective->pieces()); ++i)
    elements += collective->pieces()->Get(i)->count();
  const uint64_t bytes = elements * ElementSize(collective->dtype());
  const collectives::Definition &definition = DefinitionOf(collective->kind());
  return definition.BytesSent<uint64_t>(bytes * definition.WholeParts(ranks), ranks);
}

/// The names of the tensors that a command moves; for a collective, of its sources.
std::vector<std::string> tensorsOf(const fbs::Plan &plan, const fbs::Command &command) {
  std::vector<OperandUse> uses;
  AppendCommunicationOperands(plan, command, uses);
  const size_t step = command.body_as_Collective() != nullptr ? 2 : 1;
  std::vector<std::string> names;
  for (size_t i = 0; i < uses.size(); i += step)
    names.push_back(nameOf(plan.buffers()->Get(uses[i].operand->buffer())->name()));
  return names;
}

CommunicationGroup describe(const fbs::Plan &plan, const fbs::Command &command, const std::vector<std::string> &names) {
  const fbs::Source &source = *plan.sources()->Get(command.source());
  CommunicationGroup group;
  group.operation = DescribeCommand(plan, command);
  group.axes = axesOf(plan, *CommunicatorOf(command));
  group.source = nameOf(source.location());
  group.pass = nameOf(source.pass());
  group.reason = nameOf(source.reason());
  if (!names.empty())
    group.tensors = names.size() == 1 ? names.front() : absl::StrCat(names.front(), " and ", names.size() - 1, " more");
  return group;
}

bool contains(const CommunicationGroup &group, const std::vector<std::string> &names, const std::string &text) {
  const auto has = [&](const std::string &own) { return absl::StrContains(own, text); };
  return has(group.operation) || has(group.source) || has(group.pass) || has(group.reason) ||
         std::any_of(names.begin(), names.end(), has);
}

} // namespace

CommunicationReport reportCommunication(const fbs::Plan &plan, uint32_t entry,
                                        const CommunicationReportOptions &options) {
  CommunicationReport report;
  const fbs::Program &program = *plan.programs()->Get(plan.entries()->Get(entry)->program());
  std::vector<uint64_t> calls(SizeOf(program.segments()), 0);
  for (uint32_t i = 0; i < SizeOf(program.timeline()); ++i)
    ++calls[program.timeline()->Get(i)->segment()];
  std::map<std::tuple<std::string, std::string, std::string, std::string>, size_t> indices;
  for (uint32_t s = 0; s < calls.size(); ++s) {
    const fbs::Segment &segment = *program.segments()->Get(s);
    for (uint32_t c = 0; c < SizeOf(segment.commands()); ++c) {
      const fbs::Command &command = *segment.commands()->Get(c);
      if (!CommunicatorOf(command))
        continue;
      const std::vector<std::string> names = tensorsOf(plan, command);
      CommunicationGroup group = describe(plan, command, names);
      if (!options.containing.empty() && !contains(group, names, options.containing))
        continue;
      group.count = calls[s];
      group.bytesSent = calls[s] * bytesSent(plan, command);
      CommunicationReport::Total &total = report.byAxes[group.axes];
      total.count += group.count;
      total.bytesSent += group.bytesSent;
      if (!options.mergesLayers) {
        report.groups.push_back(std::move(group));
        continue;
      }
      group.source = withoutNumbers(group.source);
      group.reason = withoutNumbers(group.reason);
      const auto [it, isNew] =
          indices.insert({{group.operation, group.source, group.pass, group.reason}, report.groups.size()});
      if (isNew) {
        report.groups.push_back(std::move(group));
        continue;
      }
      CommunicationGroup &same = report.groups[it->second];
      same.count += group.count;
      same.bytesSent += group.bytesSent;
      same.tensors.clear();
    }
  }
  std::stable_sort(report.groups.begin(), report.groups.end(),
                   [](const auto &a, const auto &b) { return a.bytesSent > b.bytesSent; });
  return report;
}

} // namespace bowline
