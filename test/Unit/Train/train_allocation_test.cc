// The steady state allocates nothing: not the plan's run, not the reading of data, not the evaluation.

#include <gtest/gtest.h>

#include "runtime/train/evaluator.h"
#include "runtime/train/trainer.h"
#include "test/Unit/Runtime/allocation_counter.h"
#include "test/Unit/Train/token_files.h"
#include "test/Unit/Train/toy_plan.h"

namespace bowline {
namespace {

using testing::CanCountHeapAllocations;
using testing::HeapAllocations;

TEST(TrainAllocationTest, StepAndEvaluationAllocateNothing) {
  if (!CanCountHeapAllocations()) GTEST_SKIP() << "the sanitizer brings its own allocator";
  for (uint32_t threads : {1u, 2u}) {
    const ToyShape shape = {.vocabulary = 13, .sequence = 8, .rows = 3, .microbatches = 3, .threads = threads};
    const std::string file = LlmcFile(RandomTokens(301, shape.vocabulary, 1));
    const auto dataset = TokenDatasetFromBytes(AsBytes(file), "toy.bin", {.vocabulary = shape.vocabulary});
    const auto session = ToySession(ToyTrainPlan(shape));
    for (DataOrder order : {DataOrder::kSequential, DataOrder::kShuffle}) {
      auto trainer = Trainer::Create(session.get(), dataset->get(), order);
      auto evaluator = Evaluator::Create(session.get(), dataset->get());
      ASSERT_TRUE(trainer.ok() && evaluator.ok());
      ASSERT_TRUE(trainer->Initialize().ok());
      // By then the pool has its threads.
      ASSERT_TRUE(trainer->Step().ok());
      ASSERT_TRUE(evaluator->Evaluate().ok());
      const uint64_t before = HeapAllocations();
      bool ok = true;
      for (int i = 0; i < 20; ++i) ok = trainer->Step().ok() && ok;
      EXPECT_EQ(HeapAllocations() - before, 0u) << threads << " threads, " << NameOf(order);
      ok = evaluator->Evaluate().ok() && ok;
      EXPECT_EQ(HeapAllocations() - before, 0u) << "evaluation, " << threads << " threads";
      EXPECT_TRUE(ok);
    }
  }
  const uint64_t before = HeapAllocations();
  const auto session = ToySession(ToyTrainPlan());
  EXPECT_GE(HeapAllocations() - before, 1u) << "the counter counts nothing";
}

}  // namespace
}  // namespace bowline
