#include "runtime/comm/loopback/channel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/futex.h"
#include "runtime/comm/loopback/transfers.h"

namespace bowline {

Channel::Channel(ChannelOwner& owner, std::string name, absl::Span<const int> ranks, const LinkOptions& link)
    : owner_(owner),
      name_(std::move(name)),
      ranks_(ranks.begin(), ranks.end()),
      link_(link),
      meeting_(size()),
      views_(ranks_.size()) {
  for (int i = 0; i < size(); ++i) members_.push_back(std::make_unique<Member>(ranks_.size()));
}

absl::Status Channel::Run(int self, hal::Operation operation, absl::Span<const hal::HostPiece> pieces) {
  if (members_[self]->busy.exchange(true)) {
    return owner_.Break(absl::InvalidArgumentError(
        absl::StrCat("communicator '", name_, "': rank ", ranks_[self],
                     " has two operations at the same time; put them into one stream or order them with events")));
  }
  const absl::Status status = RunAlone(self, operation, pieces);
  members_[self]->busy.store(false);
  return status;
}

absl::Status Channel::RunAlone(int self, hal::Operation operation, absl::Span<const hal::HostPiece> pieces) {
  // This check comes before this member changes anything: if the group broke, others may still look at its state.
  BOWLINE_RETURN_IF_ERROR(owner_.status());
  Member& me = *members_[self];
  operation.number = me.next_number++;
  me.operation = operation;
  me.pieces = pieces;
  me.total.store(hal::TotalOf(pieces));
  if (!operation.concerns_two()) {
    views_[self] = pieces;
    me.collectives.fetch_add(1);
  }
  // Sequentially consistent: of two members that look at each other after this, one sees the other.
  me.current.store(operation.Pack());
  if (absl::Status status = CheckOthers(self, operation); !status.ok()) return owner_.Break(std::move(status));
  if (operation.kind == hal::OperationKind::kSend) return Send(self, operation);
  if (operation.kind == hal::OperationKind::kReceive) return Receive(self, operation);
  return Collective(self, operation);
}

absl::Status Channel::Collective(int self, const hal::Operation& operation) {
  const auto now = std::chrono::steady_clock::now();
  const auto late = [&] { owner_.Break(Late(self)).IgnoreError(); };
  if (!meeting_.Enter(now + owner_.timeout(), late)) return owner_.status();

  // After the meeting no member leaves before the end. All compare the same pairs, so all come to the same conclusion.
  absl::Status status;
  for (int other = 1; other < size() && status.ok(); ++other) status = CheckPair(0, other);
  if (status.ok()) status = CheckLink(self, operation);
  if (status.ok()) {
    const auto start = link_.emulated() ? std::chrono::steady_clock::now() : now;
    Move(self, operation);
    if (link_.emulated()) SleepUntil(start + TimeOnLink(link_, operation, hal::TotalOf(views_[self]), size()));
    // This member shows that its operation is over before the others can leave and look at it.
    members_[self]->current.store(0);
  }
  if (!status.ok()) status = owner_.Break(std::move(status));
  meeting_.Join();
  return status;
}

void Channel::Move(int self, const hal::Operation& operation) {
  const MemberView view = {views_, absl::MakeSpan(members_[self]->sources), static_cast<size_t>(self), operation.dtype};
  if (operation.kind == hal::OperationKind::kBarrier) return;
  if (operation.kind != hal::OperationKind::kAllReduce) return MoveParts(view, operation);
  ReduceShare(view, operation.op());
  meeting_.Join();
  CopyShares(view);
}

absl::Status Channel::Send(int self, const hal::Operation& operation) {
  const auto late = [&] { owner_.Break(Late(self)).IgnoreError(); };
  const auto deadline = std::chrono::steady_clock::now() + owner_.timeout();
  // The receiver clears `current`.
  if (members_[self]->outgoing.Send(operation.peer, deadline, late) == Mailbox::Result::kDone) return absl::OkStatus();
  return owner_.status();
}

absl::Status Channel::Receive(int self, const hal::Operation& operation) {
  const auto late = [&] { owner_.Break(Late(self)).IgnoreError(); };
  Member& sender = *members_[operation.peer];
  if (!sender.outgoing.Claim(self, std::chrono::steady_clock::now() + owner_.timeout(), late)) return owner_.status();

  absl::Status status = CheckPair(operation.peer, self);
  if (status.ok()) status = CheckLink(self, operation);
  if (status.ok()) {
    const auto start = link_.emulated() ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
    CopyPieces(sender.pieces, members_[self]->pieces, operation.dtype);
    if (link_.emulated())
      SleepUntil(start + TimeOnLink(link_, operation, hal::TotalOf(members_[self]->pieces), size()));
    members_[self]->current.store(0);
    sender.current.store(0);
  } else {
    status = owner_.Break(std::move(status));
  }
  sender.outgoing.Finish(!status.ok());
  return status;
}

absl::Status Channel::CheckOthers(int self, const hal::Operation& operation) const {
  for (int other = 0; other < size(); ++other) {
    if (other == self || (operation.concerns_two() && other != operation.peer)) continue;
    const hal::Operation theirs = hal::Operation::Unpack(members_[other]->current.load());
    if (theirs.kind == hal::OperationKind::kNone) continue;
    const bool waits_for_us = !theirs.concerns_two() || theirs.peer == self;
    const bool fits =
        operation.concerns_two() ? theirs.concerns_two() && theirs.kind != operation.kind : !theirs.concerns_two();
    if (waits_for_us && !fits) return Mismatch(std::min(self, other), std::max(self, other), "");
  }
  return absl::OkStatus();
}

absl::Status Channel::CheckPair(int a, int b) const {
  const Member &first = *members_[a], &second = *members_[b];
  // `operation` is read, not `current`, which a member that is faster may have cleared.
  const hal::Operation &ours = first.operation, &theirs = second.operation;
  const bool same = ours.concerns_two() ? ours.dtype == theirs.dtype : ours.Matches(theirs);
  if (!same) return Mismatch(a, b, "");
  if (ours.kind == hal::OperationKind::kBarrier) return absl::OkStatus();
  const size_t pieces = std::max(first.pieces.size(), second.pieces.size());
  for (size_t i = 0; i < pieces; ++i) {
    if (i < first.pieces.size() && i < second.pieces.size() && first.pieces[i].count == second.pieces[i].count) {
      continue;
    }
    if (first.pieces.size() == 1 && second.pieces.size() == 1) return Mismatch(a, b, "");
    return Mismatch(a, b,
                    absl::StrCat("; they have ", first.pieces.size(), " and ", second.pieces.size(),
                                 " pieces, and piece ", i, " differs"));
  }
  return absl::OkStatus();
}

absl::Status Channel::CheckLink(int self, const hal::Operation& operation) const {
  if (!link_.emulated()) return absl::OkStatus();
  const auto time = TimeOnLink(link_, operation, hal::TotalOf(members_[self]->pieces), size());
  if (time <= owner_.timeout()) return absl::OkStatus();
  const auto seconds = [](std::chrono::nanoseconds t) { return std::chrono::duration<double>(t).count(); };
  return absl::DeadlineExceededError(absl::StrCat(
      "communicator '", name_, "': the emulated link takes ", seconds(time), " s for ", DescribeMember(self),
      ", longer than the timeout of ", seconds(owner_.timeout()), " s; emulate a faster link or raise the timeout"));
}

absl::Status Channel::Report(int self, const hal::Operation& operation, uint64_t elements, uint64_t collectives) {
  BOWLINE_RETURN_IF_ERROR(owner_.status());
  Member& me = *members_[self];
  const uint64_t word = operation.Pack();
  const auto now = std::chrono::steady_clock::now();
  me.total.store(elements);
  me.reported.store(collectives);
  if (me.current.exchange(word) != word) me.reported_since = now;
  if (word == 0 || now - me.reported_since < owner_.timeout()) return absl::OkStatus();
  return owner_.Break(Late(self));
}

absl::Status Channel::Complain(int self, const std::string& failure) {
  const bool idle = members_[self]->current.load() == 0;
  std::vector<int> others;
  for (int other = 0; other < size(); ++other) {
    if (other != self) others.push_back(ranks_[other]);
  }
  return owner_.Break(absl::UnavailableError(absl::StrCat("rank ", ranks_[self], idle ? ", communicator '" : " in ",
                                                          idle ? name_ : DescribeMember(self), idle ? "'" : "", ": ",
                                                          failure, owner_.DescribeRanks(std::move(others)))));
}

void Channel::BreakOff() {
  meeting_.BreakOff();
  for (const std::unique_ptr<Member>& member : members_) member->outgoing.BreakOff();
}

std::string Channel::DescribeMember(int member) const {
  const hal::Operation operation = hal::Operation::Unpack(members_[member]->current.load());
  const int peer = operation.peer >= 0 ? ranks_[operation.peer] : -1;
  return absl::StrCat(Describe(operation, members_[member]->total.load(), peer), " (operation ", operation.number,
                      " of communicator '", name_, "')");
}

absl::Status Channel::Mismatch(int a, int b, const std::string& detail) const {
  return absl::InvalidArgumentError(absl::StrCat(
      "rank ", ranks_[a], " calls ", DescribeMember(a), ", but rank ", ranks_[b], " calls ", DescribeMember(b), detail,
      "; members must issue operations that belong together, in the same order"));
}

absl::Status Channel::Late(int self) const {
  std::vector<int> waits_for = WaitsFor(self);
  const double seconds = std::chrono::duration<double>(owner_.timeout()).count();
  std::string text = absl::StrCat("rank ", ranks_[self], " waited ", seconds, " s in ", DescribeMember(self), " for ",
                                  waits_for.size() == 1 ? "rank " : "ranks ", absl::StrJoin(waits_for, ", "));
  return absl::DeadlineExceededError(absl::StrCat(text, owner_.DescribeRanks(std::move(waits_for))));
}

std::vector<int> Channel::WaitsFor(int member) const {
  const hal::Operation operation = hal::Operation::Unpack(members_[member]->current.load());
  std::vector<int> result;
  if (operation.concerns_two()) return {ranks_[operation.peer]};
  const uint64_t collectives = CollectivesOf(member);
  for (int other = 0; other < size(); ++other) {
    if (CollectivesOf(other) < collectives) result.push_back(ranks_[other]);
  }
  return result;
}

std::string Channel::DescribeRank(int rank, std::vector<int>& waits_for) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end()) return "";
  const int member = static_cast<int>(found - ranks_.begin());
  if (members_[member]->current.load() == 0) return "";
  waits_for = WaitsFor(member);
  return DescribeMember(member);
}

}  // namespace bowline
