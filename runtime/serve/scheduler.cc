#include "runtime/serve/scheduler.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline::serve {
namespace {

// Ports have the type i32, so a size must fit i32.
constexpr int64_t kLargest = INT32_MAX;

absl::Status CheckRange(absl::string_view name, int64_t value, int64_t least) {
  if (value >= least && value <= kLargest) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", value, "; it has to be from ", least, " to ", kLargest));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(CacheShape shape, SchedulerOptions options) {
  BOWLINE_RETURN_IF_ERROR(CheckRange("the number of the cache's blocks, with the null block,", shape.blocks, 2));
  BOWLINE_RETURN_IF_ERROR(CheckRange("the number of tokens of a block", shape.block_tokens, 1));
  BOWLINE_RETURN_IF_ERROR(CheckRange("the context", shape.max_context, 1));
  BOWLINE_RETURN_IF_ERROR(CheckRange("the number of sequences", shape.max_sequences, 1));
  BOWLINE_RETURN_IF_ERROR(CheckRange("the limit on rows of prompts", options.max_prefill_rows, 1));
  BOWLINE_RETURN_IF_ERROR(CheckRange("the limit on requests that wait", options.max_waiting, 0));
  BOWLINE_RETURN_IF_ERROR(CheckRange("the overhead of a step in rows", options.step_overhead_rows, 0));
  if (shape.buckets.empty()) return absl::InvalidArgumentError("there is no bucket; a step needs at least one");
  for (size_t i = 0; i < shape.buckets.size(); ++i) {
    BOWLINE_RETURN_IF_ERROR(CheckRange("a bucket", shape.buckets[i], 1));
    if (i == 0 || shape.buckets[i - 1] < shape.buckets[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat("bucket ", shape.buckets[i], " comes behind bucket ",
                                                   shape.buckets[i - 1], "; list buckets in ascending order"));
  }
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(shape), options));
}

Scheduler::Scheduler(CacheShape shape, SchedulerOptions options)
    : shape_(std::move(shape)), options_(options), pool_(shape_.blocks, shape_.block_tokens) {}

int64_t Scheduler::BlocksFor(int64_t tokens) const { return (tokens + shape_.block_tokens - 1) / shape_.block_tokens; }

absl::StatusOr<uint64_t> Scheduler::Submit(SequenceRequest request) {
  const auto prompted = static_cast<int64_t>(request.prompt.size());
  if (prompted == 0) return absl::InvalidArgumentError("the prompt is empty; give at least one token");
  if (request.max_new_tokens < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("asks for ", request.max_new_tokens, " new tokens; ask for 1 or more"));
  }
  if (request.max_new_tokens > shape_.max_context - prompted) {
    return absl::InvalidArgumentError(absl::StrCat("the prompt has ", prompted, " tokens and the request asks for ",
                                                   request.max_new_tokens, " more, but the context has ",
                                                   shape_.max_context, " tokens; shorten the prompt or ask for fewer"));
  }
  // Nothing reads the keys and values of the last token.
  const int64_t needed = BlocksFor(prompted + request.max_new_tokens - 1);
  if (needed > pool_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the prompt has ", prompted, " tokens and the request asks for ", request.max_new_tokens,
                     " more, which need ", needed, " blocks of ", shape_.block_tokens, " tokens, but the cache has ",
                     pool_.size(), "; shorten the prompt, ask for fewer tokens, or give the cache more blocks"));
  }
  const int64_t places = shape_.max_sequences - static_cast<int64_t>(running_.size());
  if (static_cast<int64_t>(waiting_.size()) >= options_.max_waiting + places) {
    return absl::ResourceExhaustedError(absl::StrCat(waiting_.size(), " requests are waiting; try again later"));
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->id = ++requests_;
  sequence->tokens = std::move(request.prompt);
  sequence->prompt_tokens = prompted;
  sequence->max_new_tokens = request.max_new_tokens;
  sequence->sampling = request.sampling;
  sequence->end_tokens = std::move(request.end_tokens);
  waiting_.push_back(std::move(sequence));
  return requests_;
}

bool Scheduler::Cancel(uint64_t id) {
  if (Sequence* running = FindRunning(id)) {
    Remove(running);
    return true;
  }
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& s) { return s->id == id; });
  if (found == waiting_.end()) return false;
  waiting_.erase(found);
  return true;
}

