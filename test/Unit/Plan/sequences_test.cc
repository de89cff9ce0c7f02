#include "runtime/plan/sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace bowline {
namespace {

using ::testing::HasSubstr;

// Three sequences: rows 0 to 2 with two tokens before them, none, and row 3 with eight tokens before it, in blocks
// of 4.
struct Inputs {
  SequenceSizes sizes = {.sequences = 3, .listed = 3, .tokens = 4, .block_tokens = 4, .block_count = 9};
  std::vector<int32_t> rows = {0, 3, 3, 4};
  std::vector<int32_t> lengths = {5, 0, 9};
  std::vector<int32_t> blocks = {1, 2, 0, 0, 0, 0, 8, 7, 6};
};

absl::Status Check(const Inputs& inputs) {
  return CheckSequences(inputs.sizes, inputs.rows, inputs.lengths, inputs.blocks);
}

TEST(Sequences, WhatIsPromisedIsAccepted) {
  EXPECT_EQ(Check({}), absl::OkStatus());
  Inputs shared;  // a block that is full and only read
  shared.blocks[6] = 5;
  shared.lengths[0] = 8;
  shared.rows = {0, 1, 1, 2};
  shared.blocks[0] = 5;
  EXPECT_EQ(Check(shared), absl::OkStatus());
  Inputs none;
  none.rows = {0, 0, 0, 0};
  none.lengths = {0, 12, 0};
  EXPECT_EQ(Check(none), absl::OkStatus());
}

TEST(Sequences, WhatBreaksThePromiseIsNamed) {
  const struct {
    std::function<void(Inputs&)> change;
    const char* message;
  } cases[] = {
      {[](Inputs& i) { i.rows[0] = 1; }, "the rows of sequence 0 begin at 1; they must begin at 0"},
      {[](Inputs& i) { i.rows[2] = 2; }, "the rows of sequence 1 are [3, 2), which do not ascend within the 4 rows"},
      {[](Inputs& i) { i.rows[3] = 5; }, "the rows of sequence 2 are [3, 5), which do not ascend within the 4 rows"},
      {[](Inputs& i) { i.rows[1] = INT32_MIN; }, "the rows of sequence 0 are [0, -2147483648)"},
      {[](Inputs& i) { i.lengths[0] = 2; }, "the length of sequence 0 is 2; with 3 rows and 3 blocks of 4 tokens"},
      {[](Inputs& i) { i.lengths[1] = -1; }, "the length of sequence 1 is -1"},
      {[](Inputs& i) { i.lengths[2] = 13; },
       "the length of sequence 2 is 13; with 1 rows and 3 blocks of 4 tokens it "
       "must be 1 to 12"},
      {[](Inputs& i) { i.blocks[1] = 0; },
       "place 1 in the table of sequence 0 has block 0; its length needs one of 1 "
       "to 8"},
      {[](Inputs& i) { i.blocks[6] = 9; }, "place 0 in the table of sequence 2 has block 9"},
      {[](Inputs& i) { i.blocks[7] = -7; }, "place 1 in the table of sequence 2 has block -7"},
      {[](Inputs& i) { i.blocks[8] = 2; },
       "block 2 is written by sequence 0, and place 2 in the table of sequence 2 "
       "has it too"},
      {[](Inputs& i) { i.blocks[1] = 1; },
       "block 1 is written by sequence 0, and place 1 in the table of sequence 0 "
       "has it too"},
      {[](Inputs& i) { i.blocks[6] = 2; },
       "block 2 is written by sequence 0, and place 0 in the table of sequence 2 "
       "has it too"},
      {[](Inputs& i) { i.blocks[6] = 6; },
       "block 6 is written by sequence 2, and place 0 in the table of sequence 2 "
       "has it too"},
  };
  for (const auto& [change, message] : cases) {
    Inputs inputs;
    change(inputs);
    const absl::Status status = Check(inputs);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

// The last block that is partly full is written; the one before it is not.
TEST(Sequences, ABlockThatIsPartlyFullIsWritten) {
  Inputs inputs;
  inputs.blocks[6] = 1;  // tokens 0 to 3 of sequence 0, of which 2 and 3 are rows
  EXPECT_THAT(std::string(Check(inputs).message()), HasSubstr("block 1 is written by sequence 0"));
  inputs.rows = {0, 1, 1, 2};  // now token 4 alone is
  EXPECT_EQ(Check(inputs), absl::OkStatus());
}

}  // namespace
}  // namespace bowline
