#include "kernels/cpu/parallel/team.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <system_error>

#include "kernels/cpu/parallel/clock.h"

namespace bowline::kernels {
namespace {

// Several times what falling asleep and being woken costs, and longer than most gaps between regions.
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

// Threads that are started meanwhile get no signals: these are for threads that the program knows of.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

bool Team::InRegion() { return in_region; }

Team::Team(int size) : size_(size), process_(getpid()), members_(new Member[static_cast<size_t>(size)]) {
  const SignalsBlocked blocked;
  try {
    for (int i = 1; i < size_; ++i) members_[i].thread = std::thread(&Team::Help, this, i);
  } catch (const std::system_error&) {
    // The caller does what those who are missing would have done.
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
  region_.emplace(Region{chunks, body});
  unfinished_.store(static_cast<uint32_t>(chunks.parts), std::memory_order_relaxed);
  helped_indices_.store(0, std::memory_order_relaxed);
  helped_nanoseconds_.store(0, std::memory_order_relaxed);
  ++round_;
  const Division shares = {chunks.parts, members};
  for (int i = members; i-- > 0;) {
    GiveShare(members_[i],
              {round_, static_cast<uint16_t>(shares.Begin(i)), static_cast<uint16_t>(shares.Begin(i + 1))});
  }
  const Done own = RunChunks(0, round_);
  // Acquires what helpers wrote, if they have finished before.
  if (unfinished_.fetch_sub(own.chunks, std::memory_order_acq_rel) != own.chunks) WaitForHelpers();
  const Done helped = {0, helped_indices_.load(std::memory_order_relaxed),
                       helped_nanoseconds_.load(std::memory_order_relaxed)};
  in_region = false;
  return {Now() - begin, Worked(own, helped)};
}

// The clock counts the time that a thread was off its processor as work; so the time per index of the faster of `a` and
// `b` counts for the indices of both.
int64_t Team::Worked(const Done& a, const Done& b) {
  if (a.indices == 0 || b.indices == 0) return a.nanoseconds + b.nanoseconds;
  const double of_a = static_cast<double>(a.nanoseconds) / static_cast<double>(a.indices);
  const double of_b = static_cast<double>(b.nanoseconds) / static_cast<double>(b.indices);
  return static_cast<int64_t>(std::min(of_a, of_b) * static_cast<double>(a.indices + b.indices));
}

void Team::GiveShare(Member& member, const Share& share) {
  // Sequentially consistent, as the pair in WaitForRound: one of the two threads sees what the other wrote.
  member.share.store(share.ToWord(), std::memory_order_seq_cst);
  if (member.sleeps.load(std::memory_order_seq_cst) == 0) return;
  member.sleeps.store(0, std::memory_order_seq_cst);
  member.sleeps.notify_one();
}

uint32_t Team::WaitForRound(Member& member, uint32_t last) {
  uint32_t round = last;
  const auto changed = [&] {
    round = Share::FromWord(member.share.load(std::memory_order_seq_cst)).round;
    return round != last;
  };
  if (Spin(changed)) return round;
  for (;;) {
    member.sleeps.store(1, std::memory_order_seq_cst);
    if (changed()) break;
    member.sleeps.wait(1);
  }
  member.sleeps.store(0, std::memory_order_relaxed);
  return round;
}

void Team::Help(int member) {
  in_region = true;
  for (uint32_t round = 0;;) {
    round = WaitForRound(members_[member], round);
    if (stopping_.load(std::memory_order_relaxed)) return;
    const Done done = RunChunks(member, round);
    if (done.chunks == 0) continue;
    helped_indices_.fetch_add(done.indices, std::memory_order_relaxed);
    helped_nanoseconds_.fetch_add(done.nanoseconds, std::memory_order_relaxed);
    // When this thread has counted its chunks as finished, the region may end at any time.
    if (unfinished_.fetch_sub(done.chunks, std::memory_order_acq_rel) == done.chunks) unfinished_.notify_one();
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

Team::Done Team::RunChunks(int member, uint32_t round) {
  Done done;
  int64_t begin = 0;
  for (int i = 0; i < size_; ++i) {
    Member& from = members_[(member + i) % size_];
    for (int chunk; (chunk = TakeChunk(from, round, /*first=*/i == 0)) >= 0;) {
      if (done.chunks++ == 0) begin = Now();
      const int64_t first = region_->chunks.Begin(chunk), end = region_->chunks.Begin(chunk + 1);
      region_->body(member, first, end);
      done.indices += end - first;
    }
  }
  if (done.chunks > 0) done.nanoseconds = Now() - begin;
  return done;
}

void Team::WaitForHelpers() {
  const auto finished = [this] { return unfinished_.load(std::memory_order_acquire) == 0; };
  if (Spin(finished)) return;
  for (uint32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;) unfinished_.wait(left);
}

}  // namespace bowline::kernels
