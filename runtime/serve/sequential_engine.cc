#include "runtime/serve/sequential_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline::serve {

SequentialEngine::SequentialEngine(GenerateFunction generate, size_t most_waiting)
    : generate_(std::move(generate)), most_waiting_(most_waiting), thread_([this] { Run(); }) {}

SequentialEngine::~SequentialEngine() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& ticket : waiting_) ticket->Cancel();
    if (running_ != nullptr) running_->Cancel();
    drains_ = ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

absl::StatusOr<std::vector<std::shared_ptr<Ticket>>> SequentialEngine::Submit(std::vector<Generation> generations) {
  if (generations.size() > most_waiting_ + 1) {
    return absl::OutOfRangeError(absl::StrCat("the request asks for ", generations.size(),
                                              " answers, but this server computes and queues at most ",
                                              most_waiting_ + 1));
  }
  std::vector<std::shared_ptr<Ticket>> tickets;
  for (Generation& generation : generations) tickets.push_back(std::make_shared<Ticket>(std::move(generation)));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (drains_) return absl::UnavailableError("the server is shutting down");
    if (waiting_.size() + tickets.size() > most_waiting_ + (running_ == nullptr ? 1 : 0)) {
      return absl::ResourceExhaustedError(absl::StrCat(waiting_.size(), " requests are waiting; try again later"));
    }
    waiting_.insert(waiting_.end(), tickets.begin(), tickets.end());
  }
  changed_.notify_all();
  return tickets;
}

void SequentialEngine::Drain(std::function<void()> drained) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    drains_ = true;
    drained_ = std::move(drained);
  }
  changed_.notify_all();
}

void SequentialEngine::CancelAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& ticket : waiting_) ticket->Cancel();
  if (running_ != nullptr) running_->Cancel();
}

EngineCounts SequentialEngine::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  EngineCounts counts = counts_;
  counts.running = running_ == nullptr ? 0 : 1;
  counts.waiting = waiting_.size();
  return counts;
}

void SequentialEngine::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !waiting_.empty() || ends_ || (drains_ && drained_ != nullptr); });
    if (waiting_.empty()) {
      if (auto drained = std::exchange(drained_, nullptr)) {
        lock.unlock();
        drained();
        lock.lock();
      }
      if (ends_) return;
      continue;
    }
    running_ = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Serve(*running_);
    lock.lock();
    running_ = nullptr;
  }
}

void SequentialEngine::Serve(Ticket& ticket) {
  const Generation& generation = ticket.generation();
  FinishReason reason = FinishReason::kLength;
  uint64_t taken = 0;
  std::atomic<bool> stop = false;
  const auto write = [&](int32_t token) -> absl::Status {
    if (ticket.cancelled()) {
      reason = FinishReason::kCancelled;
      stop = true;
      return absl::OkStatus();
    }
    const auto& ends = generation.end_tokens;
    ++taken;
    if (std::find(ends.begin(), ends.end(), token) != ends.end() || !generation.take({.token = token})) {
      reason = FinishReason::kStop;
      stop = true;
    }
    return absl::OkStatus();
  };
  absl::Status status;
  if (ticket.cancelled()) {
    reason = FinishReason::kCancelled;
  } else {
    if (generation.begin) generation.begin();
    GenerateOptions options;
    options.max_new_tokens = generation.max_new_tokens;
    options.temperature = generation.temperature;
    options.seed = generation.seed;
    options.only_bytes = false;
    status = generate_(generation.prompt, options, write, stop);
  }
  if (!status.ok()) reason = FinishReason::kFailed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    counts_.AddEnded(reason, generation.prompt.size(), taken);
  }
  generation.finish(reason, status);
}

}  // namespace bowline::serve
