#ifndef BOWLINE_RUNTIME_COMM_CONTROL_CLIENT_H_
#define BOWLINE_RUNTIME_COMM_CONTROL_CLIENT_H_

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/control/activity.h"
#include "runtime/comm/control/connection.h"
#include "runtime/comm/control/hub.h"
#include "runtime/comm/control/timing.h"

namespace bowline {

// The functions of a group that the client of the group calls, on the client's thread.
class ControlOwner {
 public:
  virtual ~ControlOwner() = default;

  // The activity of this rank on each of its communicators.
  virtual std::vector<Activity> Activities() const = 0;
  // An operation that has waited for longer than the timeout at `now`; nothing if there is none.
  virtual std::optional<Complaint> Overdue(Clock::time_point now) const = 0;
  // Ends all waits, because the run is broken. Called once.
  virtual void BreakOff() = 0;
};

// A rank's connection to the hub. Its thread sends signs of life, reports the rank's activities to the hub, and
// receives the error that breaks the run.
class ControlClient {
 public:
  // Waits until all ranks are there. `connection` comes from ConnectToHub with the same `hello`.
  static absl::StatusOr<std::unique_ptr<ControlClient>> Join(Connection connection, const Hello& hello,
                                                             const ControlTiming& timing, Clock::time_point deadline);
  ~ControlClient();

  // Starts the client's thread; called before any operation. `owner` must live as long as this.
  void Start(ControlOwner* owner);

  // The address of this machine, as other ranks reach it.
  const std::string& address() const { return address_; }

  // Put publishes a text that all ranks can take. Take waits until some rank has put a text with the key, and returns
  // nothing when the run breaks.
  void Put(const std::string& key, absl::string_view value);
  std::optional<std::string> Take(const std::string& key);

  // OK, or the error that broke the run. Cheap while the run is whole.
  absl::Status status() const;
  // Break the run on all ranks, with `why` or with the error that the hub derives from `complaint`. Both return the
  // error that broke the run, which differs if another error was first.
  absl::Status Break(const absl::Status& why);
  absl::Status Fail(Complaint complaint);

  // Says that this rank is done and waits, for at most the timeout, until all ranks are done or the run is broken.
  absl::Status Leave();

  // The steady clock less the time in which this process was stopped.
  Clock::time_point Now() const { return Clock::now() - std::chrono::nanoseconds(lost_.load()); }

 private:
  ControlClient(Connection connection, FileDescriptor wake, const Hello& hello, const ControlTiming& timing);

  absl::Status WaitForWelcome(Clock::time_point deadline);
  void Run();
  void Handle(const Message& message);
  void CheckTime();
  void Send(MessageType type, absl::string_view payload);
  void Wake() const;
  // Returns the error that rank 0 is gone or does not answer.
  absl::Status ExplainHub(RankState::Health health) const;
  absl::Status WaitForVerdict(const absl::Status& otherwise);
  void SetBroken(const absl::Status& why);

  const Hello hello_;
  const ControlTiming timing_;
  FileDescriptor wake_;
  std::string address_, hub_where_;
  ControlOwner* owner_ = nullptr;
  std::atomic<bool> stop_{false}, is_broken_{false};
  std::atomic<int64_t> lost_{0};  // ns
  std::thread thread_;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  Connection connection_;
  absl::Status broken_;
  std::map<std::string, std::string> values_;
  Clock::time_point heard_, next_beat_;
  std::optional<absl::Status> otherwise_;  // breaks the run at verdict_by_ when the hub says nothing
  Clock::time_point verdict_by_;
  Clock::time_point leaving_since_;
  bool leaving_ = false, done_ = false;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_CONTROL_CLIENT_H_
