#include "runtime/serve/batch_engine.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline::serve {

absl::StatusOr<std::unique_ptr<BatchEngine>> BatchEngine::Create(CacheShape shape, SchedulerOptions options,
                                                                 StepFunction step) {
  const int64_t most = shape.max_sequences + options.max_waiting;
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<Scheduler> scheduler, Scheduler::Create(std::move(shape), options));
  return std::unique_ptr<BatchEngine>(new BatchEngine(std::move(scheduler), std::move(step), most));
}

BatchEngine::BatchEngine(std::unique_ptr<Scheduler> scheduler, StepFunction step, int64_t most)
    : step_(std::move(step)), most_(most), scheduler_(std::move(scheduler)), thread_([this] { Run(); }) {}

BatchEngine::~BatchEngine() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [id, request] : requests_) request.ticket->Cancel();
    drains_ = ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

absl::StatusOr<std::vector<std::shared_ptr<Ticket>>> BatchEngine::Submit(std::vector<Generation> generations) {
  if (static_cast<int64_t>(generations.size()) > most_) {
    return absl::OutOfRangeError(absl::StrCat("the request asks for ", generations.size(),
                                              " answers, but this server computes and queues at most ", most_));
  }
  std::vector<SequenceRequest> requests;
  std::vector<std::shared_ptr<Ticket>> tickets;
  for (Generation& generation : generations) {
    SequenceRequest& request = requests.emplace_back();
    request.prompt = generation.prompt;
    request.max_new_tokens = generation.max_new_tokens;
    request.sampling = {.temperature = static_cast<float>(generation.temperature),
                        .top_k = generation.top_k,
                        .top_p = static_cast<float>(generation.top_p),
                        .seed = generation.seed,
                        .top_logprobs = generation.top_logprobs};
    request.end_tokens = generation.end_tokens;
    tickets.push_back(std::make_shared<Ticket>(std::move(generation)));
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (drains_) return absl::UnavailableError("the server is shutting down");
    std::vector<uint64_t> ids;
    for (SequenceRequest& request : requests) {
      const absl::StatusOr<uint64_t> id = scheduler_->Submit(std::move(request));
      if (!id.ok()) {
        for (const uint64_t accepted : ids) scheduler_->Cancel(accepted);
        return id.status();
      }
      ids.push_back(*id);
    }
    for (size_t i = 0; i < ids.size(); ++i) requests_.emplace(ids[i], Request{tickets[i]});
  }
  changed_.notify_all();
  return tickets;
}

void BatchEngine::Drain(std::function<void()> drained) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    drains_ = true;
    drained_ = std::move(drained);
  }
  changed_.notify_all();
}

void BatchEngine::CancelAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, request] : requests_) request.ticket->Cancel();
}

EngineCounts BatchEngine::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  EngineCounts counts = counts_;
  counts.running = scheduler_->running().size();
  counts.waiting = scheduler_->waiting().size();
  counts.blocks_used = static_cast<uint64_t>(scheduler_->pool().owned());
  counts.blocks_total = static_cast<uint64_t>(scheduler_->pool().size());
  counts.preemptions = scheduler_->preemptions();
  counts.prefix_queries = scheduler_->prefix_queries();
  counts.prefix_hits = scheduler_->prefix_hits();
  return counts;
}

void BatchEngine::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !requests_.empty() || ends_ || (drains_ && drained_ != nullptr); });
    EndCancelled(lock);
    if (const std::optional<StepBatch> batch = scheduler_->Next()) {
      RunStep(*batch, lock);
      continue;
    }
    // Meanwhile there may be new ones.
    if (!requests_.empty()) continue;
    if (auto drained = drains_ ? std::exchange(drained_, nullptr) : nullptr) {
      lock.unlock();
      drained();
      lock.lock();
    }
    if (ends_) return;
  }
}

void BatchEngine::EndCancelled(std::unique_lock<std::mutex>& lock) {
  std::vector<uint64_t> cancelled;
  for (const auto& [id, request] : requests_) {
    if (request.ticket->cancelled()) cancelled.push_back(id);
  }
  std::vector<Ended> ended;
  for (const uint64_t id : cancelled) {
    scheduler_->Cancel(id);
    ended.push_back(End(id, FinishReason::kCancelled));
  }
  Tell(ended, lock);
}

void BatchEngine::TellBegun(std::unique_lock<std::mutex>& lock) {
  std::vector<std::shared_ptr<Ticket>> begun;
  for (const auto& sequence : scheduler_->running()) {
    if (sequence->rows == 0) continue;
    Request& request = requests_.at(sequence->id);
    if (!std::exchange(request.began, true) && request.ticket->generation().begin) begun.push_back(request.ticket);
  }
  if (begun.empty()) return;
  lock.unlock();
  for (const auto& ticket : begun) ticket->generation().begin();
  lock.lock();
}

void BatchEngine::RunStep(const StepBatch& batch, std::unique_lock<std::mutex>& lock) {
  TellBegun(lock);
  counts_.step_tokens.Add(batch.rows.back());
  std::vector<SampledToken> sampled;
  lock.unlock();
  absl::Status status = step_(batch, sampled);
  lock.lock();
  if (status.ok() && sampled.size() != batch.lengths.size()) {
    status = absl::InternalError(
        absl::StrCat("a step of ", batch.lengths.size(), " sequences gave ", sampled.size(), " tokens"));
  }
  std::vector<Ended> ended;
  if (!status.ok()) {
    for (const uint64_t id : scheduler_->Fail()) ended.push_back(End(id, FinishReason::kFailed, status));
    return Tell(ended, lock);
  }
  for (const Progress& progress : scheduler_->Finish(sampled)) {
    if (progress.ended == FinishReason::kFailed) {
      ended.push_back(End(progress.id, FinishReason::kFailed, LogitsNotFiniteError()));
      continue;
    }
    Request& request = requests_.at(progress.id);
    const std::shared_ptr<Ticket> ticket = request.ticket;
    std::optional<FinishReason> reason = progress.ended;
    if (ticket->cancelled()) {
      reason = FinishReason::kCancelled;
    } else {
      ++request.generated;
      if (progress.ended != FinishReason::kStop) {
        lock.unlock();
        const bool more = ticket->generation().take(progress.sampled);
        lock.lock();
        if (!more) reason = FinishReason::kStop;
      }
    }
    if (!reason.has_value()) continue;
    if (!progress.ended.has_value()) scheduler_->Cancel(progress.id);
    ended.push_back(End(progress.id, *reason));
  }
  Tell(ended, lock);
}

BatchEngine::Ended BatchEngine::End(uint64_t id, FinishReason reason, const absl::Status& status) {
  const auto found = requests_.find(id);
  Ended ended = {std::move(found->second.ticket), reason, status};
  counts_.AddEnded(reason, ended.ticket->generation().prompt.size(), found->second.generated);
  requests_.erase(found);
  return ended;
}

void BatchEngine::Tell(const std::vector<Ended>& ended, std::unique_lock<std::mutex>& lock) {
  if (ended.empty()) return;
  lock.unlock();
  for (const Ended& request : ended) request.ticket->generation().finish(request.reason, request.status);
  lock.lock();
}

}  // namespace bowline::serve
