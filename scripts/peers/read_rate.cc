// Prints how fast threads read memory: GB/s of the best and of the median turn over 256 MiB, which no cache of a core
// holds. Decoding one token reads all weights once, so it cannot be faster.
//
//   read_rate THREADS   ->   {"best": 31.2, "median": 29.8}

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBytes = size_t{256} << 20;
constexpr int kTurns = 9;

uint64_t Sum(const uint64_t* from, size_t count) {
  uint64_t sums[32] = {};
  for (size_t i = 0; i + 32 <= count; i += 32) {
    for (size_t j = 0; j < 32; ++j) sums[j] += from[i + j];
  }
  uint64_t sum = 0;
  for (uint64_t part : sums) sum += part;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc == 2 ? std::atoi(argv[1]) : 0;
  if (threads < 1) {
    std::fprintf(stderr, "usage: read_rate THREADS\n");
    return 1;
  }
  std::vector<uint64_t> data(kBytes / sizeof(uint64_t), 1);
  const size_t part = data.size() / threads / 32 * 32;
  std::vector<double> rates;
  std::vector<uint64_t> sums(threads);
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back([&, i] { sums[i] += Sum(data.data() + i * part, part); });
    for (std::thread& worker : workers) worker.join();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    rates.push_back(part * threads * sizeof(uint64_t) / taken.count() / 1e9);
  }
  for (uint64_t sum : sums) {
    if (sum != part * kTurns) return 1;
  }
  std::sort(rates.begin(), rates.end());
  std::printf("{\"best\": %.2f, \"median\": %.2f}\n", rates.back(), rates[kTurns / 2]);
}
