// Runs an entry of two plans in turns and prints how long they take: the same program compiled in two ways, on a
// machine that does other things too. Parameters and inputs are random, the same in both, so that outputs can be
// compared.
//
// Processor time of the calling thread: compile for one thread. Usage: bowline-plan-bench A.plan B.plan ENTRY
// SECONDS

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/numbers.h"
#include "runtime/base/half.h"
#include "runtime/executor/session.h"

namespace bowline {
namespace {

double Seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double MedianOf(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Weights of a usual size, and whole numbers that the port allows.
void FillRandom(const TensorView& view, int64_t limit, std::mt19937& random) {
  if (view.dtype == fbs::DType::F32) {
    for (float& value : view.As<float>()) value = (static_cast<float>(random() % 2001) - 1000) * 2e-5f;
  } else if (view.dtype == fbs::DType::BF16) {
    for (uint16_t& value : view.As<uint16_t>()) value = F32ToBf16((static_cast<float>(random() % 2001) - 1000) * 2e-5f);
  } else if (view.dtype == fbs::DType::I32) {
    for (int32_t& value : view.As<int32_t>()) value = limit == 0 ? 0 : static_cast<int32_t>(random() % limit);
  }
}

absl::StatusOr<std::unique_ptr<Session>> Open(const char* path, const char* entry) {
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, LoadedPlan::FromFile(path));
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(plan)));
  std::mt19937 random(1);
  for (const uint32_t state : session->states()) FillRandom(session->StateAt(state), 0, random);
  BOWLINE_ASSIGN_OR_RETURN(const int index, session->FindEntry(entry));
  const auto* inputs = session->plan().entries()->Get(static_cast<uint32_t>(index))->inputs();
  for (uint32_t i = 0; i < SizeOf(inputs); ++i) {
    FillRandom(session->BufferAt(inputs->Get(i)->buffer()), inputs->Get(i)->limit(), random);
  }
  BOWLINE_RETURN_IF_ERROR(session->Run(index));  // threads start, memory is touched, parameters are prepared
  return session;
}

bool SameOutputs(const Session& a, const Session& b, int entry_a, int entry_b) {
  const auto outputs = [](const Session& session, int entry) {
    return session.plan().entries()->Get(static_cast<uint32_t>(entry))->outputs();
  };
  if (SizeOf(outputs(a, entry_a)) != SizeOf(outputs(b, entry_b))) return false;
  for (uint32_t i = 0; i < SizeOf(outputs(a, entry_a)); ++i) {
    const TensorView first = a.BufferAt(outputs(a, entry_a)->Get(i)->buffer());
    const TensorView second = b.BufferAt(outputs(b, entry_b)->Get(i)->buffer());
    if (first.bytes != second.bytes || std::memcmp(first.data, second.data, first.bytes) != 0) return false;
  }
  return true;
}

absl::Status Compare(const char* const* paths, const char* entry, double seconds) {
  std::array<std::unique_ptr<Session>, 2> sessions;
  std::array<int, 2> entries;
  for (size_t i : {0, 1}) {
    BOWLINE_ASSIGN_OR_RETURN(sessions[i], Open(paths[i], entry));
    BOWLINE_ASSIGN_OR_RETURN(entries[i], sessions[i]->FindEntry(entry));
  }
  const bool same = SameOutputs(*sessions[0], *sessions[1], entries[0], entries[1]);
  std::array<std::vector<double>, 2> times;
  std::vector<double> ratios;
  const double end = Seconds(CLOCK_MONOTONIC) + seconds;
  for (size_t pair = 0; pair < 5 || Seconds(CLOCK_MONOTONIC) < end; ++pair) {
    for (size_t i : {pair % 2, 1 - pair % 2}) {
      const double begin = Seconds(CLOCK_THREAD_CPUTIME_ID);
      BOWLINE_RETURN_IF_ERROR(sessions[i]->Run(entries[i]));
      times[i].push_back(Seconds(CLOCK_THREAD_CPUTIME_ID) - begin);
    }
    ratios.push_back(times[0].back() / times[1].back());
  }
  double load = 0;
  getloadavg(&load, 1);
  std::printf("%zu pairs, outputs %s: %.3f ms and %.3f ms, medians; ratio %.3f, median of pairs; load %.1f\n",
              ratios.size(), same ? "equal" : "DIFFER", 1e3 * MedianOf(times[0]), 1e3 * MedianOf(times[1]),
              MedianOf(ratios), load);
  return absl::OkStatus();
}

}  // namespace
}  // namespace bowline

int main(int argc, char** argv) {
  double seconds = 0;
  if (argc != 5 || !absl::SimpleAtod(argv[4], &seconds)) {
    std::fprintf(stderr, "usage: bowline-plan-bench A.plan B.plan ENTRY SECONDS\n");
    return 1;
  }
  const absl::Status status = bowline::Compare(argv + 1, argv[3], seconds);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bowline-plan-bench: error: %s\n", std::string(status.message()).c_str());
  return 1;
}
