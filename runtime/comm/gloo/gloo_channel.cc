#include "runtime/comm/gloo/gloo_channel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/futex.h"
#include "runtime/comm/control/hub.h"
#include "runtime/comm/hash.h"

namespace bowline {
namespace {

uint64_t GreetingOf(const std::string& name, const std::vector<int>& ranks) {
  Hash hash;
  hash.Add(HashOf(name));
  for (int rank : ranks) hash.Add(static_cast<uint64_t>(rank));
  return hash.value();
}

double Seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

GlooChannel::GlooChannel(GlooOwner& owner, std::string name, std::vector<int> ranks, int self, const LinkOptions& link)
    : owner_(owner),
      name_(std::move(name)),
      ranks_(std::move(ranks)),
      self_(self),
      link_(link),
      greeting_(GreetingOf(name_, ranks_)),
      incoming_(ranks_.size()) {}

absl::Status GlooChannel::Connect(std::shared_ptr<gloo::transport::Device> device) {
  const int size = static_cast<int>(ranks_.size());
  BOWLINE_ASSIGN_OR_RETURN(mesh_, GlooMesh::Create(std::move(device), self_, size, owner_.timeout()));
  transfers_ = std::make_unique<GlooTransfers>(*mesh_, waits_for_);
  if (size == 1) return absl::OkStatus();
  creating_ = true;
  since_ = owner_.Now().time_since_epoch().count();
  visible_mesh_ = mesh_.get();
  const absl::Status status = ConnectToAll();
  since_ = 0;
  creating_ = false;
  if (!status.ok()) mesh_->Close();
  return status;
}

absl::Status GlooChannel::ConnectToAll() {
  const std::string wanted =
      WireWriter().List(ranks_).Text(absl::StrCat(link_.bandwidth, " B/s, ", link_.latency.count(), " ns")).bytes();
  WireWriter writer;
  writer.Text(wanted);
  for (const std::string& address : mesh_->addresses()) writer.Text(address);
  owner_.Put(CommunicatorKey(name_, ranks_[static_cast<size_t>(self_)]), writer.bytes());

  // All first, so that members that want different things learn it from each other.
  std::vector<std::string> addresses(ranks_.size());
  for (size_t member = 0; member < ranks_.size(); ++member) {
    if (static_cast<int>(member) == self_) continue;
    waits_for_ = static_cast<int>(member);
    const std::optional<std::string> value = owner_.Take(CommunicatorKey(name_, ranks_[member]));
    if (!value.has_value()) return owner_.status();
    WireReader reader(*value);
    const std::string theirs = reader.Text();
    if (theirs != wanted) return owner_.Break(OtherWish(ranks_[member], theirs));
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const std::string address = reader.Text();
      if (static_cast<int>(i) == self_) addresses[member] = address;
    }
  }
  for (size_t member = 0; member < ranks_.size(); ++member) {
    if (static_cast<int>(member) == self_) continue;
    waits_for_ = static_cast<int>(member);
    absl::Status status = mesh_->Connect(static_cast<int>(member), addresses[member]);
    if (status.ok()) {
      status = mesh_->Receive(Lane::kHeader, static_cast<int>(member), &incoming_[member], sizeof(Header));
    }
    if (!status.ok()) return Fail(status);
  }
  mesh_->Connected();
  waits_for_ = -1;
  return absl::OkStatus();
}

absl::Status GlooChannel::OtherWish(int rank, const std::string& theirs) const {
  WireReader reader(theirs);
  const std::vector<int> ranks = reader.List();
  const int own = ranks_[static_cast<size_t>(self_)];
  if (ranks == ranks_) {
    return absl::InvalidArgumentError(
        absl::StrCat("communicator '", name_, "': rank ", own, " wants another link than rank ", rank));
  }
  return absl::InvalidArgumentError(absl::StrCat("communicator '", name_, "': rank ", own, " wants the ranks ",
                                                 absl::StrJoin(ranks_, ", "), ", but rank ", rank, " wants the ranks ",
                                                 absl::StrJoin(ranks, ", ")));
}

absl::Status GlooChannel::Run(hal::Operation operation, absl::Span<const hal::HostPiece> pieces) {
  if (busy_.exchange(true)) {
    return owner_.Break(absl::InvalidArgumentError(
        absl::StrCat("communicator '", name_, "': rank ", ranks_[static_cast<size_t>(self_)],
                     " has two operations at the same time; put them into one stream or order them with events")));
  }
  absl::Status status = RunAlone(operation, pieces);
  // The caller may free the memory.
  if (!status.ok()) mesh_->Close();
  busy_ = false;
  return status;
}

absl::Status GlooChannel::RunAlone(hal::Operation operation, absl::Span<const hal::HostPiece> pieces) {
  BOWLINE_RETURN_IF_ERROR(owner_.status());
  const auto start = std::chrono::steady_clock::now();
  const uint64_t total = hal::TotalOf(pieces);
  operation.number = next_number_++;
  total_ = total;
  if (!operation.concerns_two()) ++collectives_;
  current_ = operation.Pack();
  since_ = owner_.Now().time_since_epoch().count();

  absl::Status status = Greet(operation, pieces);
  if (status.ok() && link_.emulated()) status = CheckLink(operation, total);
  if (status.ok()) {
    status = transfers_->Run(operation, pieces);
    if (!status.ok()) status = Fail(status);
  }
  if (status.ok() && link_.emulated()) {
    SleepUntil(start + TimeOnLink(link_, operation, total, static_cast<int>(ranks_.size())));
  }
  since_ = 0;
  current_ = 0;
  waits_for_ = -1;
  return status;
}

absl::Status GlooChannel::Greet(const hal::Operation& operation, absl::Span<const hal::HostPiece> pieces) {
  Hash counts;
  for (const hal::HostPiece& piece : pieces) counts.Add(piece.count);
  outgoing_ = {greeting_, operation.Pack(), hal::TotalOf(pieces), pieces.size(), counts.value()};
  const int size = static_cast<int>(ranks_.size());
  const auto for_each = [&](auto body) -> absl::Status {
    for (int n = 1; n < size; ++n) {
      const int peer = (self_ + n) % size;
      if (operation.concerns_two() && peer != operation.peer) continue;
      waits_for_ = peer;
      BOWLINE_RETURN_IF_ERROR(body(peer));
    }
    return absl::OkStatus();
  };
  const absl::Status sent =
      for_each([&](int peer) { return mesh_->Send(Lane::kHeader, peer, &outgoing_, sizeof(Header)); });
  if (!sent.ok()) return Fail(sent);
  absl::Status mismatch;
  const absl::Status received = for_each([&](int peer) -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(mesh_->WaitReceived(Lane::kHeader, peer));
    Header& place = incoming_[static_cast<size_t>(peer)];
    const Header theirs = place;
    // The receive for the next header starts now, as a peer may send it before this operation has ended here.
    BOWLINE_RETURN_IF_ERROR(mesh_->Receive(Lane::kHeader, peer, &place, sizeof(Header)));
    BOWLINE_RETURN_IF_ERROR(mesh_->WaitSent(Lane::kHeader, peer));
    return mismatch = Compare(operation, outgoing_, peer, theirs);
  });
  if (!mismatch.ok()) return owner_.Break(mismatch);
  return received.ok() ? received : Fail(received);
}

