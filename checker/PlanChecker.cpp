//===- PlanChecker.cpp - proofs over an emitted plan ----------------------===//

#include "checker/PlanChecker.h"

#include "checker/CommunicationOrder.h"
#include "checker/Communications.h"
#include "checker/Counterexample.h"
#include "checker/DeadlockCheck.h"
#include "checker/EntryCheck.h"
#include "checker/IndexCheck.h"
#include "checker/PlanProof.h"
#include "checker/RaceCheck.h"
#include "checker/ReplicaCheck.h"
#include "checker/RunOverlap.h"
#include "checker/SequenceCheck.h"
#include "checker/SignatureCheck.h"
#include "runtime/plan/meaning/plan_meaning.h"
#include "runtime/plan/plan_writer.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/preparation.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace bowline {

void PlanChecker::prove(absl::string_view name, uint64_t facts, absl::string_view what) {
  report_.proofs.push_back({std::string(name), facts, std::string(what)});
}

void PlanChecker::summarise() {
  report_.mesh = DescribeMesh(plan_);
  report_.ranks = RankCount(plan_);
  report_.roles.resize(RoleCount(plan_));
  for (uint32_t role = 0; role < report_.roles.size(); ++role) {
    for (const fbs::MemorySpace space : fbs::EnumValuesMemorySpace())
      report_.roles[role].in(space).bytes = ArenaBytes(plan_, role, space);
    if (role < SizeOf(plan_.roles()))
      report_.roles[role].name = plan_.roles()->Get(role)->name()->str();
  }
  const std::vector<bool> prepared = FindPreparedBuffers(plan_);
  for (uint32_t i = 0; i < prepared.size(); ++i) {
    const fbs::Buffer &buffer = *plan_.buffers()->Get(i);
    CheckReport::Role::Arena &arena = report_.roles[buffer.role()].in(buffer.space());
    ++arena.buffers;
    uint64_t &bytes = prepared[i] ? arena.preparedBytes : arena.bytesByKind[static_cast<size_t>(buffer.kind())];
    bytes += buffer.bytes() * buffer.slots();
  }
  for (const fbs::State *state : *plan_.states())
    ++report_.roles[plan_.buffers()->Get(state->buffer())->role()].states;
  report_.hasCode = HasCode(plan_);
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
    uint16_t role;
    bool persistent;
  };
  const std::set<uint32_t> overlapping = findOverlappingPorts(plan_);
  std::vector<Range> ranges;
  for (uint32_t i = 0; i < plan_.buffers()->size(); ++i) {
    const fbs::Buffer &buffer = *plan_.buffers()->Get(i);
    if (buffer.bytes() == 0)
      continue;
    for (uint32_t slot = 0; slot < buffer.slots(); ++slot)
      ranges.push_back({RangeOf(buffer, slot), i, buffer.role(), IsPersistent(buffer.kind()) || overlapping.count(i)});
    if (ranges.size() > (size_t{1} << 24))
      return absl::ResourceExhaustedError("the plan has more than 2^24 buffer slots, too many to check");
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) {
    return std::tie(a.role, a.bytes.begin, a.buffer) < std::tie(b.role, b.bytes.begin, b.buffer);
  });
  // Whatever overlaps a range and begins before it overlaps it through the range that reaches farthest.
  const Range *farthest = nullptr, *farthestPersistent = nullptr;
  for (const Range &range : ranges) {
    if (farthest && farthest->role != range.role)
      farthest = farthestPersistent = nullptr; // another rank's bytes
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
  prove("persistence",
        static_cast<uint64_t>(std::count_if(ranges.begin(), ranges.end(), [](const Range &r) { return r.persistent; })),
        "persistent ranges share no byte with another buffer");
  return absl::OkStatus();
}

void PlanChecker::use(ByteRange range, uint32_t buffer) {
  const fbs::Buffer &used = *plan_.buffers()->Get(buffer);
  CheckReport::Role::Arena &arena = report_.roles[used.role()].in(used.space());
  const uint64_t end = range.end - static_cast<uint64_t>(used.space()) * kSpaceStride;
  if (range.bytes() > 0)
    arena.highestByte = std::max(arena.highestByte, end);
}

