#ifndef BOWLINE_KERNELS_CPU_PARALLEL_TEAM_H_
#define BOWLINE_KERNELS_CPU_PARALLEL_TEAM_H_

// A team of threads: the caller and the helpers with which it shares the work of parallel regions.
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

// The division of [0, extent) into contiguous parts whose sizes differ by at most one.
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
    // ns that members waited for a processor, summed over all members that reported since the last region
    // ended.
    int64_t taken;
  };

  // Calls body(member, begin, end) once for each chunk, on `members` threads; the caller is member 0. Must not be
  // called by two threads at once or from inside a body. 1 <= members <= size(), 1 <= chunks.parts <= kMostChunks.
  Times Run(int members, const Division& chunks, Body body) noexcept;

  // Returns whether the calling thread is running a body of a region, as caller or as helper of any team.
  static bool InRegion();

 private:
  static constexpr size_t kCacheLine = 64;

  struct Region {
    Division chunks;
    Body body;
    uint32_t float_settings;  // of the caller; helpers adopt them, so that results do not depend on the thread
  };

  // The chunks [first, end) of a round that no member has taken yet.
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
  // Waits until the member's share belongs to another round than `last`, and returns that round.
  static uint32_t WaitForRound(Member& member, uint32_t last, ProcessorMeter& meter);
  // Takes the first or the last chunk of a member's share and returns it; -1 if the share has none of this round.
  static int TakeChunk(Member& from, uint32_t round, bool first);
  // Takes and runs chunks until all are taken; returns the number that this member ran.
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
  // The number of unfinished chunks of the current round. A helper subtracts its chunks once it finds no more.
  alignas(kCacheLine) std::atomic<uint32_t> unfinished_{0};
  // The sum of the members' reports since the caller last read it; each member reports every few milliseconds.
  std::atomic<int64_t> taken_{0};
};

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_CPU_PARALLEL_TEAM_H_
