//===- ServePlanTest.cpp - Steps over a paged cache compute what whole sequences give
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Execution/ServePlanFixture.h"

using namespace bowline;
using namespace bowline::serve_plan;
using ::bowline::testing::ReadTensor;
using ::bowline::testing::WriteTensor;
using ::testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(All, ServePlan,
                         ::testing::Values(Way{"gpt2-tiny"}, Way{"llama-tiny"}, Way{"mistral-tiny"}, Way{"qwen2-tiny"},
                                           Way{"qwen3-tiny"}, Way{"llama-tiny", "bf16"}, Way{"mistral-tiny", "bf16"},
                                           Way{"gpt2-tiny", "int8"}, Way{"llama-tiny", "int8"},
                                           Way{"mistral-tiny", "int8"}, Way{"qwen2-tiny", "int8"},
                                           Way{"qwen3-tiny", "int8"},
                                           Way{"llama-tiny", "int8", "discrete", "discrete:seed=3"},
                                           Way{"llama-tiny", "f32", "", "discrete:seed=1"},
                                           Way{"llama-tiny", "f32", "discrete", "discrete:seed=2"}),
                         nameOfWay);

TEST_P(ServePlan, AnyChunksGiveTheLogitsOfTheWhole) {
  Sequence all = make(16);
  step(16, {&all}, {16});
  for (const std::vector<int32_t> &chunks : {std::vector<int32_t>{3, 1, 5, 2, 5, 4, 3}, {7, 16}, {16, 6, 1}}) {
    Sequence sequence = make(kContext);
    for (int32_t chunk : chunks) {
      // In any step that has room.
      std::vector<int64_t> fits;
      for (int64_t bucket : kBuckets)
        if (bucket >= chunk)
          fits.push_back(bucket);
      step(fits[random() % fits.size()], {&sequence}, {chunk});
      ASSERT_FALSE(HasFatalFailure());
    }
    EXPECT_EQ(sequence.length, kContext);
    free.insert(free.begin(), sequence.table.begin(), sequence.table.end());
  }
}

TEST_P(ServePlan, TokenByToken) {
  Sequence one = make(kContext), beside = make(9);
  for (int32_t i = 0; i < kContext; ++i) {
    step(1, {&one}, {1});
    if (i < 9)
      step(5, {&beside}, {1});
    ASSERT_FALSE(HasFatalFailure());
  }
}

/// Sequences side by side, some waiting, with blocks in any order of the cache; one begins with full blocks of another.
TEST_P(ServePlan, SequencesDoNotDisturbEachOther) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Sequence> made = {make(kContext), make(11), make(5)};
    Sequence &first = made[0], &sharing = made[1];
    step(16, {&first}, {2 * kBlockTokens + 1});
    std::copy_n(first.tokens.begin(), 2 * kBlockTokens, sharing.tokens.begin());
    expect(sharing);
    std::copy_n(first.table.begin(), 2, sharing.table.begin());
    sharing.length = 2 * kBlockTokens;
    std::vector<Sequence *> order = {&made[0], &made[1], &made[2]};
    auto isDone = [](const Sequence *s) { return s->length == static_cast<int32_t>(s->tokens.size()); };
    while (!std::all_of(order.begin(), order.end(), isDone)) {
      std::shuffle(order.begin(), order.end(), random);
      int64_t bucket = kBuckets[1 + random() % 2], left = bucket;
      std::vector<int32_t> counts;
      for (Sequence *sequence : order) {
        int64_t most = std::min<int64_t>(left, static_cast<int64_t>(sequence->tokens.size()) - sequence->length);
        counts.push_back(static_cast<int32_t>(random() % (std::min<int64_t>(most, 6) + 1)));
        left -= counts.back();
      }
      step(bucket, order, counts);
      ASSERT_FALSE(HasFatalFailure());
    }
    for (size_t place = 0; place < kListed; ++place)
      for (const Sequence &sequence : made)
        if (sequence.table[place] != 0 && !(&sequence == &sharing && place < 2))
          free.push_back(sequence.table[place]);
    std::shuffle(free.begin(), free.end(), random);
  }
}

