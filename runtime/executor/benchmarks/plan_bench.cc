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
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "runtime/executor/session.h"
#include "types/half.h"

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

// Weights of a usual size, numbers from 0 to 1 where there is a limit, or whole numbers below `limit`.
std::vector<uint8_t> RandomBytes(const TensorRef& tensor, int64_t limit, std::mt19937& random) {
  std::vector<uint8_t> bytes(tensor.bytes, 0);
  const auto fill = [&](auto zero, auto draw) {
    using Element = decltype(zero);
    for (size_t i = 0; i + sizeof(Element) <= bytes.size(); i += sizeof(Element)) {
      const Element value = draw();
      std::memcpy(bytes.data() + i, &value, sizeof(value));
    }
  };
  const auto real = [&] {
    if (limit > 0) return static_cast<float>(random() % 1001) * 1e-3f;
    return (static_cast<float>(random() % 2001) - 1000) * 2e-5f;
  };
  if (tensor.dtype == fbs::DType::F32) fill(float{0}, real);
  if (tensor.dtype == fbs::DType::BF16) fill(uint16_t{0}, [&] { return F32ToBf16(real()); });
  if (tensor.dtype == fbs::DType::F16) fill(uint16_t{0}, [&] { return F32ToF16(real()); });
  if (tensor.dtype == fbs::DType::I32 && limit > 0) {
    fill(int32_t{0}, [&] { return static_cast<int32_t>(random() % static_cast<uint64_t>(limit)); });
  }
  return bytes;
}

// A session, the entry that is measured, and the data written to its inputs before each run.
struct Candidate {
  std::unique_ptr<Session> session;
  int entry = 0;
  std::vector<std::pair<TensorRef, std::vector<uint8_t>>> inputs;

  absl::Status WriteInputs() {
    for (const auto& [tensor, bytes] : inputs) BOWLINE_RETURN_IF_ERROR(session->Write(tensor, bytes));
    return absl::OkStatus();
  }
  absl::Status Run() {
    BOWLINE_RETURN_IF_ERROR(WriteInputs());
    return session->Run(entry);
  }
};

// Inputs of a step of serving: all of its sequences, as many rows each, behind up to 128 tokens that the cache has.
void FillSequences(const fbs::Sequences& sequences, Candidate& candidate) {
  constexpr int64_t kContext = 128;
  const int64_t block_tokens = sequences.block_tokens();
  const TensorRef& blocks = candidate.inputs[sequences.blocks()].first;
  const int64_t count = blocks.shape[0], listed = blocks.shape[1], rows = sequences.tokens() / count;
  const int64_t each = std::min<int64_t>(listed, (int64_t{sequences.block_count()} - 1) / count);
  const int64_t length = std::min(each * block_tokens, rows + kContext);
  std::vector<int32_t> begins, lengths, tables(static_cast<size_t>(count * listed), 0);
  for (int64_t r = 0; r <= count; ++r) begins.push_back(static_cast<int32_t>(r * rows));
  for (int64_t r = 0; r < count; ++r) {
    lengths.push_back(static_cast<int32_t>(length));
    for (int64_t place = 0; place < each; ++place)
      tables[static_cast<size_t>(r * listed + place)] = static_cast<int32_t>(1 + r * each + place);
  }
  const auto set = [&](uint32_t input, const std::vector<int32_t>& values) {
    std::memcpy(candidate.inputs[input].second.data(), values.data(), values.size() * sizeof(int32_t));
  };
  set(sequences.rows(), begins);
  set(sequences.lengths(), lengths);
  set(sequences.blocks(), tables);
}

absl::StatusOr<Candidate> Open(const char* path, const char* entry) {
  Candidate result;
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, LoadedPlan::FromFile(path));
  BOWLINE_ASSIGN_OR_RETURN(result.session, Session::Create(std::move(plan)));
  Session& session = *result.session;
  std::mt19937 random(1);
  for (const uint32_t state : session.states()) {
    BOWLINE_RETURN_IF_ERROR(session.Write(session.StateAt(state), RandomBytes(session.StateAt(state), 0, random)));
  }
  BOWLINE_ASSIGN_OR_RETURN(result.entry, session.FindEntry(entry));
  const auto* inputs = session.plan().entries()->Get(static_cast<uint32_t>(result.entry))->inputs();
  for (uint32_t i = 0; i < SizeOf(inputs); ++i) {
    const uint32_t buffer = inputs->Get(i)->buffer();
    for (uint32_t slot = 0; slot < session.plan().buffers()->Get(buffer)->slots(); ++slot) {
      const TensorRef tensor = session.BufferAt(buffer, slot);
      result.inputs.emplace_back(tensor, RandomBytes(tensor, inputs->Get(i)->limit(), random));
    }
  }
  const fbs::Entry& entry_of_plan = *session.plan().entries()->Get(static_cast<uint32_t>(result.entry));
  if (entry_of_plan.sequences() != nullptr) FillSequences(*entry_of_plan.sequences(), result);
  BOWLINE_RETURN_IF_ERROR(result.Run());  // threads start, memory is touched, parameters are prepared
  return result;
}

absl::StatusOr<std::vector<std::vector<uint8_t>>> OutputsOf(const Candidate& candidate) {
  const Session& session = *candidate.session;
  const auto* outputs = session.plan().entries()->Get(static_cast<uint32_t>(candidate.entry))->outputs();
  std::vector<std::vector<uint8_t>> result;
  for (uint32_t i = 0; i < SizeOf(outputs); ++i) {
    const TensorRef tensor = session.BufferAt(outputs->Get(i)->buffer());
    result.emplace_back(tensor.bytes);
    BOWLINE_RETURN_IF_ERROR(session.Read(tensor, absl::MakeSpan(result.back())));
  }
  return result;
}

absl::Status Compare(const char* const* paths, const char* entry, double seconds) {
  std::array<Candidate, 2> candidates;
  std::array<std::vector<std::vector<uint8_t>>, 2> outputs;
  for (size_t i : {0, 1}) {
    BOWLINE_ASSIGN_OR_RETURN(candidates[i], Open(paths[i], entry));
    BOWLINE_ASSIGN_OR_RETURN(outputs[i], OutputsOf(candidates[i]));
  }
  const bool same = outputs[0] == outputs[1];
  std::array<std::vector<double>, 2> times;
  std::vector<double> ratios;
  const double end = Seconds(CLOCK_MONOTONIC) + seconds;
  for (size_t pair = 0; pair < 5 || Seconds(CLOCK_MONOTONIC) < end; ++pair) {
    for (size_t i : {pair % 2, 1 - pair % 2}) {
      BOWLINE_RETURN_IF_ERROR(candidates[i].WriteInputs());
      const double begin = Seconds(CLOCK_THREAD_CPUTIME_ID);
      BOWLINE_RETURN_IF_ERROR(candidates[i].session->Run(candidates[i].entry));
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
