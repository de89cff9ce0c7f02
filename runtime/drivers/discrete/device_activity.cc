#include "runtime/drivers/discrete/device_activity.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

namespace bowline {
namespace {

std::atomic<uint64_t> commands{0};

std::mutex mutex;
std::multiset<uint64_t> turns;  // the turns of the threads that wait

// Longer than commands of small models take.
constexpr std::chrono::microseconds kQuiet{400};
constexpr std::chrono::seconds kLongest{1};

}  // namespace

void DeviceActivity::Count() { commands.fetch_add(1, std::memory_order_relaxed); }

void DeviceActivity::AwaitQuiet(uint64_t turn) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + kLongest;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    turns.insert(turn);
  }
  uint64_t seen = commands.load(std::memory_order_relaxed);
  for (auto quiet_since = Clock::now();;) {
    std::this_thread::sleep_for(kQuiet / 4);
    const std::lock_guard<std::mutex> lock(mutex);
    const uint64_t now = commands.load(std::memory_order_relaxed);
    const bool is_quiet = now == seen && Clock::now() - quiet_since >= kQuiet;
    if (Clock::now() >= end || (is_quiet && *turns.begin() == turn)) {
      turns.erase(turns.find(turn));
      // Something goes on now, for those whose turn is later.
      if (turns.empty() || *turns.begin() != turn) Count();
      return;
    }
    if (now != seen || is_quiet) quiet_since = Clock::now();
    seen = now;
  }
}

}  // namespace bowline
