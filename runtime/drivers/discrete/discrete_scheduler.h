#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_SCHEDULER_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_SCHEDULER_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/drivers/discrete/device_activity.h"

namespace bowline {

// The random draws for the command at the front of a stream. Each stream draws for its own commands, in their order, so
// that the draws do not depend on other streams.
class Draws {
 public:
  // One of eight commands is late if the stream is one `that_is_late`, and those of all streams that are late at the
  // same time begin by their `turn`.
  Draws(uint64_t seed, bool that_is_late, uint32_t turn) : random_(seed), that_is_late_(that_is_late), turn_(turn) {
    Next();
  }

  // Draws for the next command.
  void Next();

  // The command begins when no other activity runs.
  bool is_late() const { return is_late_; }
  // Of commands that are not late the one with the highest priority runs. It stays for a stretch of commands, so that a
  // stream falls behind others and overtakes them by many.
  uint64_t priority() const { return priority_; }
  uint32_t turn() const { return turn_; }

 private:
  std::mt19937_64 random_;
  const bool that_is_late_;
  const uint32_t turn_;
  bool is_late_ = false;
  uint64_t priority_ = 0;
  int left_ = 0;  // commands that remain of this stretch
};

// A stream as its scheduler sees it. All is called with DeviceActivity's mutex held.
class CommandQueue {
 public:
  virtual ~CommandQueue() = default;
  // Returns whether the command at the front may run.
  virtual bool MayRun() const = 0;
  // Runs the command without holding the mutex, or lets a thread run it.
  virtual void RunFront(std::unique_lock<std::mutex>& lock) = 0;
  virtual const Draws& draws() const = 0;
};

// Runs the commands of a device, one at a time, on the threads of the host that wait for it and only while they wait.
// So earlier commands run in an order that the draws alone decide. Only calls of the host run beside the others:
// they may wait for other ranks.
class DiscreteScheduler : private DeviceActivity::Late {
 public:
  void Add(CommandQueue* queue) { queues_.push_back(queue); }
  void Remove(CommandQueue* queue);

  // Runs commands until `is_done`, which is called with the mutex held, as is all below.
  void RunUntil(std::unique_lock<std::mutex>& lock, absl::FunctionRef<bool()> is_done);

  // A command was issued.
  void Issued();
  // A call of the host ended.
  void Wake();

 private:
  void GoOn() override;
  // The queue whose command is next, null if none may run now.
  CommandQueue* Next();
  void Sleep();

  std::vector<CommandQueue*> queues_;
  std::condition_variable wake_;
  int waiters_ = 0;            // threads in RunUntil
  bool is_running_ = false;    // one of them runs a command
  bool is_awake_ = false;      // they have not found yet that nothing may run: this counts as activity
  bool is_issued_to_ = false;  // the host issued commands and does not wait yet, which counts too
  bool late_may_run_ = false;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_SCHEDULER_H_
