//===- PlanChecker.cpp - proofs over an emitted plan ----------------------===//

#include "compiler/Check/PlanChecker.h"

#include "compiler/Check/EntryCheck.h"
#include "compiler/Check/RaceCheck.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <set>
#include <vector>

namespace bowline {

absl::Status counterexample(absl::string_view proof, absl::string_view message) {
  return absl::AbortedError(absl::StrCat("the proof of ", proof, " fails: ", message));
}

void PlanChecker::summarise() {
  report_.arenaBytes = plan_.arena_bytes();
  report_.buffers = plan_.buffers()->size();
  report_.states = plan_.states()->size();
  for (const fbs::Buffer *buffer : *plan_.buffers())
    report_.bytesByKind[static_cast<size_t>(buffer->kind())] += buffer->bytes() * buffer->slots();
  for (const fbs::Kernel *kernel : *plan_.kernels())
    ++(kernel->origin() == fbs::KernelOrigin::Generated ? report_.generatedKernels : report_.registeredKernels);
  for (const fbs::Program *program : *plan_.programs())
    for (uint32_t i = 0; i < SizeOf(program->segments()); ++i)
      report_.storedCommands += SizeOf(program->segments()->Get(i)->commands());
}

absl::Status PlanChecker::checkPersistence() {
  struct Range {
    ByteRange bytes;
    uint32_t buffer;
    bool persistent;
  };
  std::vector<Range> ranges;
  for (uint32_t i = 0; i < plan_.buffers()->size(); ++i) {
    const fbs::Buffer &buffer = *plan_.buffers()->Get(i);
    if (buffer.bytes() == 0)
      continue;
    for (uint32_t slot = 0; slot < buffer.slots(); ++slot)
      ranges.push_back({RangeOf(buffer, slot), i, IsPersistent(buffer.kind())});
    if (ranges.size() > (size_t{1} << 24))
      return absl::ResourceExhaustedError("the plan has more than 2^24 buffer slots, too many to check");
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) {
    return std::make_pair(a.bytes.begin, a.buffer) < std::make_pair(b.bytes.begin, b.buffer);
  });
  // Whatever overlaps a range and begins before it overlaps it through the range that reaches farthest.
  const Range *farthest = nullptr, *farthestPersistent = nullptr;
  for (const Range &range : ranges) {
    const Range *other = range.persistent ? farthest : farthestPersistent;
    if (other && other->bytes.end > range.bytes.begin) {
      const auto name = [&](const Range &r) {
        const fbs::Buffer &buffer = *plan_.buffers()->Get(r.buffer);
        return absl::StrCat("buffer ", r.buffer, " ", Quoted(buffer.name()), " (",
                            fbs::EnumNameBufferKind(buffer.kind()), ", bytes ", describe(r.bytes), ", from ",
                            DescribeSource(plan_, buffer.source()), ")");
      };
      return counterexample("persistence", absl::StrCat(name(*other), " and ", name(range),
                                                        " overlap, but a persistent buffer shares bytes with none"));
    }
    if (!farthest || range.bytes.end > farthest->bytes.end)
      farthest = &range;
    if (range.persistent && (!farthestPersistent || range.bytes.end > farthestPersistent->bytes.end))
      farthestPersistent = &range;
  }
  report_.proofs.push_back(
      {"persistence",
       static_cast<uint64_t>(std::count_if(ranges.begin(), ranges.end(), [](const Range &r) { return r.persistent; })),
       "persistent ranges share no byte with another buffer"});
  return absl::OkStatus();
}

void PlanChecker::use(ByteRange range, uint32_t buffer) {
  if (range.bytes() == 0 || range.end <= report_.highestByte)
    return;
  report_.highestByte = range.end;
  highestBuffer_ = buffer;
}