absl::Status GlooChannel::Compare(const hal::Operation& operation, const Header& mine, int peer,
                                  const Header& theirs) const {
  const int rank = ranks_[static_cast<size_t>(peer)];
  if (theirs.greeting != greeting_) {
    return absl::UnavailableError(
        absl::StrCat("communicator '", name_, "': somebody else than rank ", rank, " is connected in its place"));
  }
  const hal::Operation other = hal::Operation::Unpack(theirs.operation);
  const bool fits = operation.concerns_two()
                        ? other.concerns_two() && other.kind != operation.kind && other.dtype == operation.dtype
                        : operation.Matches(other);
  const bool same_pieces = mine.pieces == theirs.pieces && mine.counts == theirs.counts;
  if (fits && (same_pieces || operation.kind == hal::OperationKind::kBarrier)) return absl::OkStatus();
  std::string detail;
  if (fits && mine.pieces != theirs.pieces) {
    detail = absl::StrCat("; they have ", self_ < peer ? mine.pieces : theirs.pieces, " and ",
                          self_ < peer ? theirs.pieces : mine.pieces, " pieces");
  } else if (fits && mine.total == theirs.total) {
    detail = absl::StrCat("; their ", mine.pieces, " pieces have other sizes");
  }
  const int first = std::min(self_, peer), second = std::max(self_, peer);
  return absl::InvalidArgumentError(absl::StrCat(
      "rank ", ranks_[static_cast<size_t>(first)], " calls ", WhatOf(first == self_ ? mine : theirs), ", but rank ",
      ranks_[static_cast<size_t>(second)], " calls ", WhatOf(second == self_ ? mine : theirs), detail,
      "; members must issue operations that belong together, in the same order"));
}