/// Neither by rows beside it, nor by blocks that it shares with a sequence whose later tokens are no numbers.
TEST_P(ServePlan, ATokenThatGivesNoNumbersSpoilsNoOtherSequence) {
  constexpr int32_t bad = 251;
  int64_t tables = 0;
  for (uint32_t i = 0; i < session->plan().buffers()->size(); ++i) {
    std::string name = session->plan().buffers()->Get(i)->name()->str();
    TensorRef table = session->BufferAt(i);
    if (name != "embed")
      continue;
    std::vector<float> elements = ReadTensor<float>(*session, table);
    int64_t width = table.shape[1];
    std::fill_n(elements.begin() + bad * width, width, NAN);
    WriteTensor(*session, table, elements);
    ++tables;
  }
  ASSERT_EQ(tables, 1);
  ignoredLogit = bad; // which the row gives where weights are tied
  Sequence spoilt = make(12), beside = make(7), sharing = make(12);
  std::copy_n(spoilt.tokens.begin(), 2 * kBlockTokens, sharing.tokens.begin());
  expect(sharing);
  spoilt.tokens[2 * kBlockTokens] = bad;
  makeRoom(spoilt, 12);
  makeRoom(beside, 4);
  write(16, inputsOf(16, {&spoilt, &beside}, {12, 4}));
  absl::Status status = session->Run("step_16");
  ASSERT_TRUE(status.ok()) << status;
  std::vector<float> logits = ReadTensor<float>(*session, session->Output("step_16", "logits"));
  ASSERT_TRUE(std::isnan(logits[0]));
  spoilt.length = 12;
  expectLogits(16, {&spoilt, &beside}, {0, 4});
  std::copy_n(spoilt.table.begin(), 2, sharing.table.begin());
  sharing.length = 2 * kBlockTokens;
  step(5, {&sharing, &beside}, {3, 2});
  step(1, {&sharing}, {1});
}

TEST_P(ServePlan, PortsOfSamplingTakeWhatIsInRange) {
  for (const auto &[port, wrong, range] : {std::tuple{"temperature", -0.5F, "[0, 1073741824]"},
                                           {"temperature", NAN, "[0, 1073741824]"},
                                           {"top_p", 1.25F, "[0, 1]"}}) {
    absl::StatusOr<TensorRef> tensor = session->Input("step_5", port);
    ASSERT_TRUE(tensor.ok());
    std::vector<float> values(kSequences, 0.5F);
    values[1] = wrong;
    absl::Status status = session->WriteAll<float>(*tensor, values);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("element 1 of input '" + std::string(port) + "', slot 0, is outside of " + range));
    values[1] = 1;
    EXPECT_TRUE(session->WriteAll<float>(*tensor, values).ok());
  }
  absl::StatusOr<TensorRef> wanted = session->Input("step_5", "wanted");
  ASSERT_TRUE(wanted.ok());
  EXPECT_TRUE(session->WriteAll<int32_t>(*wanted, {0, 1, 21}).ok());
  EXPECT_FALSE(session->WriteAll<int32_t>(*wanted, {0, 1, 22}).ok());
}

TEST(ServePlanOutputs, LogitsAreGivenToWhoAsksForThem) {
  CompileOptions options = optionsOf({"llama-tiny"}, CompileMode::Serve);
  options.withLogits = false;
  std::unique_ptr<fbs::PlanT> plan = compile(options);
  ASSERT_TRUE(plan);
  int64_t steps = 0;
  for (const auto &entry : plan->entries) {
    if (entry->kind != fbs::EntryKind::Step)
      continue;
    ++steps;
    for (const auto &output : entry->outputs)
      EXPECT_NE(output->name, "logits");
  }
  EXPECT_EQ(steps, 3);
}

TEST_P(ServePlan, InputsThatBreakThePromiseFailTheRunAlone) {
  Sequence a = make(9), b = make(6);
  step(16, {&a, &b}, {5, 3});
  makeRoom(a, 3);
  makeRoom(b, 2);
  const StepInputs right = inputsOf(16, {&a, &b}, {3, 2});
  StepInputs sharing = right, behind = right, descends = right, tooShort = right;
  sharing.blocks[kListed] = sharing.blocks[1];
  behind.blocks[1] = 0;
  descends.rows = {0, 3, 2, 2};
  tooShort.lengths[1] = 1;
  const std::string block = std::to_string(right.blocks[1]);
  for (const auto &[wrong, message] :
       {std::pair{&sharing, "block " + block + " is written by sequence 0, and place 0 in the table of sequence 1"},
        {&behind, "place 1 in the table of sequence 0 has block 0; its length needs one of 1 to 20"},
        {&descends, "the rows of sequence 1 are [3, 2), which do not ascend within the 16 rows of the step"},
        {&tooShort, "the length of sequence 1 is 1; with 2 rows"}}) {
    write(16, *wrong);
    absl::Status status = session->Run("step_16");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("entry 'step_16': " + message));
  }
  write(16, right);
  absl::Status status = session->Run("step_16");
  ASSERT_TRUE(status.ok()) << status;
  expectLogits(16, {&a, &b}, {3, 2});
}