void PlanChecker::measureArenas() {
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
  for (const uint32_t buffer : findOverlappingPorts(plan_))
    useBuffer(buffer);
  uint64_t arenas = 0, exact = 0;
  for (uint32_t i = 0; i < report_.roles.size(); ++i) {
    for (const fbs::MemorySpace space : fbs::EnumValuesMemorySpace()) {
      const CheckReport::Role::Arena &arena = report_.roles[i].in(space);
      if (space != fbs::MemorySpace::Device && arena.bytes == 0)
        continue;
      ++arenas;
      exact += arena.highestByte == arena.bytes;
    }
  }
  // Bytes behind the last used one do no harm: the report says how many there are.
  if (exact == arenas)
    prove("exact memory", arenas, "arenas end with the last byte that is used");
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

absl::Status PlanChecker::checkRaces(uint32_t entry) {
  RaceCheck alone(timeline_, entry);
  const absl::Status status = alone.check();
  if (status.ok() || RoleCount(plan_) == 1) {
    facts_.waits += alone.waitFacts();
    return status;
  }
  // Communication with other ranks may order two commands that the rank itself leaves unordered. That proof costs more.
  const std::string name = plan_.entries()->Get(entry)->name()->str();
  const auto [known, isNew] = throughRanks_.try_emplace(name);
  if (isNew) {
    Communications communications(timeline_, name);
    DeadlockCheck deadlocks(communications);
    if (communications.match().ok() && deadlocks.check().ok())
      if (auto found = OrderThroughRanks::find(timeline_, communications, deadlocks.numbers()))
        known->second = std::make_shared<const OrderThroughRanks>(*std::move(found));
  }
  if (!known->second)
    return status;
  RaceCheck together(timeline_, entry, known->second.get());
  BOWLINE_RETURN_IF_ERROR(together.check());
  facts_.waits += together.waitFacts();
  return absl::OkStatus();
}

absl::Status PlanChecker::checkEntry(uint32_t index) {
  CheckReport::Entry &entry = report_.entries.emplace_back();
  const fbs::Program &program = timeline_.programOf(index);
  entry.name = plan_.entries()->Get(index)->name()->str();
  entry.role = program.role();
  entry.calls = SizeOf(program.timeline());
  std::set<uint16_t> streams;
  bool waits = false;
  timeline_.forEachCommand(index,
                           [&](CommandSite, const fbs::Command &command, absl::Span<const OperandAccess> accesses) {
                             count(command, entry);
                             streams.insert(command.stream());
                             waits |= command.body_type() == fbs::CommandBody::Wait;
                             facts_.operands += accesses.size();
                             for (const OperandAccess &access : accesses)
                               use(access.range, access.buffer);
                             return true;
                           });
  entry.streams = static_cast<uint32_t>(streams.size());
  facts_.commands += entry.launches + entry.copies + entry.communications;
  // Races first: without them, the order of issue is the only one that matters. One stream is an order by itself.
  if (streams.size() > 1 || waits)
    BOWLINE_RETURN_IF_ERROR(checkRaces(index));
  facts_.communicators += entry.communications;
  const fbs::EntryKind kind = plan_.entries()->Get(index)->kind();
  EntryCheck check(timeline_, index, heldAtBegin(kind));
  BOWLINE_RETURN_IF_ERROR(check.check());
  if (kind == fbs::EntryKind::Init)
    BOWLINE_RETURN_IF_ERROR(checkInitialValues(index, check));
  entry.statesWritten = check.statesWritten();
  facts_.aliasing += check.aliasingFacts();
  facts_.reads += check.readFacts();
  facts_.outputs += check.outputFacts();
  IndexCheck indices(timeline_, index);
  BOWLINE_RETURN_IF_ERROR(indices.check());
  facts_.indices += indices.facts();
  SequenceCheck sequences(timeline_, index);
  BOWLINE_RETURN_IF_ERROR(sequences.check());
  facts_.sequences += sequences.facts();
  return absl::OkStatus();
}

std::vector<bool> PlanChecker::heldAtBegin(fbs::EntryKind kind) const {
  const std::vector<bool> results = FindPreparedBuffers(plan_);
  std::vector<bool> held(plan_.buffers()->size());
  for (uint32_t i = 0; i < held.size(); ++i) {
    const fbs::BufferKind buffer = plan_.buffers()->Get(i)->kind();
    // Nobody has set an input that is no port of the entry.
    held[i] = IsPersistent(buffer) && buffer != fbs::BufferKind::Input;
    if (results[i])
      held[i] = kind != fbs::EntryKind::Prepare && kind != fbs::EntryKind::Init && prepared_[i];
  }
  if (kind == fbs::EntryKind::Init)
    for (const fbs::State *state : *plan_.states())
      held[state->buffer()] = false;
  return held;
}

absl::Status PlanChecker::findPrepared() {
  prepared_.assign(plan_.buffers()->size(), false);
  const std::vector<bool> results = FindPreparedBuffers(plan_);
  for (uint32_t i = 0; i < plan_.entries()->size(); ++i) {
    if (plan_.entries()->Get(i)->kind() != fbs::EntryKind::Prepare)
      continue;
    EntryCheck check(timeline_, i, heldAtBegin(fbs::EntryKind::Prepare));
    BOWLINE_RETURN_IF_ERROR(check.check());
    const uint16_t role = timeline_.programOf(i).role();
    for (uint32_t buffer = 0; buffer < results.size(); ++buffer)
      if (results[buffer] && plan_.buffers()->Get(buffer)->role() == role)
        prepared_[buffer] = check.holds(buffer);
  }
  return absl::OkStatus();
}

absl::Status PlanChecker::checkInitialValues(uint32_t entry, const EntryCheck &check) {
  const uint16_t role = timeline_.programOf(entry).role();
  // Plans for serving leave weights to files. An entry that sets one of them sets all.
  bool setsWeights = false;
  for (const fbs::State *state : *plan_.states())
    if (plan_.buffers()->Get(state->buffer())->role() == role)
      setsWeights |= Has(*state, fbs::StateFlag::Weight) && check.writes(state->buffer());
  for (const fbs::State *state : *plan_.states()) {
    const fbs::Buffer &buffer = *plan_.buffers()->Get(state->buffer());
    if (buffer.role() != role || (Has(*state, fbs::StateFlag::Weight) && !setsWeights))
      continue;
    ++facts_.initialValues;
    if (const auto unset = check.findUnset(state->buffer()))
      return counterexample("initial values",
                            absl::StrCat("entry ", Quoted(plan_.entries()->Get(entry)->name()), " leaves bytes ",
                                         describe(*unset), " of buffer ", state->buffer(), " ", Quoted(buffer.name()),
                                         ", the state ", Quoted(state->key()),
                                         ", without a value: an entry of kind Init sets all states of its role, ",
                                         "and either all weights or none"));
  }
  return absl::OkStatus();
}

absl::Status PlanChecker::checkCommunications() {
  std::set<std::string> names;
  std::vector<std::pair<std::string, Communications>> entries;
  uint64_t operations = 0;
  for (const fbs::Entry *entry : *plan_.entries()) {
    const std::string name = entry->name()->str();
    if (!names.insert(name).second)
      continue;
    Communications &communications = entries.emplace_back(name, Communications(timeline_, name)).second;
    BOWLINE_RETURN_IF_ERROR(communications.match());
    operations += communications.operations();
  }
  prove("matching", operations, "operations between roles have all their members");
  std::vector<std::vector<uint32_t>> numbers;
  for (const auto &[name, communications] : entries) {
    DeadlockCheck check(communications);
    BOWLINE_RETURN_IF_ERROR(check.check());
    numbers.push_back(check.numbers());
    fbs::CertificateT &certificate = certificates_.emplace_back();
    certificate.entry = name;
    for (uint32_t role = 0; role < communications.roles(); ++role) {
      auto &order = certificate.roles.emplace_back(std::make_unique<fbs::RoleOrderT>());
      for (const Communications::Part &part : communications.of(role))
        order->numbers.push_back(check.numbers()[part.operation]);
    }
  }
  prove("no deadlock", operations, "operations have one order that suits all ranks");
  BOWLINE_RETURN_IF_ERROR(checkCommunicationOrder());
  return checkReplicas(entries, numbers);
}

absl::Status PlanChecker::checkReplicas(absl::Span<const std::pair<std::string, Communications>> entries,
                                        absl::Span<const std::vector<uint32_t>> numbers) {
  if (report_.ranks == 1)
    return absl::OkStatus();
  uint64_t facts = 0;
  ReplicaCheck::PreparedAxes prepared;
  // Other entries read the results of the entry of kind Prepare.
  for (const bool prepares : {true, false}) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto &[name, communications] = entries[i];
      if ((kindOf(name) == fbs::EntryKind::Prepare) != prepares)
        continue;
      ReplicaCheck check(timeline_, name, communications, numbers[i], prepared);
      BOWLINE_RETURN_IF_ERROR(check.check());
      facts += check.facts();
    }
  }
  prove("replicas", facts, "states and outputs are equal along axes that do not divide them");
  return absl::OkStatus();
}

