//===- OrderThroughRanks.cpp - order by other ranks -----------------------===//

#include "checker/OrderThroughRanks.h"

#include "checker/StreamOrder.h"
#include "runtime/plan/view/collective_view.h"

#include <algorithm>
#include <memory>

namespace bowline {
namespace {

/// The limits beyond which find() returns nothing: numbers in all clocks, and numbers that are compared.
constexpr uint64_t kMostWords = uint64_t{1} << 26, kMostWork = uint64_t{1} << 31;

/// The commands of a role, in the order of issue.
class RoleCursor {
public:
  RoleCursor(const fbs::Program &program, size_t width, size_t first)
      : program_(program), first_(first), order_(program, IssueMode::Asynchronous, width, first) {}

  StreamOrder &order() { return order_; }
  size_t first() const { return first_; }
  size_t streams() const { return SizeOf(program_.streams()); }

  /// Issues all that comes before the command.
  void advanceTo(CommandSite site) {
    for (; call_ < site.call; ++call_, command_ = 0)
      issueUntil(SizeOf(commands()));
    issueUntil(site.command);
  }

  /// Issues the command that the cursor came to.
  void issueNext() { issueUntil(command_ + 1); }

private:
  const flatbuffers::Vector<flatbuffers::Offset<fbs::Command>> *commands() const {
    return program_.segments()->Get(program_.timeline()->Get(call_)->segment())->commands();
  }

  void issueUntil(uint32_t end) {
    const uint32_t slot = program_.timeline()->Get(call_)->slot();
    for (; command_ < end; ++command_) {
      const fbs::Command &command = *commands()->Get(command_);
      if (const fbs::Signal *signal = command.body_as_Signal())
        order_.signal(command.stream(), EventOf(*signal, slot));
      else if (const fbs::Wait *wait = command.body_as_Wait())
        order_.wait(command.stream(), EventOf(*wait, slot)); // another proof says that it was signalled
      else
        order_.issue(command.stream());
    }
  }

  const fbs::Program &program_;
  const size_t first_;
  StreamOrder order_;
  uint32_t call_ = 0, command_ = 0; // the place of the next command
};

} // namespace

std::optional<OrderThroughRanks> OrderThroughRanks::find(const Timeline &timeline, const Communications &communications,
                                                         absl::Span<const uint32_t> numbers) {
  const uint32_t roles = communications.roles();
  size_t width = 0;
  for (uint32_t role = 0; role < roles; ++role)
    if (!communications.of(role).empty())
      width += SizeOf(timeline.programOf(communications.of(role).front().site.entry).streams());
  // `words` counts the numbers in the clocks of streams, events and communications.
  uint64_t words = uint64_t{width} * width, work = 0;
  std::vector<std::unique_ptr<RoleCursor>> cursors(roles); // null: no order goes through the role
  OrderThroughRanks result;
  size_t first = 0;
  for (uint32_t role = 0; role < roles; ++role) {
    result.over_.emplace_back(communications.of(role).size());
    if (communications.of(role).empty())
      continue;
    const uint32_t entry = communications.of(role).front().site.entry;
    const fbs::Program &program = timeline.programOf(entry);
    words += uint64_t{program.events()} * width + communications.of(role).size() * SizeOf(program.streams());
    work += timeline.commandCount(entry) * width;
    if (words > kMostWords || work > kMostWork)
      return std::nullopt;
    cursors[role] = std::make_unique<RoleCursor>(program, width, first);
    first += cursors[role]->streams();
  }
  std::vector<uint32_t> byNumber(numbers.size());
  for (uint32_t operation = 0; operation < numbers.size(); ++operation)
    byNumber[numbers[operation]] = operation;
  // Numbers increase with the order of issue of each role, so that no cursor goes back.
  std::vector<uint32_t> begun(width);
  for (const uint32_t operation : byNumber) {
    begun.assign(width, 0);
    bool meetsAll = true;
    for (const Participation &member : communications.membersOf(operation)) {
      const Communications::Part &part = communications.at(member);
      const fbs::Collective *collective = part.command->body_as_Collective();
      meetsAll &= collective == nullptr || DefinitionOf(collective->kind()).meetsAll();
      cursors[member.role]->advanceTo(part.site);
      const absl::Span<const uint32_t> clock = cursors[member.role]->order().clock(part.command->stream());
      for (size_t i = 0; i < width; ++i)
        begun[i] = std::max(begun[i], clock[i]);
    }
    for (const Participation &member : communications.membersOf(operation)) {
      RoleCursor &cursor = *cursors[member.role];
      cursor.issueNext();
      // On a ring only a member's neighbours must have begun, which says nothing of the other members.
      if (meetsAll)
        cursor.order().join(communications.at(member).command->stream(), begun);
      const absl::Span<const uint32_t> own = absl::MakeConstSpan(begun).subspan(cursor.first(), cursor.streams());
      if (meetsAll)
        result.over_[member.role][member.index].assign(own.begin(), own.end());
    }
  }
  return result;
}

} // namespace bowline
