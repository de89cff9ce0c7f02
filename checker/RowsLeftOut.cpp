//===- RowsLeftOut.cpp - rows that hold no value --------------------------===//

#include "checker/RowsLeftOut.h"

#include "checker/ValidRowsOf.h"

#include <algorithm>

namespace bowline {

std::optional<RowsLeftOut::Limit> RowsLeftOut::limitOf(const fbs::Command &command,
                                                       absl::Span<const OperandAccess> accesses, size_t operand) const {
  const fbs::Launch *launch = command.body_as_Launch();
  if (!launch)
    return std::nullopt;
  const fbs::Kernel &kernel = *plan_.kernels()->Get(launch->kernel());
  const std::optional<kernels::ValidRows> rows = validRowsOf(kernel);
  if (!rows || std::find(rows->arguments.begin(), rows->arguments.end(), operand) == rows->arguments.end() ||
      rows->count >= accesses.size() || operand >= SizeOf(kernel.arguments()))
    return std::nullopt;
  const auto *shape = kernel.arguments()->Get(static_cast<uint32_t>(operand))->shape();
  if (SizeOf(shape) == 0 || shape->Get(0) < 1)
    return std::nullopt;
  const OperandAccess &number = accesses[rows->count];
  const auto writes = writes_.find({number.buffer, number.slot});
  return Limit{{number.buffer, number.slot, number.range.end, writes == writes_.end() ? 0 : writes->second},
               accesses[operand].range.bytes() / static_cast<uint64_t>(shape->Get(0))};
}

std::optional<RowsLeftOut::Use> RowsLeftOut::findUse(const fbs::Command &command,
                                                     absl::Span<const OperandAccess> accesses) const {
  if (missing_.empty())
    return std::nullopt;
  for (size_t i = 0; i < accesses.size(); ++i) {
    const OperandAccess &access = accesses[i];
    const auto missing = missing_.find({access.buffer, access.slot});
    if (!access.reads || missing == missing_.end())
      continue;
    const std::optional<Limit> limit = limitOf(command, accesses, i);
    const Missing &rows = missing->second;
    if (!limit || !(limit->count == rows.count) || access.range.begin != rows.range.begin ||
        limit->rowBytes > rows.rowBytes)
      return Use{i, rows.writer};
  }
  return std::nullopt;
}

void RowsLeftOut::advance(CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> accesses) {
  // The count is read before anything is written.
  std::vector<std::optional<Limit>> limits(accesses.size());
  for (size_t i = 0; i < accesses.size(); ++i)
    if (accesses[i].writes)
      limits[i] = limitOf(command, accesses, i);
  for (size_t i = 0; i < accesses.size(); ++i) {
    const OperandAccess &access = accesses[i];
    if (!access.writes)
      continue;
    const Slot slot = {access.buffer, access.slot};
    ++writes_[slot];
    const auto missing = missing_.find(slot);
    const bool stays =
        missing != missing_.end() && (access.byRank || access.range.begin > missing->second.range.begin ||
                                      access.range.end < missing->second.range.end);
    if (limits[i]) {
      Missing left = {limits[i]->count, access.range, limits[i]->rowBytes, site};
      if (stays) {
        // No count says which rows of both ranges are there: rows of no bytes, which nobody reads.
        left.range = {std::min(left.range.begin, missing->second.range.begin),
                      std::max(left.range.end, missing->second.range.end)};
        left.rowBytes = 0;
      }
      missing_.insert_or_assign(slot, left);
    } else if (missing != missing_.end() && !stays) {
      missing_.erase(missing);
    }
  }
}

std::optional<CommandSite> RowsLeftOut::writerOf(uint32_t buffer, uint32_t slot) const {
  const auto missing = missing_.find({buffer, slot});
  return missing == missing_.end() ? std::nullopt : std::optional(missing->second.writer);
}

std::optional<std::pair<RowsLeftOut::Slot, CommandSite>> RowsLeftOut::findPersistent() const {
  for (const auto &[slot, missing] : missing_)
    if (IsPersistent(plan_.buffers()->Get(slot.first)->kind()))
      return std::make_pair(slot, missing.writer);
  return std::nullopt;
}

} // namespace bowline