fbs::EntryKind PlanChecker::kindOf(absl::string_view name) const {
  for (const fbs::Entry *entry : *plan_.entries())
    if (TextOf(entry->name()) == name)
      return entry->kind();
  return fbs::EntryKind::Custom;
}

absl::Status PlanChecker::checkCommunicationOrder() {
  if (!needsCommunicationOrder(plan_))
    return absl::OkStatus();
  uint64_t facts = 0;
  for (uint32_t i = 0; i < plan_.entries()->size(); ++i) {
    CommunicationOrder order(timeline_, i);
    BOWLINE_RETURN_IF_ERROR(order.check());
    facts += order.facts();
  }
  prove("serial order", facts, "communications follow one another by streams and events");
  return absl::OkStatus();
}

/// VerifyPlan compared a certified plan with its certificates. Any other gets its own.
absl::Status PlanChecker::checkMeaning() {
  BOWLINE_ASSIGN_OR_RETURN(const PlanMeaning meaning, ComputeMeaning(plan_));
  uint64_t values = 0;
  for (size_t i = 0; i < meaning.entries.size(); ++i) {
    for (size_t role = 0; role < meaning.entries[i].roles.size(); ++role) {
      for (const ValueMeaning &value : meaning.entries[i].roles[role].values)
        certificates_[i].roles[role]->values.emplace_back(value.digest.low, value.digest.high);
      values += meaning.entries[i].roles[role].values.size() - 1; // without the interface
    }
  }
  const bool certified = SizeOf(plan_.certificates()) > 0;
  prove("meaning", certified ? values : 0, "outputs and states are computed as the compiler certified");
  return absl::OkStatus();
}

