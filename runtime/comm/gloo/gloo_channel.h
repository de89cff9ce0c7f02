#ifndef BOWLINE_RUNTIME_COMM_GLOO_GLOO_CHANNEL_H_
#define BOWLINE_RUNTIME_COMM_GLOO_GLOO_CHANNEL_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/comm/control/activity.h"
#include "runtime/comm/control/timing.h"
#include "runtime/comm/gloo/transfers.h"
#include "runtime/comm/link.h"

namespace bowline {

// The functions of a group that the channels of the group call.
class GlooOwner {
 public:
  virtual ~GlooOwner() = default;

  virtual std::chrono::nanoseconds timeout() const = 0;
  // The error that broke the run; OK as long as the run is whole.
  virtual absl::Status status() const = 0;
  // Break the run: with `why`, or with the cause that the ranks find for the complaint. Return the error that broke it.
  virtual absl::Status Break(const absl::Status& why) = 0;
  virtual absl::Status Fail(const Complaint& complaint) = 0;
  // The steady clock less the time in which this process was stopped.
  virtual Clock::time_point Now() const = 0;
  // Texts by key, that all ranks see; nothing when the run breaks.
  virtual void Put(const std::string& key, const std::string& value) = 0;
  virtual std::optional<std::string> Take(const std::string& key) = 0;
};

// A member's end of a communicator. The member begins each operation by sending a header that describes the operation
// to every member involved. Headers between two members keep their order, so mismatched operations meet.
class GlooChannel {
 public:
  GlooChannel(GlooOwner& owner, std::string name, std::vector<int> ranks, int self, const LinkOptions& link);

  const std::string& name() const { return name_; }
  const std::vector<int>& ranks() const { return ranks_; }
  int self() const { return self_; }
  const LinkOptions& link() const { return link_; }

  // Tells the other members where to connect to, and connects to all of them.
  absl::Status Connect(std::shared_ptr<gloo::transport::Device> device);

  // Runs an operation to its end; operation.number is filled in here.
  absl::Status Run(hal::Operation operation, absl::Span<const hal::HostPiece> pieces);

  // The functions of hal::Exchange with these names.
  absl::Status Break(const absl::Status& why) { return owner_.Break(why); }
  absl::Status status() const { return owner_.status(); }
  absl::Status Report(const hal::Operation& operation, uint64_t elements, uint64_t collectives);
  absl::Status Complain(const std::string& failure) { return Fail(absl::UnavailableError(failure)); }

  // The activity of this member on the communicator; may be called from any thread.
  Activity Describe() const;
  // How long the operation, or creation, that is under way takes at `now`; zero for none.
  std::chrono::nanoseconds Elapsed(Clock::time_point now) const;
  void Interrupt();

 private:
  struct Header {
    uint64_t greeting = 0;  // the number by which members know this communicator
    uint64_t operation = 0;
    uint64_t total = 0;
    uint64_t pieces = 0;
    uint64_t counts = 0;  // hash of the pieces' counts
  };

  absl::Status ConnectToAll();
  absl::Status OtherWish(int rank, const std::string& theirs) const;
  absl::Status RunAlone(hal::Operation operation, absl::Span<const hal::HostPiece> pieces);
  absl::Status Greet(const hal::Operation& operation, absl::Span<const hal::HostPiece> pieces);
  absl::Status Compare(const hal::Operation& operation, const Header& mine, int peer, const Header& theirs) const;
  absl::Status CheckLink(const hal::Operation& operation, uint64_t total);
  std::string WhatOf(const Header& header) const;
  // Breaks the run because of the error of a transfer, and returns the error that broke it.
  absl::Status Fail(const absl::Status& failure);

  GlooOwner& owner_;
  const std::string name_;
  const std::vector<int> ranks_;
  const int self_;
  const LinkOptions link_;
  const uint64_t greeting_;

  std::vector<Header> incoming_;
  Header outgoing_;
  std::unique_ptr<GlooTransfers> transfers_;
  std::unique_ptr<GlooMesh> mesh_;  // destroyed before the members above, to which it writes
  uint32_t next_number_ = 0;

  // Read by others at any time.
  std::atomic<GlooMesh*> visible_mesh_{nullptr};
  std::atomic<bool> busy_{false}, creating_{false};
  std::atomic<int64_t> since_{0};  // ns of ControlClient::Now; 0 for no operation
  std::atomic<uint64_t> current_{0}, total_{0}, collectives_{0};
  std::atomic<uint64_t> reported_{0};  // collectives that a library of the device began
  std::atomic<int> waits_for_{-1};     // a member
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_GLOO_GLOO_CHANNEL_H_
