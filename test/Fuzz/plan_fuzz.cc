// Any bytes as a plan file: an error, or a plan that the checker judges and that a session runs. The content hash would
// stop nearly every mutation, so the mutator writes the hash that the mutated bytes have.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "checker/CommunicationReport.h"
#include "checker/MemoryTimeline.h"
#include "checker/PlanChecker.h"
#include "checker/PlanPicture.h"
#include "checker/PredictedTimeline.h"
#include "runtime/executor/session.h"
#include "runtime/plan/meaning/plan_meaning.h"
#include "runtime/plan/plan_file.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/plan_fixture.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using bowline::LoadedPlan;

constexpr uint64_t kMaxCommands = 20000, kMaxArena = uint64_t{1} << 32, kMaxSlots = 100000;

// Where the bytes of the content hash are, if the root table says so. Never outside of the data.
uint8_t* FindHash(uint8_t* data, size_t size) {
  if (size < 64) return nullptr;
  flatbuffers::Verifier verifier(data, size);
  if (verifier.VerifyOffset(0) == 0) return nullptr;
  const auto* root = flatbuffers::GetRoot<bowline::fbs::Plan>(data);
  const auto* table = reinterpret_cast<const flatbuffers::Table*>(root);
  if (!table->VerifyTableStart(verifier) ||
      !table->VerifyFieldRequired<bowline::fbs::Hash256>(verifier, bowline::fbs::Plan::VT_CONTENT_HASH, 1)) {
    return nullptr;
  }
  return const_cast<uint8_t*>(root->content_hash()->bytes()->data());
}

void FixHash(uint8_t* data, size_t size) {
  uint8_t* hash = FindHash(data, size);
  if (hash == nullptr) return;
  const bowline::Sha256Digest digest = bowline::PlanContentHash({data, size}, hash);
  std::memcpy(hash, digest.data(), digest.size());
}

// Plans may rightly be long and large; a fuzzer has no time for those.
bool IsSmall(const bowline::fbs::Plan& plan) {
  if (plan.arena_bytes() > kMaxArena) return false;
  for (uint32_t i = 0; i < bowline::SizeOf(plan.arenas()); ++i) {
    if (plan.arenas()->Get(i)->bytes() > kMaxArena) return false;
  }
  uint64_t slots = 0;
  for (const auto* buffer : *plan.buffers()) slots += buffer->slots();
  const bowline::Timeline timeline(plan);
  uint64_t commands = 0;
  for (uint32_t i = 0; i < plan.entries()->size(); ++i) commands += timeline.commandCount(i);
  for (const auto* program : *plan.programs()) commands += bowline::SizeOf(program->timeline());
  return slots <= kMaxSlots && commands <= kMaxCommands;
}

// Sound plans: for one rank, for stages, for one role on several ranks. With certificates their mutants come less far,
// but these are mutated too.
const std::vector<uint8_t>& Seed(unsigned int choice) {
  static const std::vector<std::vector<uint8_t>> seeds = [] {
    std::vector<std::vector<uint8_t>> all;
    for (const bool certify : {false, true}) {
      bowline::fbs::PlanT plans[] = {bowline::testing::MakePlan(), bowline::testing::MakePlanWithSequences(),
                                     bowline::testing::MakePipeline(2, 2, 3),
                                     bowline::testing::MakeShardedLoop(2, 2, 2)};
      for (bowline::fbs::PlanT& plan : plans) {
        if (certify && !bowline::CertifyPlan(plan).ok()) __builtin_trap();
        all.push_back(bowline::testing::BytesOf(plan));
      }
    }
    return all;
  }();
  return seeds[choice % seeds.size()];
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  // Start from a sound plan where there is nothing, and return to one now and then.
  const std::vector<uint8_t>& start = Seed(seed / 64);
  const bool fits = start.size() <= max_size;
  if (size < 64 && !fits) {
    // Without it no mutant would pass the first checks, and a run would look as if there was nothing to find.
    std::fprintf(stderr, "plan_fuzz: the sound plan has %zu bytes; run with a -max_len that is twice that\n",
                 start.size());
    std::abort();
  }
  if (fits && (size < 64 || seed % 64 == 0)) {
    size = start.size();
    std::copy(start.begin(), start.end(), data);
  }
  size = LLVMFuzzerMutate(data, size, max_size);
  FixHash(data, size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto loaded = LoadedPlan::FromBytes({data, size});
  if (!loaded.ok() || !IsSmall(loaded->plan())) return 0;
  bowline::ComputeMeaning(loaded->plan()).status().IgnoreError();
  bowline::PlanChecker checker(loaded->plan());
  checker.check().IgnoreError();
  bowline::formatReport(checker.report());
  const uint64_t arena = loaded->plan().arena_bytes();
  const bowline::Timeline timeline(loaded->plan());
  for (uint32_t i = 0; i < loaded->plan().entries()->size(); ++i) {
    bowline::plotMemory(bowline::computeMemoryTimeline(timeline, i), 40, 4);
    bowline::reportCommunication(loaded->plan(), i, {});
    const absl::string_view entry = bowline::TextOf(loaded->plan().entries()->Get(i)->name());
    bowline::drawPlan(timeline, entry, *bowline::costModelOf(loaded->plan())).status().IgnoreError();
  }
  bowline::SessionOptions options;
  options.driver = "null";
  options.prove = false;
  const auto session = bowline::Session::Create(*std::move(loaded), options);
  if (!session.ok()) return 0;
  if ((*session)->arena().bytes() > arena) __builtin_trap();
  for (uint32_t i = 0; i < (*session)->plan().entries()->size(); ++i) {
    (*session)->Run(static_cast<int>(i)).IgnoreError();
  }
  return 0;
}