std::optional<StepBatch> Scheduler::Next() {
  assert(step_.empty());
  ++steps_;
  Admit();
  for (const auto& sequence : running_) CatchUp(*sequence);
  // A sequence that runs alone gets all blocks, which suffice. So in the end at least one sequence remains.
  while (!running_.empty()) {
    if (Select()) return MakeBatch(Extend());
  }
  return std::nullopt;
}

void Scheduler::Admit() {
  // Blocks that running sequences are going to take for the tokens that they have.
  int64_t promised = 0;
  for (const auto& sequence : running_) {
    promised += std::max<int64_t>(0, BlocksFor(sequence->size()) - static_cast<int64_t>(sequence->blocks.size()));
  }
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < shape_.max_sequences) {
    Sequence& sequence = *waiting_.front();
    std::vector<int32_t> hit;
    if (options_.prefix_cache) {
      hit = pool_.prefixes().Match(sequence.tokens, (sequence.size() - 1) / shape_.block_tokens);
    }
    // With its next token, so that it does not lose its blocks at once; but no more than it ever needs.
    const int64_t tokens = std::min(sequence.size() + 1, sequence.prompt_tokens + sequence.max_new_tokens - 1);
    const int64_t needed = BlocksFor(tokens) - static_cast<int64_t>(hit.size());
    const int64_t idle =
        std::count_if(hit.begin(), hit.end(), [&](int32_t block) { return pool_.references(block) == 0; });
    if (needed + idle > pool_.available() - promised) return;
    promised += needed;
    for (const int32_t block : hit) pool_.Share(block);
    sequence.cached = static_cast<int64_t>(hit.size()) * shape_.block_tokens;
    sequence.blocks = std::move(hit);
    // Its turn comes after those of all running sequences.
    sequence.last_step = steps_ - 1;
    if (options_.prefix_cache && !sequence.preempted) {
      prefix_queries_ += static_cast<uint64_t>(sequence.size());
      prefix_hits_ += static_cast<uint64_t>(sequence.cached);
    }
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

void Scheduler::CatchUp(Sequence& sequence) {
  const int64_t width = shape_.block_tokens;
  if (!options_.prefix_cache || sequence.cached % width != 0) return;
  const absl::Span<const int32_t> tokens = sequence.tokens;
  // Each sequence computes its last token itself, for the next one.
  while (sequence.cached + width < sequence.size()) {
    const auto block = pool_.prefixes().Find(sequence.blocks.empty() ? 0 : sequence.blocks.back(),
                                             tokens.subspan(static_cast<size_t>(sequence.cached), shape_.block_tokens));
    if (!block.has_value()) return;
    pool_.Share(*block);
    sequence.blocks.push_back(*block);
    sequence.cached += width;
    if (!sequence.preempted) prefix_hits_ += static_cast<uint64_t>(width);
  }
}

bool Scheduler::Follows(const Sequence& sequence) const {
  const int64_t width = shape_.block_tokens;
  const int64_t end = sequence.cached + width;
  if (!options_.prefix_cache || sequence.cached % width != 0 || end >= sequence.size()) return false;
  const size_t before = sequence.blocks.size();
  for (const auto& older : running_) {
    if (older.get() == &sequence) return false;
    // Equal beginnings have the same blocks.
    if (older->decodes() || older->size() <= end || older->blocks.size() < before ||
        (before > 0 && older->blocks[before - 1] != sequence.blocks[before - 1])) {
      continue;
    }
    if (std::equal(sequence.tokens.begin() + sequence.cached, sequence.tokens.begin() + end,
                   older->tokens.begin() + sequence.cached)) {
      return true;
    }
  }
  return false;
}

bool Scheduler::Select() {
  std::vector<Sequence*> candidates;
  bool has_prompt = false;
  for (const auto& sequence : running_) {
    if (sequence->decodes() || !std::exchange(has_prompt, true)) candidates.push_back(sequence.get());
  }
  const auto rows = static_cast<size_t>(shape_.buckets.back());
  if (candidates.size() > rows) {
    std::sort(candidates.begin(), candidates.end(), [](const Sequence* a, const Sequence* b) {
      return std::pair(a->last_step, a->id) < std::pair(b->last_step, b->id);
    });
    candidates.resize(rows);
    std::sort(candidates.begin(), candidates.end(), [](const Sequence* a, const Sequence* b) { return a->id < b->id; });
  }
  for (Sequence* sequence : candidates) {
    const uint64_t before = preemptions_;
    Reserve(*sequence, sequence->cached + 1);
    if (preemptions_ != before) return false;
  }
  for (Sequence* sequence : candidates) sequence->rows = 1;
  return true;
}

int64_t Scheduler::Extend() {
  int64_t selected = 0, decoding = 0;
  bool any_decodes = false;
  for (const auto& sequence : running_) {
    any_decodes |= sequence->decodes();
    selected += sequence->rows;
    decoding += sequence->decodes() ? sequence->rows : 0;
  }
  int64_t room = shape_.buckets.back() - selected;
  if (any_decodes) room = std::min(room, options_.max_prefill_rows - (selected - decoding));
  int64_t available = pool_.available(), wanted = selected;
  std::vector<int64_t> further(running_.size());
  for (size_t i = 0; i < running_.size(); ++i) {
    const Sequence& sequence = *running_[i];
    if (sequence.decodes() || (sequence.rows == 0 && Follows(sequence))) continue;
    const int64_t begin = sequence.cached + sequence.rows;
    const int64_t owned = static_cast<int64_t>(sequence.blocks.size());
    const int64_t most = (owned + available) * shape_.block_tokens - begin;
    further[i] = std::min({room, sequence.size() - begin, most});
    available -= std::max<int64_t>(0, BlocksFor(begin + further[i]) - owned);
    room -= further[i];
    wanted += further[i];
  }
  const int64_t bucket = ChooseBucket(decoding, selected, wanted);
  // The youngest gives way.
  for (size_t i = running_.size(); i-- > 0;) {
    const int64_t less = std::clamp<int64_t>(wanted - bucket, 0, further[i]);
    further[i] -= less;
    wanted -= less;
  }
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (further[i] == 0) continue;
    sequence.rows += further[i];
    const bool reserved = Reserve(sequence, sequence.cached + sequence.rows);
    assert(reserved);
    static_cast<void>(reserved);
  }
  return bucket;
}

