//===- EntryCheck.cpp - proofs along the timeline of one entry ------------===//

#include "compiler/Check/EntryCheck.h"

#include "compiler/Check/PlanChecker.h"
#include "runtime/plan/collective_view.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <numeric>

namespace bowline {

EntryCheck::EntryCheck(const Timeline &timeline, uint32_t entry, const std::vector<bool> &prepared)
    : timeline_(timeline), plan_(timeline.plan()), entry_(entry), areResults_(FindPreparedBuffers(plan_)),
      rows_(plan_) {
  const auto own = [&](uint32_t index) {
    const fbs::Buffer &buffer = *plan_.buffers()->Get(index);
    for (uint32_t slot = 0; slot < buffer.slots(); ++slot)
      owners_.assign(RangeOf(buffer, slot), {index, slot, std::nullopt});
  };
  // Buffers that hold values before the first command. Nobody has set an input that is no port of this entry.
  for (uint32_t i = 0; i < plan_.buffers()->size(); ++i) {
    const fbs::Buffer &buffer = *plan_.buffers()->Get(i);
    const fbs::BufferKind kind = buffer.kind();
    if (buffer.role() != timeline.programOf(entry).role())
      continue; // it is in other ranks' arenas
    if (areResults_[i] ? prepared[i] : IsPersistent(kind) && kind != fbs::BufferKind::Input)
      own(i);
  }
  const fbs::Entry &ports = *plan_.entries()->Get(entry);
  for (uint32_t i = 0; i < SizeOf(ports.inputs()); ++i)
    own(ports.inputs()->Get(i)->buffer());
}

bool EntryCheck::isDeclaredInPlace(const fbs::Command &command, uint32_t output, uint32_t input) const {
  if (const fbs::Collective *collective = command.body_as_Collective())
    return DefinitionOf(collective->kind()).in_place && input % 2 == 0 && output == input + 1;
  const fbs::Launch *launch = command.body_as_Launch();
  if (!launch)
    return false;
  const auto *pairs = plan_.kernels()->Get(launch->kernel())->in_place();
  for (uint32_t i = 0; i < SizeOf(pairs); ++i)
    if (pairs->Get(i)->output() == output && pairs->Get(i)->input() == input)
      return true;
  return false;
}

absl::Status EntryCheck::checkAliasing(CommandSite site, const fbs::Command &command,
                                       absl::Span<const OperandAccess> accesses) {
  // Operands are sorted by their first byte: those that overlap one and follow it begin before it ends.
  order_.resize(accesses.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
    return std::make_pair(accesses[a].range.begin, a) < std::make_pair(accesses[b].range.begin, b);
  });
  for (size_t i = 0; i < order_.size(); ++i) {
    for (size_t j = i + 1; j < order_.size(); ++j) {
      const uint32_t ia = order_[i], ib = order_[j];
      const OperandAccess &a = accesses[ia], &b = accesses[ib];
      if (b.range.begin >= a.range.end)
        break;
      if (!a.range.Overlaps(b.range) || (!a.writes && !b.writes))
        continue;
      if (a.range == b.range && (isDeclaredInPlace(command, ia, ib) || isDeclaredInPlace(command, ib, ia)))
        continue;
      return counterexample("aliasing",
                            absl::StrCat(timeline_.describe(site), ": operand ", ia, " (", timeline_.describe(a),
                                         ", bytes ", describe(a.range), a.writes ? ", written" : ", read",
                                         ") overlaps operand ", ib, " (", timeline_.describe(b), ", bytes ",
                                         describe(b.range), b.writes ? ", written" : ", read",
                                         ") without a declared in-place pair on equal bytes"));
    }
  }
  aliasingFacts_ += accesses.size();
  return absl::OkStatus();
}

absl::Status EntryCheck::badBytes(const ByteOwners::Mismatch &mismatch, const std::string &who,
                                  const OperandAccess &access) const {
  const std::string bytes = absl::StrCat("bytes ", describe(mismatch.range), " of ", timeline_.describe(access));
  const auto wrote = lastWriter_.find({access.buffer, access.slot});
  std::string holder;
  if (mismatch.owner) {
    OperandAccess other;
    other.buffer = mismatch.owner->buffer;
    other.slot = mismatch.owner->slot;
    holder =
        absl::StrCat("they hold ", timeline_.describe(other),
                     mismatch.owner->writer ? absl::StrCat(", written by ", timeline_.describe(*mismatch.owner->writer))
                                            : std::string(", set before the entry began"));
  }
  if (wrote == lastWriter_.end())
    return counterexample("initialisation", absl::StrCat(who, " ", bytes, ", which nothing wrote before",
                                                         holder.empty() ? "" : absl::StrCat("; ", holder)));
  const std::string written = absl::StrCat("; the buffer was last written by ", timeline_.describe(wrote->second));
  if (holder.empty())
    return counterexample("initialisation",
                          absl::StrCat(who, " ", bytes, ", which hold no value of any buffer", written));
  return counterexample("no clobber", absl::StrCat(who, " ", bytes, ", but ", holder, written));
}