std::string GlooChannel::WhatOf(const Header& header) const {
  Activity activity;
  activity.communicator = name_;
  activity.ranks = ranks_;
  activity.operation = header.operation;
  activity.total = header.total;
  return bowline::Describe(activity);
}

absl::Status GlooChannel::CheckLink(const hal::Operation& operation, uint64_t total) {
  const auto time = TimeOnLink(link_, operation, total, static_cast<int>(ranks_.size()));
  if (time <= owner_.timeout()) return absl::OkStatus();
  return owner_.Break(absl::DeadlineExceededError(absl::StrCat(
      "communicator '", name_, "': the emulated link takes ", Seconds(time), " s for ", bowline::Describe(Describe()),
      ", longer than the timeout of ", Seconds(owner_.timeout()), " s; emulate a faster link or raise the timeout")));
}

absl::Status GlooChannel::Report(const hal::Operation& operation, uint64_t elements, uint64_t collectives) {
  BOWLINE_RETURN_IF_ERROR(owner_.status());
  const uint64_t word = operation.Pack();
  total_ = elements;
  reported_ = collectives;
  if (current_.exchange(word) != word) since_ = word == 0 ? 0 : owner_.Now().time_since_epoch().count();
  return absl::OkStatus();
}

absl::Status GlooChannel::Fail(const absl::Status& failure) {
  BOWLINE_RETURN_IF_ERROR(owner_.status());
  Complaint complaint;
  complaint.activity = Describe();
  complaint.failure = std::string(failure.message());
  if (const int member = waits_for_; member >= 0) complaint.unreachable = ranks_[static_cast<size_t>(member)];
  return owner_.Fail(complaint);
}

Activity GlooChannel::Describe() const {
  Activity activity;
  activity.communicator = name_;
  activity.ranks = ranks_;
  activity.operation = current_;
  activity.total = total_;
  activity.collectives = collectives_ + reported_;
  activity.creating = creating_;
  const hal::Operation operation = hal::Operation::Unpack(activity.operation);
  const int member = operation.concerns_two() ? operation.peer : waits_for_.load();
  if (!activity.idle() && member >= 0) activity.waits_for = {ranks_[static_cast<size_t>(member)]};
  return activity;
}

std::chrono::nanoseconds GlooChannel::Elapsed(Clock::time_point now) const {
  const int64_t since = since_;
  return since == 0 ? std::chrono::nanoseconds(0) : now.time_since_epoch() - std::chrono::nanoseconds(since);
}

void GlooChannel::Interrupt() {
  if (GlooMesh* mesh = visible_mesh_; mesh != nullptr) mesh->Interrupt();
}

}  // namespace bowline
