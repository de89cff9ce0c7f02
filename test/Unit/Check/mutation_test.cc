// Random damage to a certified plan: each mutant is refused, or computes bit for bit the values of the good plan.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "checker/PlanChecker.h"
#include "runtime/executor/session.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Plan/fixture_image.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Runtime/session_tensors.h"

namespace bowline {
namespace {

// Bits of all outputs and states after init and after each of two steps. `poison` fills every byte that nothing may
// depend on. The plan is well-formed and its inputs stay as they were checked, so this is safe even for plans that the
// checker refuses.
std::vector<uint8_t> Execute(const std::vector<uint8_t>& bytes, uint8_t poison) {
  auto loaded = LoadedPlan::FromBytes(bytes);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  auto session = Session::Create(*std::move(loaded), {.prove = false});
  if (!session.ok()) return {};  // a kernel refuses its signature
  const std::vector<uint8_t> poisoned((*session)->arena().bytes(), poison);
  EXPECT_TRUE((*session)->arena().Write(0, poisoned).ok());
  const fbs::ConstantData& constant = *(*session)->plan().constants()->Get(0);
  const absl::Span<const uint8_t> data(constant.data()->data(), constant.data()->size());
  EXPECT_TRUE((*session)->Write((*session)->BufferAt(testing::kWeight), data).ok());
  // State counts as set before any entry, as it is from weights.
  for (uint32_t state : {0u, 1u}) {
    const TensorRef tensor = (*session)->StateAt(state);
    testing::WriteTensor(**session, tensor, std::vector<float>(tensor.bytes / sizeof(float), 0.5f));
  }
  std::vector<uint8_t> bits;
  const auto append = [&](const TensorRef& tensor) {
    const std::vector<uint8_t> read = testing::ReadTensor<uint8_t>(**session, tensor);
    bits.insert(bits.end(), read.begin(), read.end());
  };
  for (const char* entry : {"init", "step", "step"}) {
    for (uint32_t slot : {0u, 1u}) {
      std::vector<int32_t> tokens(5);
      for (size_t i = 0; i < 5; ++i) tokens[i] = static_cast<int32_t>((7 * i + 11 * slot) % 32);
      testing::WriteTensor(**session, (*session)->Input("step", "tokens", slot), tokens);
    }
    EXPECT_TRUE((*session)->Run(entry).ok());
    for (uint32_t state : {0u, 1u}) append((*session)->StateAt(state));
    if (entry == std::string("step")) append(*(*session)->Output("step", "result"));
  }
  return bits;
}

// The same commands with every buffer in bytes of its own: the plan's meaning, whatever its packing.
std::vector<uint8_t> Unpack(const std::vector<uint8_t>& bytes) {
  fbs::PlanT plan;
  testing::PlanIn(bytes).UnPackTo(&plan);
  plan.arena_bytes = 0;
  for (auto& buffer : plan.buffers) {
    buffer->offset = (plan.arena_bytes + 63) / 64 * 64;
    plan.arena_bytes = buffer->offset + (buffer->slots - 1) * buffer->slot_stride + buffer->bytes;
  }
  return testing::BytesOf(plan);
}

using Random = std::mt19937;

std::vector<std::unique_ptr<fbs::CommandT>>* AnySegment(fbs::PlanT& plan, Random& random) {
  auto& segments = plan.programs[random() % 2]->segments;
  return &segments[random() % segments.size()]->commands;
}

fbs::Operand* AnyOperand(fbs::PlanT& plan, Random& random) {
  auto& commands = *AnySegment(plan, random);
  fbs::CommandBodyUnion& body = commands[random() % commands.size()]->body;
  if (fbs::CopyT* copy = body.AsCopy()) return random() % 2 ? copy->source.get() : copy->destination.get();
  auto& operands = body.AsLaunch()->operands;
  return &operands[random() % operands.size()];
}

std::string Mutate(fbs::PlanT& plan, Random& random) {
  switch (random() % 9) {
    case 0: {
      auto& commands = *AnySegment(plan, random);
      std::swap(commands[random() % commands.size()], commands[random() % commands.size()]);
      return "swap commands";
    }
    case 1:
      plan.buffers[random() % plan.buffers.size()]->offset += (static_cast<int64_t>(random() % 21) - 10) * 64;
      return "shift a buffer";
    case 2: {
      auto& commands = *AnySegment(plan, random);
      commands.erase(commands.begin() + static_cast<int64_t>(random() % commands.size()));
      return "drop a command";
    }
    case 3: {
      fbs::Operand* operand = AnyOperand(plan, random);
      *operand = fbs::Operand(random() % plan.buffers.size(), operand->offset());
      return "retarget an operand";
    }
    case 4: {
      fbs::Operand* operand = AnyOperand(plan, random);
      *operand = fbs::Operand(operand->buffer(), operand->offset() + 4 * (random() % 8));
      return "shift an operand";
    }
    case 5: {
      plan.constants[0]->data[random() % plan.constants[0]->data.size()] ^= static_cast<uint8_t>(1 << random() % 8);
      return "change a constant";
    }
    case 6: {
      // Of numbers that kernels take as they are.
      const testing::KernelIndex kernels[] = {testing::kRandom, testing::kZeroSteps, testing::kZeroSum};
      for (auto& attribute : plan.kernels[kernels[random() % 3]]->attributes) {
        if (!attribute->floats.empty()) attribute->floats[0] = static_cast<double>(random() % 3);
        if (attribute->name == "key") attribute->ints[0] = static_cast<int64_t>(random() % 3);
      }
      return "change attributes";
    }
    case 7: {
      auto& commands = *AnySegment(plan, random);
      if (fbs::LaunchT* launch = commands[random() % commands.size()]->body.AsLaunch()) {
        std::swap(launch->operands[random() % launch->operands.size()],
                  launch->operands[random() % launch->operands.size()]);
      }
      return "swap operands";
    }
    default: {
      auto& timeline = plan.programs[1]->timeline;
      std::swap(timeline[random() % timeline.size()], timeline[random() % timeline.size()]);
      return "swap calls";
    }
  }
}

struct Tally {
  int verifier = 0;          // refused as malformed, by the verifier or by a kernel
  int persistence = 0;       // refused by the checker, and not safe to execute: checked inputs may be written over
  int checker_harmful = 0;   // refused by the checker, and executing it shows why
  int checker_harmless = 0;  // refused by the checker, though this execution happens to be right
  int meaning = 0;           // sound, but the certificate says that something else was computed
  int refused_other = 0;     // of these: computes something else indeed, an addition fewer, say
  int same = 0;              // accepted, computes what the good plan computes
  int other = 0;             // accepted, computes something else: must not be
};

std::vector<uint8_t> WithoutCertificates(const std::vector<uint8_t>& bytes) {
  fbs::PlanT plan;
  testing::PlanIn(bytes).UnPackTo(&plan);
  plan.certificates.clear();
  return testing::BytesOf(plan);
}

class PlanMutation {
 public:
  explicit PlanMutation(const std::vector<uint8_t>& good)
      : good_(good), expected_(Execute(WithoutCertificates(good), 0)) {}

