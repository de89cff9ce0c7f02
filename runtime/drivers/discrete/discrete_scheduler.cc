#include "runtime/drivers/discrete/discrete_scheduler.h"

#include <algorithm>

namespace bowline {
namespace {

constexpr uint64_t kLateOneOf = 8;
// Stretches have 1, 2, 4 ... 64 commands: those of a whole microbatch.
constexpr uint64_t kStretches = 7;

// The queue that comes first of those that may run and are late, or are not; null if there is none.
CommandQueue* FirstOf(const std::vector<CommandQueue*>& queues, bool late) {
  CommandQueue* first = nullptr;
  for (CommandQueue* queue : queues) {
    const Draws& draws = queue->draws();
    if (draws.is_late() != late || !queue->MayRun()) continue;
    if (first == nullptr ||
        (late ? draws.turn() < first->draws().turn() : draws.priority() > first->draws().priority())) {
      first = queue;
    }
  }
  return first;
}

}  // namespace

void Draws::Next() {
  if (left_-- <= 0) {
    left_ = (1 << random_() % kStretches) - 1;
    priority_ = random_();
  }
  is_late_ = that_is_late_ && random_() % kLateOneOf == 0;
}

void DiscreteScheduler::Remove(CommandQueue* queue) { std::erase(queues_, queue); }

CommandQueue* DiscreteScheduler::Next() {
  CommandQueue* next = FirstOf(queues_, /*late=*/false);
  if (next == nullptr && late_may_run_) next = FirstOf(queues_, /*late=*/true);
  late_may_run_ = false;
  return next;
}

void DiscreteScheduler::Sleep() {
  is_awake_ = false;
  if (const CommandQueue* late = FirstOf(queues_, /*late=*/true)) DeviceActivity::Add(late->draws().turn(), this);
  DeviceActivity::End();
}

void DiscreteScheduler::GoOn() {
  late_may_run_ = true;
  Wake();
}

void DiscreteScheduler::Wake() {
  if (waiters_ == 0) return;
  if (!is_awake_) {
    is_awake_ = true;
    DeviceActivity::Remove(this);
    DeviceActivity::Begin();
  }
  wake_.notify_all();
}

void DiscreteScheduler::Issued() {
  if (waiters_ > 0) return Wake();
  if (is_issued_to_) return;
  is_issued_to_ = true;
  DeviceActivity::Begin();
}

void DiscreteScheduler::RunUntil(std::unique_lock<std::mutex>& lock, absl::FunctionRef<bool()> is_done) {
  if (is_done()) return;
  ++waiters_;
  Wake();
  if (is_issued_to_) {
    is_issued_to_ = false;
    DeviceActivity::End();
  }
  while (!is_done()) {
    if (is_running_) {
      wake_.wait(lock);
    } else if (CommandQueue* next = Next()) {
      is_running_ = true;
      next->RunFront(lock);
      is_running_ = false;
      if (waiters_ > 1) wake_.notify_all();
    } else {
      if (is_awake_) Sleep();
      if (!is_awake_ && wake_.wait_for(lock, DeviceActivity::kPatience) == std::cv_status::timeout && !is_awake_) {
        GoOn();
      }
    }
  }
  if (--waiters_ > 0) return wake_.notify_all();
  late_may_run_ = false;
  if (is_awake_) {
    is_awake_ = false;
    DeviceActivity::End();
  } else {
    DeviceActivity::Remove(this);
  }
}

}  // namespace bowline
