#ifndef BOWLINE_RUNTIME_COMM_GLOO_GLOO_GROUP_H_
#define BOWLINE_RUNTIME_COMM_GLOO_GLOO_GROUP_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/comm/control/client.h"
#include "runtime/comm/control/hub.h"
#include "runtime/comm/control/rendezvous.h"
#include "runtime/comm/gloo/gloo_channel.h"
#include "runtime/comm/group.h"

namespace bowline {

struct GlooOptions {
  int rank = 0;
  int ranks = 1;
  Rendezvous rendezvous = {};  // not needed for one rank
  // For rank 0, a socket that listens at the rendezvous already, which the group takes over; -1: it makes its own.
  int listener = -1;
  // How long an operation waits for another rank. A rank that died is noticed at once, one that was stopped or cut off
  // within this time; then, or when an operation takes longer, all ranks get the same error.
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);
  // The time for which a rank waits until all others have started.
  std::chrono::nanoseconds rendezvous_timeout = std::chrono::minutes(5);
  // The numeric address of this machine's interface to the others; empty takes that of the one that leads to rank 0.
  std::string address = {};
};

// Ranks that are processes, with a TCP connection between any two members of a communicator, by the library Gloo. Rank
// 0's process also holds the hub, over which ranks find each other and learn the error that broke the run.
//
// Device memory must be visible to the host. Nothing of ours is allocated by an operation after the first; Gloo
// allocates entries of its own per message. SIGPIPE is ignored in the process from the first group on, which Gloo
// relies on. Connections are neither encrypted nor authenticated: the network between the ranks has to be trusted. The
// port of the rendezvous bears anything that strangers send; Gloo's own ports, which exist while communicators are
// created and have no fixed numbers, do not.
class GlooGroup : public RankGroup, private GlooOwner, private ControlOwner {
 public:
  static constexpr int kMaxRanks = 65534;
  static constexpr std::chrono::milliseconds kMinTimeout{100};

  // Waits until all ranks have come. Returns kInvalidArgument for options that are not possible, or do not fit to those
  // of rank 0; kDeadlineExceeded naming the ranks that did not come.
  static absl::StatusOr<std::unique_ptr<GlooGroup>> Create(const GlooOptions& options);
  // Unless the run is broken, waits until all ranks are here, at most the timeout: data of the last operations may be
  // on its way.
  ~GlooGroup() override;

  int rank() const override { return options_.rank; }
  int ranks() const override { return options_.ranks; }
  absl::StatusOr<std::unique_ptr<hal::Exchange>> CreateExchange(absl::string_view name, absl::Span<const int> members,
                                                                const LinkOptions& link = {}) override;
  // The error that the other ranks get names this rank.
  void Abort(absl::Status why) override;
  absl::Status status() const override;

 private:
  explicit GlooGroup(const GlooOptions& options) : options_(options) {}

  absl::Status Meet();

  // GlooOwner
  std::chrono::nanoseconds timeout() const override { return options_.timeout; }
  absl::Status Break(const absl::Status& why) override;
  absl::Status Fail(const Complaint& complaint) override;
  Clock::time_point Now() const override;
  void Put(const std::string& key, const std::string& value) override;
  std::optional<std::string> Take(const std::string& key) override;

  // ControlOwner
  std::vector<Activity> Activities() const override;
  std::optional<Complaint> Overdue(Clock::time_point now) const override;
  void BreakOff() override;

  const GlooOptions options_;
  std::unique_ptr<Hub> hub_;  // null on ranks other than 0
  std::string token_;         // the token of the file, if this rank wrote it
  std::shared_ptr<gloo::transport::Device> device_;
  std::unique_ptr<ControlClient> client_;  // null for one rank

  mutable std::mutex mutex_;  // guards the members below
  // Communicators of ours are gone before others have received all that they sent.
  std::vector<std::shared_ptr<GlooChannel>> channels_;
  absl::Status broken_;  // the error that broke a group of one rank
};

// Whether an error of a group is that of a rank that called Abort, and no finding about ranks that do not answer.
bool RankGaveUp(const absl::Status& status);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_GLOO_GLOO_GROUP_H_