absl::Status EntryCheck::checkRead(CommandSite site, const OperandAccess &access) {
  ++readFacts_;
  const auto mismatch = owners_.findMismatch(access.range, access.buffer, access.slot);
  if (!mismatch)
    return absl::OkStatus();
  return badBytes(*mismatch, absl::StrCat(timeline_.describe(site), " reads"), access);
}

absl::Status EntryCheck::checkCommand(CommandSite site, const fbs::Command &command,
                                      absl::Span<const OperandAccess> accesses) {
  BOWLINE_RETURN_IF_ERROR(checkAliasing(site, command, accesses));
  for (const OperandAccess &access : accesses)
    if (access.reads)
      BOWLINE_RETURN_IF_ERROR(checkRead(site, access));
  if (const auto use = rows_.findUse(command, accesses))
    return counterexample("initialisation",
                          absl::StrCat(timeline_.describe(site), " reads all rows of ",
                                       timeline_.describe(accesses[use->operand]),
                                       ", or as many as another count says; ", timeline_.describe(use->writer),
                                       " left those behind its own count out"));
  rows_.advance(site, command, accesses);
  for (const OperandAccess &access : accesses) {
    if (access.writes) {
      owners_.assign(access.range, {access.buffer, access.slot, site});
      lastWriter_[{access.buffer, access.slot}] = site;
    }
  }
  // The contents of workspace are undefined once its command is over.
  for (const OperandAccess &access : accesses)
    if (plan_.buffers()->Get(access.buffer)->kind() == fbs::BufferKind::Scratch)
      owners_.erase(access.range);
  return absl::OkStatus();
}

absl::Status EntryCheck::checkOutputs() {
  const fbs::Entry &ports = *plan_.entries()->Get(entry_);
  for (uint32_t i = 0; i < SizeOf(ports.outputs()); ++i) {
    const fbs::Port &port = *ports.outputs()->Get(i);
    const fbs::Buffer &buffer = *plan_.buffers()->Get(port.buffer());
    for (uint32_t slot = 0; slot < buffer.slots(); ++slot) {
      ++outputFacts_;
      if (const auto writer = rows_.writerOf(port.buffer(), slot))
        return counterexample("outputs",
                              absl::StrCat("entry ", Quoted(ports.name()), " returns output ", Quoted(port.name()),
                                           ", of which ", timeline_.describe(*writer), " left rows out"));
      const auto mismatch = owners_.findMismatch(RangeOf(buffer, slot), port.buffer(), slot);
      if (!mismatch)
        continue;
      OperandAccess access;
      access.buffer = port.buffer();
      access.slot = slot;
      return badBytes(*mismatch,
                      absl::StrCat("entry ", Quoted(ports.name()), " returns as output ", Quoted(port.name())), access);
    }
  }
  return absl::OkStatus();
}

absl::Status EntryCheck::check() {
  absl::Status status;
  timeline_.forEachCommand(
      entry_, [&](CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses) {
        status = checkCommand(site, command, accesses);
        return status.ok();
      });
  BOWLINE_RETURN_IF_ERROR(status);
  if (const auto left = rows_.findPersistent())
    return counterexample("initialisation",
                          absl::StrCat(timeline_.describe(left->second), " leaves out rows of buffer ",
                                       left->first.first, " ", Quoted(plan_.buffers()->Get(left->first.first)->name()),
                                       ", which outlives the entry"));
  return checkOutputs();
}

uint32_t EntryCheck::statesWritten() const {
  uint32_t count = 0;
  for (const fbs::State *state : *plan_.states()) {
    const auto first = lastWriter_.lower_bound({state->buffer(), 0});
    count += first != lastWriter_.end() && first->first.first == state->buffer();
  }
  return count;
}

bool EntryCheck::holds(uint32_t index) const {
  const fbs::Buffer &buffer = *plan_.buffers()->Get(index);
  for (uint32_t slot = 0; slot < buffer.slots(); ++slot)
    if (owners_.findMismatch(RangeOf(buffer, slot), index, slot))
      return false;
  return true;
}

} // namespace bowline
