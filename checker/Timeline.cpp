//===- Timeline.cpp - accesses of each command of an entry ----------------===//

#include "checker/Timeline.h"

#include "runtime/plan/view/buffer_view.h"

#include "absl/strings/str_cat.h"
#include "runtime/plan/view/operand_uses.h"

namespace bowline {

Timeline::Timeline(const fbs::Plan &plan) : plan_(plan), sameViews_(FindSameViews(plan)) {
  for (const fbs::Kernel *kernel : *plan.kernels()) {
    std::vector<uint64_t> &bytes = argumentBytes_.emplace_back();
    for (uint32_t i = 0; i < SizeOf(kernel->arguments()); ++i) {
      const fbs::Argument &argument = *kernel->arguments()->Get(i);
      bytes.push_back(*DenseBytes(argument.dtype(), argument.shape()));
    }
  }
}

const fbs::Program &Timeline::programOf(uint32_t entry) const {
  return *plan_.programs()->Get(plan_.entries()->Get(entry)->program());
}

const fbs::Command &Timeline::commandAt(CommandSite site) const {
  const fbs::Program &program = programOf(site.entry);
  return *program.segments()->Get(program.timeline()->Get(site.call)->segment())->commands()->Get(site.command);
}

uint64_t Timeline::commandCount(uint32_t entry) const {
  const fbs::Program &program = programOf(entry);
  uint64_t count = 0;
  for (uint32_t i = 0; i < SizeOf(program.timeline()); ++i)
    count += SizeOf(program.segments()->Get(program.timeline()->Get(i)->segment())->commands());
  return count;
}

OperandAccess Timeline::access(const fbs::Operand &operand, uint64_t bytes, uint32_t slot, bool reads,
                               bool writes) const {
  const fbs::Buffer &buffer = *plan_.buffers()->Get(operand.buffer());
  OperandAccess access;
  access.buffer = HolderOf(plan_, operand.buffer());
  access.slot = SlotOf(buffer, slot);
  access.range = RangeOfOperand(plan_, operand, bytes, slot);
  if (LiesByRank(buffer))
    access.byRank = sameViews_[operand.buffer()];
  access.reads = reads;
  access.writes = writes;
  return access;
}

void Timeline::collect(const fbs::Command &command, uint32_t slot, std::vector<OperandAccess> &accesses) const {
  accesses.clear();
  if (const fbs::Launch *launch = command.body_as_Launch()) {
    const fbs::Kernel &kernel = *plan_.kernels()->Get(launch->kernel());
    for (uint32_t i = 0; i < SizeOf(launch->operands()); ++i) {
      const fbs::Access mode = kernel.arguments()->Get(i)->access();
      accesses.push_back(
          access(*launch->operands()->Get(i), argumentBytes_[launch->kernel()][i], slot, Reads(mode), Writes(mode)));
    }
    return;
  }
  const fbs::Copy *copy = command.body_as_Copy();
  if (!copy) {
    std::vector<OperandUse> uses;
    AppendCommunicationOperands(plan_, command, uses);
    for (const OperandUse &use : uses)
      accesses.push_back(access(*use.operand, use.bytes, slot, Reads(use.access), Writes(use.access)));
    return;
  }
  accesses.push_back(access(*copy->source(), copy->bytes(), slot, /*reads=*/true, /*writes=*/false));
  accesses.push_back(access(*copy->destination(), copy->bytes(), slot, /*reads=*/false, /*writes=*/true));
}

void Timeline::accessesOf(CommandSite site, std::vector<OperandAccess> &accesses) const {
  collect(commandAt(site), programOf(site.entry).timeline()->Get(site.call)->slot(), accesses);
}

void Timeline::forEachCommand(uint32_t entry, Visitor visit) const {
  const fbs::Program &program = programOf(entry);
  std::vector<OperandAccess> accesses;
  CommandSite site;
  site.entry = entry;
  for (site.call = 0; site.call < SizeOf(program.timeline()); ++site.call) {
    const fbs::SegmentCall &call = *program.timeline()->Get(site.call);
    const auto *commands = program.segments()->Get(call.segment())->commands();
    for (site.command = 0; site.command < SizeOf(commands); ++site.command) {
      const fbs::Command &command = *commands->Get(site.command);
      collect(command, call.slot(), accesses);
      if (!visit(site, command, accesses))
        return;
    }
  }
}

std::string Timeline::describe(CommandSite site) const {
  const fbs::Program &program = programOf(site.entry);
  const fbs::SegmentCall &call = *program.timeline()->Get(site.call);
  const fbs::Command &command = commandAt(site);
  return absl::StrCat("entry ", Quoted(plan_.entries()->Get(site.entry)->name()), ", segment ",
                      Quoted(program.segments()->Get(call.segment())->name()), " (call ", site.call, ", slot ",
                      call.slot(), "), command ", site.command, ", ", DescribeCommand(plan_, command), ", from ",
                      DescribeSource(plan_, command.source()));
}

std::string Timeline::describe(const OperandAccess &access) const {
  const fbs::Buffer &buffer = *plan_.buffers()->Get(access.buffer);
  return absl::StrCat("buffer ", access.buffer, " ", Quoted(buffer.name()),
                      buffer.slots() > 1 ? absl::StrCat(" slot ", access.slot) : "");
}

std::string describe(ByteRange range) { return DescribeRange(range); }

} // namespace bowline