absl::Status PlanChecker::checkArena() {
  const auto useBuffer = [&](uint32_t index) { use(ExtentOf(*plan_.buffers()->Get(index)), index); };
  for (const fbs::State *state : *plan_.states())
    useBuffer(state->buffer());
  for (uint32_t i = 0; i < SizeOf(plan_.constants()); ++i)
    useBuffer(plan_.constants()->Get(i)->buffer());
  for (uint32_t i = 0; i < SizeOf(plan_.coordinates()); ++i)
    useBuffer(plan_.coordinates()->Get(i)->buffer());
  for (const fbs::Entry *entry : *plan_.entries()) {
    for (uint32_t i = 0; i < SizeOf(entry->inputs()); ++i)
      useBuffer(entry->inputs()->Get(i)->buffer());
    for (uint32_t i = 0; i < SizeOf(entry->outputs()); ++i)
      useBuffer(entry->outputs()->Get(i)->buffer());
  }
  if (report_.highestByte != report_.arenaBytes)
    return counterexample("exact memory",
                          absl::StrCat("the arena has ", report_.arenaBytes,
                                       " bytes, but the last that is used is byte ", report_.highestByte,
                                       report_.highestByte == 0
                                           ? std::string()
                                           : absl::StrCat(", the end of buffer ", highestBuffer_, " ",
                                                          Quoted(plan_.buffers()->Get(highestBuffer_)->name()))));
  report_.proofs.push_back({"exact memory", 1, "the last byte used is the last of the arena"});
  return absl::OkStatus();
}

static void count(const fbs::Command &command, CheckReport::Entry &entry) {
  switch (command.body_type()) {
  case fbs::CommandBody::Launch:
    ++entry.launches;
    break;
  case fbs::CommandBody::Copy:
    ++entry.copies;
    break;
  case fbs::CommandBody::Collective:
  case fbs::CommandBody::Send:
  case fbs::CommandBody::Receive:
    ++entry.communications;
    break;
  default:
    break;
  }
}

absl::Status PlanChecker::check() {
  report_ = CheckReport();
  highestBuffer_ = 0;
  summarise();
  BOWLINE_RETURN_IF_ERROR(checkPersistence());

  uint64_t operands = 0, aliasing = 0, reads = 0, outputs = 0, races = 0;
  for (uint32_t i = 0; i < plan_.entries()->size(); ++i) {
    CheckReport::Entry &entry = report_.entries.emplace_back();
    entry.name = plan_.entries()->Get(i)->name()->str();
    entry.calls = SizeOf(timeline_.programOf(i).timeline());
    std::set<uint16_t> streams;
    timeline_.forEachCommand(i,
                             [&](CommandSite, const fbs::Command &command, absl::Span<const OperandAccess> accesses) {
                               count(command, entry);
                               streams.insert(command.stream());
                               operands += accesses.size();
                               for (const OperandAccess &access : accesses)
                                 use(access.range, access.buffer);
                               return true;
                             });
    entry.streams = static_cast<uint32_t>(streams.size());
    // Races first: without them, the order of the timeline is the only one that matters.
    if (streams.size() > 1)
      BOWLINE_RETURN_IF_ERROR(checkRaces(timeline_, i));
    races += entry.launches + entry.copies + entry.communications;
    EntryCheck check(timeline_, i);
    BOWLINE_RETURN_IF_ERROR(check.check());
    entry.statesWritten = check.statesWritten();
    aliasing += check.aliasingFacts();
    reads += check.readFacts();
    outputs += check.outputFacts();
  }
  // VerifyPlan proved the bounds, per stored command; here they are stated for what runs.
  report_.proofs.push_back({"bounds", operands, "operands lie in their buffers, and those in the arena"});
  report_.proofs.push_back({"aliasing", aliasing, "operands overlap no write of their command, save declared pairs"});
  report_.proofs.push_back({"initialisation", reads, "reads follow a write of every byte"});
  report_.proofs.push_back({"no clobber", reads, "reads see their own buffer's values"});
  report_.proofs.push_back({"no race", races, "commands are ordered with every conflicting one"});
  report_.proofs.push_back({"outputs", outputs, "output tensors are complete at the end"});
  return checkArena();
}

} // namespace bowline
