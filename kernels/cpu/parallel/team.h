#ifndef BOWLINE_KERNELS_CPU_PARALLEL_TEAM_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_TEAM_H_

// A thread, the caller, and the helpers that it shares regions of work with.
//
// A region is divided into chunks before it begins. Each member of the team takes chunks from the front of its share, a
// contiguous range, and then free chunks from the back of other shares. So a helper that sleeps, or has no processor,
// delays the region only while it is within a chunk; without helpers the caller computes everything. Timing decides
// which member computes a chunk, but not where chunks begin and end.
//
// A share is one word, which contains the number of the region that its chunks belong to, the round. A member that has
// taken a chunk of a round knows that the region has not ended, and reads the region only then. So regions need no
// barrier at their begin or end: a helper that comes late finds another round, or no chunks.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "absl/functional/function_ref.h"
#include "kernels/cpu/parallel/caller_meter.h"
#include "kernels/cpu/parallel/processor_meter.h"

namespace bowline::kernels {

// [0, extent) in parts whose sizes differ by at most one.
struct Division {
  int64_t extent;
  int parts;

  // The first index of a part; `extent` for part == parts.
  int64_t Begin(int part) const {
    const int64_t size = extent / parts, larger = extent % parts;
    return part * size + (part < larger ? part : larger);
  }
};

class Team {
 public:
  using Body = absl::FunctionRef<void(int member, int64_t begin, int64_t end)>;

  static constexpr int kMostChunks = UINT16_MAX;

  // A caller and size - 1 helpers, or fewer where the system has no more threads.
  explicit Team(int size);
  // Waits for the helpers to end, except in a process that was forked from the team's, which has none of them.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }

  struct Times {
    int64_t elapsed;  // ns that a region took
    // ns, added up over members, for which they did not have the processor that they wanted, as far as they reported it
    // since the last region did.
    int64_t taken;
  };

  // Calls body(member, begin, end) once for each chunk, on `members` threads, of which the caller is number 0. Not
  // from two threads at a time, nor from inside a body. 1 <= members <= size(), 1 <= chunks.parts <= kMostChunks.
  Times Run(int members, const Division& chunks, Body body) noexcept;

  // Whether the calling thread is inside a body that a team runs, its own or one that it helps.
  static bool InRegion();

 private:
  static constexpr size_t kCacheLine = 64;

  struct Region {
    Division chunks;
    Body body;
    uint32_t float_settings;  // the caller's, which helpers take over, so that bits do not depend on the thread
  };

  // Chunks [first, end) of a round, which no member took.
  struct Share {
    uint32_t round;
    uint16_t first, end;

    uint64_t ToWord() const { return uint64_t{round} << 32 | uint64_t{first} << 16 | end; }
    static Share FromWord(uint64_t word) {
      return {static_cast<uint32_t>(word >> 32), static_cast<uint16_t>(word >> 16), static_cast<uint16_t>(word)};
    }
  };

  struct alignas(kCacheLine) Member {
    std::atomic<uint64_t> share{0};
    std::atomic<uint32_t> sleeps{0};  // 1: waits to be woken when its share changes
    std::thread thread;               // the thread of a helper that could be started
  };

  void Help(int member);
  static void GiveShare(Member& member, const Share& share);
  // Waits until the member's share is of another round than `last`, and returns that.
  static uint32_t WaitForRound(Member& member, uint32_t last, ProcessorMeter& meter);
  // A chunk of a member's share, the first or the last; -1 if there is none of this round.
  static int TakeChunk(Member& from, uint32_t round, bool first);
  // Takes and runs chunks until all are taken; how many these were.
  uint32_t RunChunks(int member, uint32_t round);
  void WaitForHelpers();

  const int size_;
  const int process_;
  std::unique_ptr<Member[]> members_;
  uint32_t round_ = 0;
  std::atomic<bool> stopping_{false};
  CallerMeter meter_;
  // Written by the caller when no chunk is taken, read by members that have taken one.
  alignas(kCacheLine) std::optional<Region> region_;
  // Chunks of the present round. Helpers that have run some and find no more count them off.
  alignas(kCacheLine) std::atomic<uint32_t> unfinished_{0};
  // Reports of members, one each few milliseconds, since the caller took them last.
  std::atomic<int64_t> taken_{0};
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_TEAM_H_