  void Round(Random& random, std::map<std::string, Tally>& tallies) {
    fbs::PlanT mutant;
    testing::PlanIn(good_).UnPackTo(&mutant);
    const std::string kind = Mutate(mutant, random);
    Tally& tally = tallies[kind];
    const std::vector<uint8_t> bytes = testing::BytesOf(mutant), bare = WithoutCertificates(bytes);
    const absl::Status loads = LoadedPlan::FromBytes(bytes).status();
    ASSERT_TRUE(loads.ok() || loads.code() == absl::StatusCode::kInvalidArgument) << loads;
    auto loaded = LoadedPlan::FromBytes(bare);
    if (!loaded.ok() || !Session::Create(*LoadedPlan::FromBytes(bare), {.prove = false}).ok()) {
      ++tally.verifier;
      return;
    }
    // The checker is asked whatever the certificate says.
    const absl::Status status = PlanChecker(loaded->plan()).check();
    if (absl::StrContains(status.message(), "the proof of persistence fails")) {
      ++tally.persistence;
      return;
    }
    const std::vector<uint8_t> bits = Execute(bare, 0x00), unpacked = Unpack(bytes);
    const bool right = bits == Execute(bare, 0x3f) && bits == Execute(WithoutCertificates(unpacked), 0x41);
    if (!status.ok()) {
      ++(right ? tally.checker_harmless : tally.checker_harmful);
      return;
    }
    EXPECT_FALSE(bits.empty());
    EXPECT_TRUE(right) << "'" << kind << "' was found sound, but depends on packing or on what memory held before";
    const bool same = bits == expected_;
    if (loads.ok()) {
      EXPECT_TRUE(same) << "'" << kind << "' was accepted, but computes something else than the good plan";
      ++(same ? tally.same : tally.other);
      EXPECT_TRUE(LoadedPlan::FromBytes(unpacked).ok()) << "'" << kind << "': another packing of it is refused";
      return;
    }
    EXPECT_THAT(std::string(loads.message()), ::testing::HasSubstr("computes something else"));
    ++tally.meaning;
    tally.refused_other += !same;
  }

  bool empty() const { return expected_.empty(); }

 private:
  const std::vector<uint8_t> good_;
  const std::vector<uint8_t> expected_;
};

TEST(Mutation, EachMutantIsRefusedOrHarmless) {
  fbs::PlanT good = testing::MakePlan(testing::FixtureImage());
  good.target->threads = 1;  // thousands of short runs: waking threads would take all the time
  ASSERT_TRUE(CertifyPlan(good).ok());
  PlanMutation mutation(testing::BytesOf(good));
  ASSERT_FALSE(mutation.empty());
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  std::map<std::string, Tally> tallies;
  for (int round = 0; round < 1000 && !HasFailure(); ++round) mutation.Round(random, tallies);
  std::printf("%-20s %9s %12s %16s %17s %20s %14s %6s %6s\n", "mutation", "malformed", "persistence", "checker,harmful",
              "checker,harmless", "certificate,meaning", "(these other)", "same", "other");
  Tally all;
  for (const auto& [kind, t] : tallies) {
    std::printf("%-20s %9d %12d %16d %17d %20d %14d %6d %6d\n", kind.c_str(), t.verifier, t.persistence,
                t.checker_harmful, t.checker_harmless, t.meaning, t.refused_other, t.same, t.other);
    all.checker_harmful += t.checker_harmful;
    all.refused_other += t.refused_other;
    all.same += t.same;
    all.other += t.other;
  }
  EXPECT_GT(all.checker_harmful, 50) << "the mutations test nothing";
  EXPECT_GT(all.refused_other, 20) << "no mutation soundly computes something else";
  EXPECT_GT(all.same, 20) << "everything is refused";
  EXPECT_EQ(all.other, 0);
}

}  // namespace
}  // namespace bowline