absl::Status PlanChecker::check() {
  BOWLINE_RETURN_IF_ERROR(checkOrderAndMemory());
  return checkMeaning();
}

absl::Status PlanChecker::checkOrderAndMemory() {
  report_ = CheckReport();
  facts_ = {};
  certificates_.clear();
  throughRanks_.clear();
  summarise();
  SignatureCheck signatures(plan_);
  BOWLINE_RETURN_IF_ERROR(signatures.check());
  prove("contracts", signatures.contracts(), "kernels call code that was made for them");
  prove("signatures", signatures.facts(), "registered kernels write all elements that they declare as written");
  BOWLINE_RETURN_IF_ERROR(checkPersistence());
  RunOverlap overlap(plan_);
  BOWLINE_RETURN_IF_ERROR(overlap.check());
  BOWLINE_RETURN_IF_ERROR(findPrepared());
  for (uint32_t i = 0; i < plan_.entries()->size(); ++i)
    BOWLINE_RETURN_IF_ERROR(checkEntry(i));
  // VerifyPlan proved the bounds, per stored command; here they are stated for the commands that run.
  prove("bounds", facts_.operands, "operands lie in their buffers, and those in the arena");
  prove("aliasing", facts_.aliasing, "operands overlap no write of their command, save declared pairs");
  prove("events", facts_.waits, "waits follow the signal that they are for");
  prove("no race", facts_.commands, "commands are ordered with every conflicting one");
  prove("one stream", facts_.communicators, "communications are ordered on their communicator");
  prove("initialisation", facts_.reads, "reads follow a write of every byte");
  prove("no clobber", facts_.reads, "reads see their own buffer's values");
  prove("outputs", facts_.outputs, "output tensors are complete at the end");
  if (facts_.initialValues > 0)
    prove("initial values", facts_.initialValues, "states are set by the entry of kind Init");
  if (facts_.indices > 0)
    prove("indices", facts_.indices, "row numbers and offsets are limited, or looked at before they are used");
  if (facts_.sequences > 0)
    prove("sequences", facts_.sequences, "operands say where sequences are as callers promise");
  if (overlap.facts() > 0)
    prove("two runs", overlap.facts(), "buffers of ports are those of every other run alone");
  measureArenas();
  return checkCommunications();
}

absl::Status ProvePlan(const fbs::Plan &plan) { return PlanChecker(plan).checkOrderAndMemory(); }

absl::Status CertifyPlan(fbs::PlanT &plan, CheckReport *report) {
  plan.certificates.clear();
  BOWLINE_ASSIGN_OR_RETURN(const flatbuffers::DetachedBuffer bytes, WritePlan(plan));
  const fbs::Plan &written = *fbs::GetPlan(bytes.data());
  BOWLINE_RETURN_IF_ERROR(VerifyPlan(written));
  PlanChecker checker(written);
  const absl::Status status = checker.check();
  if (report)
    *report = checker.report();
  BOWLINE_RETURN_IF_ERROR(status);
  for (const fbs::CertificateT &certificate : checker.certificates())
    plan.certificates.push_back(std::make_unique<fbs::CertificateT>(certificate));
  return absl::OkStatus();
}

} // namespace bowline