int64_t Scheduler::ChooseBucket(int64_t decoding, int64_t selected, int64_t wanted) const {
  int64_t best = 0, best_rows = 0;
  for (const int64_t bucket : shape_.buckets) {
    if (bucket < selected) continue;
    const int64_t rows = std::min(bucket, wanted) - decoding;
    // Most rows of prompts for the time of the step; of equals the larger one.
    if (best == 0 ||
        rows * (best + options_.step_overhead_rows) >= best_rows * (bucket + options_.step_overhead_rows)) {
      best = bucket;
      best_rows = rows;
    }
    if (bucket >= wanted) break;
  }
  return best;
}

bool Scheduler::Reserve(Sequence& sequence, int64_t tokens) {
  while (static_cast<int64_t>(sequence.blocks.size()) < BlocksFor(tokens)) {
    if (const auto block = pool_.Take()) {
      sequence.blocks.push_back(*block);
      continue;
    }
    const bool itself = running_.back().get() == &sequence;
    PreemptYoungest();
    if (itself) return false;
  }
  return true;
}

void Scheduler::PreemptYoungest() {
  Sequence& sequence = *running_.back();
  ReleaseBlocks(sequence);
  sequence.cached = sequence.rows = 0;
  sequence.preempted = true;
  ++preemptions_;
  waiting_.push_front(std::move(running_.back()));
  running_.pop_back();
}

