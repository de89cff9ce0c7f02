//===- EntryCheck.cpp - proofs along the timeline of one entry ------------===//

#include "checker/EntryCheck.h"

#include "checker/Counterexample.h"
#include "checker/ValidRowsOf.h"
#include "runtime/plan/view/buffer_view.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <tuple>

namespace bowline {

EntryCheck::EntryCheck(const Timeline &timeline, uint32_t entry, const std::vector<bool> &held)
    : timeline_(timeline), plan_(timeline.plan()), entry_(entry), rows_(plan_) {
  const auto own = [&](uint32_t index) {
    const fbs::Buffer &buffer = *plan_.buffers()->Get(index);
    for (uint32_t slot = 0; slot < buffer.slots(); ++slot)
      owners_.assign(RangeOf(buffer, slot), {index, slot, std::nullopt});
  };
  const uint16_t role = timeline.programOf(entry).role();
  for (uint32_t i = 0; i < plan_.buffers()->size(); ++i)
    if (held[i] && plan_.buffers()->Get(i)->role() == role)
      own(i);
  const fbs::Entry &ports = *plan_.entries()->Get(entry);
  for (uint32_t i = 0; i < SizeOf(ports.inputs()); ++i)
    own(ports.inputs()->Get(i)->buffer());
}

bool EntryCheck::isDeclaredInPlace(const fbs::Command &command, uint32_t output, uint32_t input) {
  const auto bufferOf = [&](const fbs::Operand &operand) -> const fbs::Buffer & {
    return *plan_.buffers()->Get(operand.buffer());
  };
  if (const fbs::Collective *collective = command.body_as_Collective()) {
    if (input % 2 != 0 || output != input + 1)
      return false;
    const fbs::Piece &piece = *collective->pieces()->Get(input / 2);
    return MayBeInPlace(plan_, *collective, piece.count() * ElementSize(collective->dtype()), bufferOf(piece.source()),
                        bufferOf(piece.destination()));
  }
  const fbs::Launch *launch = command.body_as_Launch();
  if (!launch)
    return false;
  const auto [pairs, isNew] = inPlace_.try_emplace(launch->kernel());
  if (isNew) {
    const auto *declared = plan_.kernels()->Get(launch->kernel())->in_place();
    for (uint32_t i = 0; i < SizeOf(declared); ++i)
      pairs->second.emplace(declared->Get(i)->output(), declared->Get(i)->input());
  }
  return pairs->second.count({output, input}) > 0 &&
         LieAlike(bufferOf(*launch->operands()->Get(output)), bufferOf(*launch->operands()->Get(input)));
}

absl::Status EntryCheck::badAlias(CommandSite site, absl::Span<const OperandAccess> accesses, uint32_t a,
                                  uint32_t b) const {
  const auto name = [&](uint32_t i) {
    return absl::StrCat("operand ", i, " (", timeline_.describe(accesses[i]), ", bytes ", describe(accesses[i].range),
                        accesses[i].writes ? ", written)" : ", read)");
  };
  return counterexample("aliasing", absl::StrCat(timeline_.describe(site), ": ", name(a), " overlaps ", name(b),
                                                 " without a declared in-place pair on equal bytes"));
}

absl::Status EntryCheck::checkEqualBytes(CommandSite site, const fbs::Command &command,
                                         absl::Span<const OperandAccess> accesses, size_t first, size_t last) {
  // No more pairs than declared ones are looked at before one that is not.
  for (size_t i = first; i < last; ++i) {
    if (!accesses[order_[i]].writes)
      continue;
    for (size_t j = first; j < last; ++j) {
      const uint32_t a = order_[i], b = order_[j];
      if (a != b && !isDeclaredInPlace(command, a, b) && !isDeclaredInPlace(command, b, a))
        return badAlias(site, accesses, std::min(a, b), std::max(a, b));
    }
  }
  return absl::OkStatus();
}

absl::Status EntryCheck::checkAliasing(CommandSite site, const fbs::Command &command,
                                       absl::Span<const OperandAccess> accesses) {
  order_.clear();
  for (uint32_t i = 0; i < accesses.size(); ++i)
    if (accesses[i].range.bytes() > 0)
      order_.push_back(i);
  std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
    const ByteRange &x = accesses[a].range, &y = accesses[b].range;
    return std::tie(x.begin, x.end, a) < std::tie(y.begin, y.end, b);
  });
  // Whatever overlaps a range and begins before it overlaps it through the one that reaches farthest.
  std::optional<uint32_t> farthest, farthestWritten;
  const auto reach = [&](std::optional<uint32_t> &known, uint32_t i) {
    if (!known || accesses[*known].range.end < accesses[i].range.end)
      known = i;
  };
  for (size_t first = 0, last = 0; first < order_.size(); first = last) {
    const ByteRange range = accesses[order_[first]].range;
    std::optional<uint32_t> writer;
    for (last = first; last < order_.size() && accesses[order_[last]].range == range; ++last)
      if (accesses[order_[last]].writes)
        writer = order_[last];
    BOWLINE_RETURN_IF_ERROR(checkEqualBytes(site, command, accesses, first, last));
    const std::optional<uint32_t> &before = writer ? farthest : farthestWritten;
    if (before && accesses[*before].range.end > range.begin)
      return badAlias(site, accesses, *before, writer.value_or(order_[first]));
    reach(farthest, order_[first]);
    if (writer)
      reach(farthestWritten, *writer);
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
  // Of a rank's own part it is enough that the rank wrote it, whatever the other ranks' parts hold here.
  if (!mismatch || (access.byRank && !parts_.findMismatch(access.range, *access.byRank, access.slot)))
    return absl::OkStatus();
  return badBytes(*mismatch, absl::StrCat(timeline_.describe(site), " reads"), access);
}

