//===- RunOverlap.cpp - two runs of an entry in flight --------------------===//

#include "checker/RunOverlap.h"

#include "checker/Counterexample.h"
#include "runtime/plan/view/operand_uses.h"
#include "runtime/plan/view/plan_view.h"
#include "runtime/plan/view/preparation.h"

#include "absl/strings/str_cat.h"

#include <map>
#include <vector>

namespace bowline {

std::set<uint32_t> findOverlappingPorts(const fbs::Plan &plan) {
  std::set<uint32_t> buffers;
  for (const fbs::Entry *entry : *plan.entries()) {
    for (uint32_t i = 0; i < SizeOf(entry->feeds()); ++i)
      buffers.insert(entry->outputs()->Get(entry->feeds()->Get(i)->output())->buffer());
    if (entry->in_flight() == 1)
      continue;
    for (const auto *ports : {entry->inputs(), entry->outputs()})
      for (uint32_t i = 0; i < SizeOf(ports); ++i)
        buffers.insert({ports->Get(i)->buffer(), ports->Get(i)->second()});
  }
  return buffers;
}

absl::Status RunOverlap::checkProgram(uint32_t index, const std::set<uint32_t> &own,
                                      const std::set<uint32_t> &all) const {
  const fbs::Program &program = *plan_.programs()->Get(index);
  std::vector<OperandUse> uses;
  for (uint32_t s = 0; s < SizeOf(program.segments()); ++s) {
    const fbs::Segment &segment = *program.segments()->Get(s);
    for (uint32_t c = 0; c < SizeOf(segment.commands()); ++c) {
      uses.clear();
      AppendOperands(plan_, *segment.commands()->Get(c), uses);
      for (const OperandUse &use : uses) {
        const uint32_t buffer = use.operand->buffer();
        if (all.count(buffer) == 0 || own.count(buffer) > 0)
          continue;
        return counterexample(
            "two runs",
            absl::StrCat("program ", Quoted(program.name()), ", segment ", Quoted(segment.name()), ", command ", c,
                         ", ", DescribeCommand(plan_, *segment.commands()->Get(c)), ", touches buffer ", buffer, " ",
                         Quoted(plan_.buffers()->Get(buffer)->name()),
                         ", which the host may write or read meanwhile: it is of a port of another entry with two runs "
                         "in flight, or of every other run"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status RunOverlap::check() {
  const std::set<uint32_t> all = findOverlappingPorts(plan_);
  facts_ = all.size();
  if (all.empty())
    return absl::OkStatus();
  std::map<uint32_t, std::set<uint32_t>> own; // key: program; buffers of its ports
  std::map<uint32_t, const fbs::Entry *> entryOf;
  std::map<uint32_t, const fbs::Entry *> portOf; // key: buffer; the entry that it is a port of
  for (const fbs::Entry *entry : *plan_.entries()) {
    const auto [known, isNew] = entryOf.try_emplace(entry->program(), entry);
    if (!isNew && (entry->in_flight() > 1 || known->second->in_flight() > 1))
      return counterexample("two runs",
                            absl::StrCat("entries ", Quoted(known->second->name()), " and ", Quoted(entry->name()),
                                         " run one program, but the ports of one of them alternate"));
    for (const auto *ports : {entry->inputs(), entry->outputs()})
      for (uint32_t i = 0; i < SizeOf(ports); ++i) {
        const uint32_t first = ports->Get(i)->buffer();
        const auto [other, isOwn] = portOf.try_emplace(first, entry);
        if (all.count(first) > 0 && !isOwn && other->second != entry)
          return counterexample("two runs",
                                absl::StrCat("buffer ", first, " ", Quoted(plan_.buffers()->Get(first)->name()),
                                             " is a port of entries ", Quoted(other->second->name()), " and ",
                                             Quoted(entry->name())));
        own[entry->program()].insert(first);
      }
  }
  for (uint32_t program = 0; program < plan_.programs()->size(); ++program)
    BOWLINE_RETURN_IF_ERROR(checkProgram(program, own[program], all));
  return absl::OkStatus();
}

} // namespace bowline
