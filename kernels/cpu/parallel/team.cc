#include "kernels/cpu/parallel/team.h"

#include <unistd.h>

#include <system_error>

#include "kernels/cpu/isa/flush_subnormals.h"
#include "kernels/cpu/parallel/clock.h"
#include "kernels/cpu/parallel/signals_blocked.h"

namespace bowline::kernels {
namespace {

// Several times the cost of falling asleep and being woken, and longer than most gaps between regions.
constexpr int64_t kSpinNanoseconds = 50'000;

thread_local bool in_region = false;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Looks for `condition` for a while; whether it came true.
template <typename Condition>
bool Spin(const Condition& condition) {
  constexpr int kLooks = 16;  // looks at the condition for each look at the clock
  for (const int64_t begin = Now();;) {
    for (int i = 0; i < kLooks; ++i) {
      if (condition()) return true;
      Pause();
    }
    if (Now() - begin > kSpinNanoseconds) return false;
  }
}

}  // namespace

bool Team::InRegion() { return in_region; }

Team::Team(int size) : size_(size), process_(getpid()), members_(new Member[static_cast<size_t>(size)]) {
  const SignalsBlocked blocked;
  try {
    for (int i = 1; i < size_; ++i) members_[i].thread = std::thread(&Team::Help, this, i);
  } catch (const std::system_error&) {
    // The caller does the work of helpers that are missing.
  }
}

Team::~Team() {
  if (getpid() != process_) {
    // Threads that do not exist can be neither joined nor detached.
    static_cast<void>(members_.release());
    return;
  }
  stopping_.store(true, std::memory_order_relaxed);
  ++round_;
  for (int i = 1; i < size_; ++i) GiveShare(members_[i], {round_, 0, 0});
  for (int i = 1; i < size_; ++i) {
    if (members_[i].thread.joinable()) members_[i].thread.join();
  }
}

Team::Times Team::Run(int members, const Division& chunks, Body body) noexcept {
  in_region = true;
  const int64_t begin = Now();
  region_.emplace(Region{chunks, body, FloatSettings()});
  unfinished_.store(static_cast<uint32_t>(chunks.parts), std::memory_order_relaxed);
  ++round_;
  const Division shares = {chunks.parts, members};
  for (int i = members; i-- > 0;) {
    GiveShare(members_[i],
              {round_, static_cast<uint16_t>(shares.Begin(i)), static_cast<uint16_t>(shares.Begin(i + 1))});
  }
  const uint32_t own = RunChunks(0, round_);
  // Acquires the writes of helpers, if they have finished before.
  if (unfinished_.fetch_sub(own, std::memory_order_acq_rel) != own) WaitForHelpers();
  const int64_t end = Now();
  in_region = false;
  int64_t taken = meter_.Due(end) ? meter_.Report(end) : 0;
  if (taken_.load(std::memory_order_relaxed) != 0) taken += taken_.exchange(0, std::memory_order_relaxed);
  return {end - begin, taken};
}

void Team::GiveShare(Member& member, const Share& share) {
  // Sequentially consistent, as the pair in WaitForRound: one of the two threads sees the write of the other.
  member.share.store(share.ToWord(), std::memory_order_seq_cst);
  if (member.sleeps.load(std::memory_order_seq_cst) == 0) return;
  member.sleeps.store(0, std::memory_order_seq_cst);
  member.sleeps.notify_one();
}

uint32_t Team::WaitForRound(Member& member, uint32_t last, ProcessorMeter& meter) {
  uint32_t round = last;
  const auto changed = [&] {
    round = Share::FromWord(member.share.load(std::memory_order_seq_cst)).round;
    return round != last;
  };
  if (Spin(changed)) return round;
  const int64_t begin = Now();
  for (;;) {
    member.sleeps.store(1, std::memory_order_seq_cst);
    if (changed()) break;
    member.sleeps.wait(1);
  }
  member.sleeps.store(0, std::memory_order_relaxed);
  meter.Slept(Now() - begin);
  return round;
}

void Team::Help(int member) {
  in_region = true;
  ProcessorMeter meter(Now(), Nanoseconds(CLOCK_THREAD_CPUTIME_ID));
  for (uint32_t round = 0;;) {
    round = WaitForRound(members_[member], round, meter);
    if (stopping_.load(std::memory_order_relaxed)) return;
    const uint32_t chunks = RunChunks(member, round);
    if (chunks == 0) continue;
    // Before the region may end, so that the caller learns now how long it was held up.
    if (meter.Due(CoarseNow())) {
      const int64_t taken = meter.Report(Now(), Nanoseconds(CLOCK_THREAD_CPUTIME_ID));
      if (taken > 0) taken_.fetch_add(taken, std::memory_order_relaxed);
    }
    // When this thread has counted its chunks as finished, the region may end at any time.
    if (unfinished_.fetch_sub(chunks, std::memory_order_acq_rel) == chunks) unfinished_.notify_one();
  }
}

int Team::TakeChunk(Member& from, uint32_t round, bool first) {
  uint64_t seen = from.share.load(std::memory_order_acquire);
  for (;;) {
    Share share = Share::FromWord(seen);
    if (share.round != round || share.first == share.end) return -1;
    const int chunk = first ? share.first++ : --share.end;
    if (from.share.compare_exchange_weak(seen, share.ToWord(), std::memory_order_acquire)) return chunk;
  }
}

uint32_t Team::RunChunks(int member, uint32_t round) {
  uint32_t chunks = 0;
  for (int i = 0; i < size_; ++i) {
    Member& from = members_[(member + i) % size_];
    for (int chunk; (chunk = TakeChunk(from, round, /*first=*/i == 0)) >= 0; ++chunks) {
      if (chunks == 0 && region_->float_settings != FloatSettings()) SetFloatSettings(region_->float_settings);
      region_->body(member, region_->chunks.Begin(chunk), region_->chunks.Begin(chunk + 1));
    }
  }
  return chunks;
}

void Team::WaitForHelpers() {
  const auto finished = [this] { return unfinished_.load(std::memory_order_acquire) == 0; };
  if (Spin(finished)) return;
  const int64_t begin = Now();
  for (uint32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;) unfinished_.wait(left);
  meter_.Slept(Now() - begin);
}

}  // namespace bowline::kernels
