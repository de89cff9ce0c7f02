#include "kernels/cpu/parallel/parallel.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "kernels/cpu/parallel/clock.h"
#include "kernels/cpu/parallel/idle_watch.h"
#include "kernels/cpu/parallel/team.h"
#include "kernels/cpu/parallel/team_ledger.h"

namespace bowline::kernels {
namespace {

std::atomic<bool> keep_teams_whole = false;

void RunAlone(const Division& chunks, ParallelLoop::MemberBody body) {
  for (int chunk = 0; chunk < chunks.parts; ++chunk) body(0, chunks.Begin(chunk), chunks.Begin(chunk + 1));
}

int MostChunks(int threads, int64_t extent) {
  const int64_t most = std::min<int64_t>(int64_t{ParallelLoop::kChunksPerThread} * threads, Team::kMostChunks);
  return static_cast<int>(std::min(most, extent));
}

}  // namespace

void KeepTeamsWhole() { keep_teams_whole.store(true, std::memory_order_relaxed); }

void ParallelLoop::RunMembers(int64_t extent, MemberBody body) const {
  if (extent <= 0) return;
  if (threads_ <= 1) return body(0, 0, extent);
  RunChunks(extent, MostChunks(threads_, extent), body);
}

void ParallelLoop::Run(int64_t extent, Body body) const {
  RunMembers(extent, [body](int, int64_t begin, int64_t end) { body(begin, end); });
}

void ParallelLoop::Run(int64_t extent, double nanoseconds_per_index, Body body) const {
  if (extent <= 0) return;
  const double chunks = static_cast<double>(extent) * nanoseconds_per_index / kChunkNanoseconds;
  // Written so that a NaN is divided.
  if (threads_ <= 1 || chunks < 2) return body(0, extent);
  const int most = MostChunks(threads_, extent);
  RunChunks(extent, chunks < most ? static_cast<int>(chunks) : most,
            [body](int, int64_t begin, int64_t end) { body(begin, end); });
}

void ParallelLoop::RunChunks(int64_t extent, int chunks, MemberBody body) const {
  thread_local std::unique_ptr<Team> team;
  thread_local TeamLedger ledger(1);
  const Division division = {extent, chunks};
  if (chunks <= 1 || Team::InRegion()) return RunAlone(division, body);
  if (ledger.size() < threads_) {
    team.reset();  // first, or both would have threads
    team = std::make_unique<Team>(threads_);
    ledger = TeamLedger(threads_);
    IdleWatch::OfProcess();  // starts now, so that nothing is allocated later
  }
  const int wanted = std::min(threads_, chunks);
  if (keep_teams_whole.load(std::memory_order_relaxed)) return static_cast<void>(team->Run(wanted, division, body));
  if (!ledger.whole()) {
    const IdleWatch::Idle idle = IdleWatch::OfProcess().Ask(CoarseNow());
    ledger.SeeIdle(idle.since, idle.until);
  }
  const int members = std::min(wanted, ledger.members());
  if (members == 1) return RunAlone(division, body);
  if (loop_times_.RunsAlone(extent, members)) {
    const int64_t begin = Now();
    RunAlone(division, body);
    return loop_times_.RanAlone(extent, Now() - begin);
  }
  const Team::Times times = team->Run(members, division, body);
  ledger.Ran(times.elapsed, times.taken);
  if (members == wanted) loop_times_.RanOnTeam(extent, times.elapsed);
}

}  // namespace bowline::kernels