void EntryCheck::write(CommandSite site, const OperandAccess &access) {
  lastWriter_[{access.buffer, access.slot}] = site;
  parts_.erase(access.range);
  if (!access.byRank)
    return owners_.assign(access.range, {access.buffer, access.slot, site});
  // Which of these bytes are written is known to each rank alone: afterwards none holds the value of another buffer.
  owners_.eraseOthers(access.range, access.buffer, access.slot);
  const fbs::Buffer &view = *plan_.buffers()->Get(*access.byRank);
  if (access.range.bytes() == SpreadOf(plan_, view) + view.bytes())
    parts_.assign(access.range, {*access.byRank, access.slot, site});
}

absl::Status EntryCheck::checkRowsByRank(CommandSite site, const fbs::Command &command,
                                         absl::Span<const OperandAccess> accesses) const {
  const fbs::Launch *launch = command.body_as_Launch();
  if (!launch || std::none_of(accesses.begin(), accesses.end(), [](const auto &access) { return access.byRank; }) ||
      !validRowsOf(*plan_.kernels()->Get(launch->kernel())))
    return absl::OkStatus();
  return counterexample("initialisation",
                        absl::StrCat(timeline_.describe(site), " leaves rows out, and takes a view that lies by rank"));
}

absl::Status EntryCheck::checkCommand(CommandSite site, const fbs::Command &command,
                                      absl::Span<const OperandAccess> accesses) {
  BOWLINE_RETURN_IF_ERROR(checkAliasing(site, command, accesses));
  BOWLINE_RETURN_IF_ERROR(checkRowsByRank(site, command, accesses));
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
  for (const OperandAccess &access : accesses)
    if (access.writes)
      write(site, access);
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

bool EntryCheck::writes(uint32_t buffer) const {
  const auto first = lastWriter_.lower_bound({buffer, 0});
  return first != lastWriter_.end() && first->first.first == buffer;
}

uint32_t EntryCheck::statesWritten() const {
  uint32_t count = 0;
  for (const fbs::State *state : *plan_.states())
    count += writes(state->buffer());
  return count;
}

std::optional<ByteRange> EntryCheck::findUnset(uint32_t index) const {
  const fbs::Buffer &buffer = *plan_.buffers()->Get(index);
  for (uint32_t slot = 0; slot < buffer.slots(); ++slot)
    if (const auto mismatch = owners_.findMismatch(RangeOf(buffer, slot), index, slot))
      return mismatch->range;
  return std::nullopt;
}

} // namespace bowline
