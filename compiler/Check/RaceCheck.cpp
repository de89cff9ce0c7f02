//===- RaceCheck.cpp - conflicts between unordered streams ----------------===//

#include "compiler/Check/RaceCheck.h"

#include "compiler/Check/PlanChecker.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace bowline {
namespace {

struct StreamAccess {
  OperandAccess access;
  CommandSite site;
  uint16_t stream;
};

/// Of the ranges seen, the one that reaches farthest, and the one that does so among those of all other streams.
class Farthest {
public:
  void add(const StreamAccess *item) {
    if (!first_ || item->access.range.end > first_->access.range.end) {
      if (first_ && first_->stream != item->stream)
        second_ = first_;
      first_ = item;
    } else if (item->stream != first_->stream && (!second_ || item->access.range.end > second_->access.range.end)) {
      second_ = item;
    }
  }
  const StreamAccess *ofOtherThan(uint16_t stream) const {
    return first_ && first_->stream != stream ? first_ : second_;
  }

private:
  const StreamAccess *first_ = nullptr, *second_ = nullptr;
};

} // namespace

absl::Status checkRaces(const Timeline &timeline, uint32_t entry) {
  std::vector<StreamAccess> accesses;
  const fbs::Program &program = timeline.programOf(entry);
  // A repeated call with the same slot touches the same bytes.
  std::set<std::pair<uint32_t, uint32_t>> seen;
  std::vector<bool> repeated(SizeOf(program.timeline()));
  for (uint32_t i = 0; i < repeated.size(); ++i)
    repeated[i] = !seen.emplace(program.timeline()->Get(i)->segment(), program.timeline()->Get(i)->slot()).second;
  timeline.forEachCommand(entry,
                          [&](CommandSite site, const fbs::Command &command, absl::Span<const OperandAccess> operands) {
                            if (repeated[site.call])
                              return true;
                            for (const OperandAccess &operand : operands)
                              if (operand.range.bytes() > 0)
                                accesses.push_back({operand, site, command.stream()});
                            return true;
                          });
  std::sort(accesses.begin(), accesses.end(), [](const StreamAccess &a, const StreamAccess &b) {
    return std::tie(a.access.range.begin, a.site.call, a.site.command, a.access.buffer) <
           std::tie(b.access.range.begin, b.site.call, b.site.command, b.access.buffer);
  });
  Farthest any, writes;
  for (const StreamAccess &item : accesses) {
    const StreamAccess *other = (item.access.writes ? any : writes).ofOtherThan(item.stream);
    if (other && other->access.range.end > item.access.range.begin) {
      const auto name = [&](const StreamAccess &a) {
        return absl::StrCat(timeline.describe(a.site), ", on stream ", Quoted(program.streams()->Get(a.stream)), ", ",
                            a.access.writes ? "writes" : "reads", " ", timeline.describe(a.access), ", bytes ",
                            describe(a.access.range));
      };
      return counterexample("no race",
                            absl::StrCat(name(*other), "; and ", name(item), "; nothing orders the two streams"));
    }
    any.add(&item);
    if (item.access.writes)
      writes.add(&item);
  }
  return absl::OkStatus();
}

} // namespace bowline
