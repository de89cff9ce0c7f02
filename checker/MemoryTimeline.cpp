//===- MemoryTimeline.cpp - live bytes over the commands of an entry ------===//

#include "checker/MemoryTimeline.h"

#include "absl/strings/str_format.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace bowline {
namespace {

bool livesThroughout(fbs::BufferKind kind) { return IsPersistent(kind) || kind == fbs::BufferKind::Output; }

} // namespace

MemoryTimeline computeMemoryTimeline(const Timeline &timeline, uint32_t entry) {
  const fbs::Plan &plan = timeline.plan();
  MemoryTimeline result;
  for (const fbs::Buffer *buffer : *plan.buffers())
    if (buffer->role() == timeline.programOf(entry).role() && buffer->space() == fbs::MemorySpace::Device &&
        livesThroughout(buffer->kind()))
      result.persistentBytes += buffer->bytes() * buffer->slots();

  std::vector<MemoryTimeline::Tensor> values;
  std::map<std::pair<uint32_t, uint32_t>, size_t> current; // (buffer, slot) -> its value now
  uint64_t index = 0;
  timeline.forEachCommand(entry, [&](CommandSite, const fbs::Command &, absl::Span<const OperandAccess> accesses) {
    for (const OperandAccess &access : accesses) {
      const fbs::Buffer &buffer = *plan.buffers()->Get(access.buffer);
      if (livesThroughout(buffer.kind()) || buffer.bytes() == 0 || buffer.space() != fbs::MemorySpace::Device)
        continue;
      const auto [found, inserted] = current.try_emplace({access.buffer, access.slot}, values.size());
      const bool begins = access.writes && !access.reads && access.range.bytes() == buffer.bytes();
      if (inserted || (begins && values[found->second].last != index)) {
        found->second = values.size();
        // A value that is computed in place takes over the bytes of another one, which counts up to this command.
        const bool isInPlace = access.writes && std::any_of(accesses.begin(), accesses.end(), [&](const auto &other) {
                                 return other.reads && other.buffer != access.buffer && other.range == access.range;
                               });
        values.push_back({access.buffer, access.slot, buffer.bytes(), isInPlace ? index + 1 : index, index});
      } else {
        values[found->second].last = index;
      }
    }
    ++index;
    return true;
  });

  std::vector<uint64_t> begin(index + 1, 0), end(index + 1, 0);
  for (const MemoryTimeline::Tensor &value : values) {
    if (value.first > value.last)
      continue; // computed in place, and never used
    begin[value.first] += value.bytes;
    end[value.last + 1] += value.bytes;
  }
  uint64_t live = result.persistentBytes;
  for (uint64_t i = 0; i < index; ++i) {
    live = live + begin[i] - end[i];
    result.liveBytes.push_back(live);
    if (live > result.liveBytes[result.peakCommand])
      result.peakCommand = i;
  }
  for (const MemoryTimeline::Tensor &value : values)
    if (value.first <= result.peakCommand && result.peakCommand <= value.last)
      result.atPeak.push_back(value);
  std::sort(result.atPeak.begin(), result.atPeak.end(), [](const auto &a, const auto &b) {
    return std::tie(b.bytes, a.buffer, a.slot) < std::tie(a.bytes, b.buffer, b.slot);
  });
  index = 0;
  timeline.forEachCommand(entry, [&](CommandSite site, const fbs::Command &, absl::Span<const OperandAccess>) {
    result.peakSite = site;
    return index++ < result.peakCommand;
  });
  return result;
}

std::string plotMemory(const MemoryTimeline &memory, unsigned width, unsigned height) {
  const uint64_t commands = memory.liveBytes.size();
  if (commands == 0 || memory.peakBytes() == 0)
    return "";
  const unsigned columns = static_cast<unsigned>(std::min<uint64_t>(width, commands));
  std::string text;
  for (unsigned row = height; row > 0; --row) {
    absl::StrAppendFormat(&text, "%10.2f MiB |",
                          static_cast<double>(memory.peakBytes()) * row / height / (1024.0 * 1024.0));
    for (unsigned column = 0; column < columns; ++column) {
      const uint64_t first = commands * column / columns;
      const uint64_t last = std::max(first + 1, commands * (column + 1) / columns);
      const uint64_t top = *std::max_element(memory.liveBytes.begin() + static_cast<int64_t>(first),
                                             memory.liveBytes.begin() + static_cast<int64_t>(last));
      const double level = static_cast<double>(top) / static_cast<double>(memory.peakBytes()) * height;
      text += level > row - 0.5 ? '#' : level > row - 1.0 ? '.' : ' ';
    }
    while (text.back() == ' ')
      text.pop_back();
    text += "\n";
  }
  absl::StrAppendFormat(&text, "%15s+%s\n%16s%d commands\n", "", std::string(columns, '-'), "", commands);
  return text;
}

} // namespace bowline
