#ifndef BOWLINE_RUNTIME_COMM_LOOPBACK_CHANNEL_H_
#define BOWLINE_RUNTIME_COMM_LOOPBACK_CHANNEL_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/comm/link.h"
#include "runtime/comm/loopback/rendezvous.h"
#include "runtime/hal/exchange.h"

namespace bowline {

// The functions of a group that the channels of the group call.
class ChannelOwner {
 public:
  virtual ~ChannelOwner() = default;

  virtual std::chrono::nanoseconds timeout() const = 0;
  // The error that broke the group; OK as long as the group is whole. Cheap while it is whole.
  virtual absl::Status status() const = 0;
  // Breaks the group with `why`, unless it is broken already. Returns the error that broke the group first.
  virtual absl::Status Break(absl::Status why) = 0;
  // "rank 3 is in ...": the operations of `ranks`, and of the ranks that they wait for.
  virtual std::string DescribeRanks(std::vector<int> ranks) const = 0;
};

// The state that the members of one communicator share.
class Channel {
 public:
  Channel(ChannelOwner& owner, std::string name, absl::Span<const int> ranks, const LinkOptions& link);

  const std::string& name() const { return name_; }
  const std::vector<int>& ranks() const { return ranks_; }
  const LinkOptions& link() const { return link_; }
  int size() const { return static_cast<int>(ranks_.size()); }

  // Runs an operation of member `self` to its end; operation.number is filled in here.
  absl::Status Run(int self, hal::Operation operation, absl::Span<const hal::HostPiece> pieces);

  // The functions of hal::Exchange with these names.
  absl::Status Break(absl::Status why) { return owner_.Break(std::move(why)); }
  absl::Status status() const { return owner_.status(); }

  absl::Status Report(int self, const hal::Operation& operation, uint64_t elements, uint64_t collectives);
  absl::Status Complain(int self, const std::string& failure);

  void BreakOff();

  // The operation of `rank` here, empty for none, and the ranks that it waits for. May be asked at any time.
  std::string DescribeRank(int rank, std::vector<int>& waits_for) const;

 private:
  struct alignas(128) Member {
    explicit Member(size_t members) : sources(members) {}

    // Read by others when a meeting or the mailbox says that they are there.
    hal::Operation operation;
    absl::Span<const hal::HostPiece> pieces;
    std::vector<const void*> sources;  // workspace
    uint32_t next_number = 0;
    std::chrono::steady_clock::time_point reported_since;  // of the rank that reports

    // Read by others at any time.
    std::atomic<uint64_t> current{0};  // hal::Operation::Pack
    std::atomic<uint64_t> total{0};
    std::atomic<uint64_t> collectives{0};  // begun here
    std::atomic<uint64_t> reported{0};     // begun by a library of the device
    std::atomic<bool> busy{false};
    Mailbox outgoing;
  };

  absl::Status RunAlone(int self, hal::Operation operation, absl::Span<const hal::HostPiece> pieces);
  absl::Status Collective(int self, const hal::Operation& operation);
  absl::Status Send(int self, const hal::Operation& operation);
  absl::Status Receive(int self, const hal::Operation& operation);

  void Move(int self, const hal::Operation& operation);
  // Refuses operations that never meet: a member of `operation` is in an operation that waits for `self`.
  absl::Status CheckOthers(int self, const hal::Operation& operation) const;
  absl::Status CheckPair(int a, int b) const;
  absl::Status CheckLink(int self, const hal::Operation& operation) const;

  absl::Status Mismatch(int a, int b, const std::string& detail) const;
  absl::Status Late(int self) const;
  std::string DescribeMember(int member) const;
  std::vector<int> WaitsFor(int member) const;
  uint64_t CollectivesOf(int member) const {
    return members_[member]->collectives.load() + members_[member]->reported.load();
  }

  ChannelOwner& owner_;
  const std::string name_;
  const std::vector<int> ranks_;
  const LinkOptions link_;
  MeetingPoint meeting_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<absl::Span<const hal::HostPiece>> views_;  // each member writes its own before a meeting
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_LOOPBACK_CHANNEL_H_