StepBatch Scheduler::MakeBatch(int64_t bucket) {
  const auto sequences = static_cast<size_t>(shape_.max_sequences);
  const auto table = static_cast<size_t>(BlocksFor(shape_.max_context));
  StepBatch batch;
  batch.bucket = bucket;
  batch.tokens.reserve(static_cast<size_t>(bucket));
  batch.rows = {0};
  batch.lengths.resize(sequences);
  batch.blocks.resize(sequences * table);
  batch.sample.resize(sequences);
  batch.sampling.resize(sequences);
  batch.wants_token.resize(sequences);
  for (const auto& sequence : running_) {
    if (sequence->rows == 0) continue;
    sequence->last_step = steps_;
    const size_t r = step_.size();
    step_.push_back(sequence->id);
    const int64_t length = sequence->cached + sequence->rows;
    batch.tokens.insert(batch.tokens.end(), sequence->tokens.begin() + sequence->cached,
                        sequence->tokens.begin() + length);
    batch.rows.push_back(static_cast<int32_t>(batch.tokens.size()));
    batch.lengths[r] = static_cast<int32_t>(length);
    std::copy(sequence->blocks.begin(), sequence->blocks.end(),
              batch.blocks.begin() + static_cast<ptrdiff_t>(r * table));
    batch.sampling[r] = sequence->sampling;
    batch.wants_token[r] = length == sequence->size();
    if (batch.wants_token[r]) batch.sample[r] = batch.rows.back() - 1;
  }
  batch.rows.resize(sequences + 1, batch.rows.back());
  batch.tokens.resize(static_cast<size_t>(bucket));
  return batch;
}

std::vector<Progress> Scheduler::Finish(absl::Span<const SampledToken> sampled) {
  assert(sampled.size() >= step_.size());
  std::vector<Progress> progress;
  for (size_t r = 0; r < step_.size(); ++r) {
    Sequence* sequence = FindRunning(step_[r]);
    if (sequence == nullptr) continue;
    const int64_t before = sequence->cached;
    sequence->cached += std::exchange(sequence->rows, 0);
    if (sequence->cached >= sequence->size() && sampled[r].token < 0) {
      // Its blocks may hold NaN, so no other sequence may share them.
      progress.push_back({sequence->id, sampled[r], FinishReason::kFailed});
      Remove(sequence);
      continue;
    }
    if (options_.prefix_cache) ShareFullBlocks(*sequence, before);
    if (sequence->cached < sequence->size()) continue;
    Progress& step = progress.emplace_back(Progress{sequence->id, sampled[r], std::nullopt});
    sequence->tokens.push_back(sampled[r].token);
    const auto& ends = sequence->end_tokens;
    if (std::find(ends.begin(), ends.end(), sampled[r].token) != ends.end()) {
      step.ended = FinishReason::kStop;
    } else if (sequence->size() - sequence->prompt_tokens == sequence->max_new_tokens) {
      step.ended = FinishReason::kLength;
    }
    if (step.ended.has_value()) Remove(sequence);
  }
  step_.clear();
  return progress;
}

std::vector<uint64_t> Scheduler::Fail() {
  std::vector<uint64_t> failed;
  for (const uint64_t id : step_) {
    Sequence* sequence = FindRunning(id);
    if (sequence == nullptr) continue;
    Remove(sequence);
    failed.push_back(id);
  }
  step_.clear();
  return failed;
}

void Scheduler::ShareFullBlocks(Sequence& sequence, int64_t before) {
  const absl::Span<const int32_t> tokens = sequence.tokens;
  const auto width = static_cast<size_t>(shape_.block_tokens);
  for (auto k = static_cast<size_t>(before / shape_.block_tokens);
       (k + 1) * width <= static_cast<size_t>(sequence.cached); ++k) {
    const int32_t previous = k == 0 ? 0 : sequence.blocks[k - 1];
    const auto content = tokens.subspan(k * width, width);
    int32_t& block = sequence.blocks[k];
    if (const auto same = pool_.prefixes().Find(previous, content)) {
      pool_.Share(*same);
      pool_.Release(block);
      block = *same;
    } else {
      pool_.prefixes().Insert(previous, content, block);
    }
  }
}

Sequence* Scheduler::FindRunning(uint64_t id) const {
  const auto found = std::find_if(running_.begin(), running_.end(), [&](const auto& s) { return s->id == id; });
  return found == running_.end() ? nullptr : found->get();
}

void Scheduler::ReleaseBlocks(Sequence& sequence) {
  for (; !sequence.blocks.empty(); sequence.blocks.pop_back()) pool_.Release(sequence.blocks.back());
}

void Scheduler::Remove(const Sequence* sequence) {
  const auto found = std::find_if(running_.begin(), running_.end(), [&](const auto& s) { return s.get() == sequence; });
  ReleaseBlocks(**found);
  running_.erase(found);
}

}  // namespace bowline::serve
