#ifndef BOWLINE_RUNTIME_COMM_CONTROL_HUB_H_
#define BOWLINE_RUNTIME_COMM_CONTROL_HUB_H_

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/file_descriptor.h"
#include "runtime/comm/control/activity.h"
#include "runtime/comm/control/connection.h"
#include "runtime/comm/control/timing.h"

namespace bowline {

// The first message of a rank to the hub.
struct Hello {
  static constexpr char kMagic[] = "bowline control 2";

  int rank = 0;
  int ranks = 1;
  std::string job;        // tells runs apart that share an address
  std::string token;      // the token of the file in which the hub was found; empty without one
  std::string where;      // "host a, pid 7"
  uint64_t patience = 0;  // ns until the rank gives up waiting for the others

  std::string Encode() const;
  // Returns false if the bytes are no hello.
  static bool Decode(absl::string_view bytes, Hello& hello);
};

// The key under which a rank publishes the data that other ranks need from it for a communicator.
std::string CommunicatorKey(absl::string_view communicator, int rank);

// The reason for a refused hello: the hub is another run's, the run is broken, the hello does not fit it, or there is a
// process of this rank, though it may have died a moment ago.
enum class RejectReason : uint8_t { kOtherRun, kBroken, kWrong, kTwice };

struct HubOptions {
  int ranks = 1;
  std::string job, token;
  ControlTiming timing;
  std::chrono::nanoseconds rendezvous_timeout;
};

// The meeting point of all ranks of a run: a thread of rank 0's process that keeps a connection to each rank. It waits
// for all ranks, keeps texts by key, detects ranks that died or fell silent, asks all ranks to report when one
// complains, and informs all ranks when the run is broken. No data passes through it. Strangers may connect and send
// anything; the hub disconnects them.
class Hub {
 public:
  static absl::StatusOr<std::unique_ptr<Hub>> Start(FileDescriptor listener, const HubOptions& options);
  // Disconnects all ranks.
  ~Hub();

 private:
  struct Peer {
    Connection connection;
    int rank = -1;  // -1 for a stranger
    Clock::time_point connected, heard;
  };
  struct Rank {
    Peer* peer = nullptr;
    bool came = false, left = false, dead = false, answered = false;
    Clock::time_point give_up;  // the time at which the rank stops waiting for the others
    std::string where;
    std::vector<Activity> activities;
  };

  Hub(FileDescriptor listener, FileDescriptor wake, const HubOptions& options);

  void Run();
  void Linger();
  void WaitForEvents();
  void Accept();
  void ReadFrom(Peer& peer);
  void Handle(Peer& peer, const Message& message);
  void HandleHello(Peer& peer, const Message& message);
  void Reject(Peer& peer, RejectReason reason, const absl::Status& why);
  void Welcome();
  void CheckTime();

  void Lose(Peer& peer);
  // Adds to the activity the ranks that are missing, which only the hub knows.
  void CompleteWaits(Activity& activity) const;
  void Inquire(const Complaint& complaint);
  void Conclude();
  void Break(const absl::Status& why);
  void SendToAll(MessageType type, absl::string_view payload = {});
  std::vector<int> Missing() const;

  const HubOptions options_;
  FileDescriptor listener_, wake_;
  std::atomic<bool> stop_{false};
  std::thread thread_;

  // Members from here on are used by the hub's thread alone.
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Rank> ranks_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<int>> waiting_;  // ranks that wait for a text, by key
  std::string address_;                              // the address of this host, as another host sees it
  bool welcomed_ = false, broken_ = false, done_ = false;
  absl::Status why_broken_;
  std::string refused_;  // the reason of the last refusal
  int refused_rank_ = -1;
  const Clock::time_point give_up_;  // the time at which the hub stops waiting for ranks
  Clock::time_point next_beat_;
  bool inquiring_ = false;
  Complaint complaint_;
  Clock::time_point conclude_at_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_CONTROL_HUB_H_
