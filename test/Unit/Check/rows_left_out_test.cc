// Rows that launches leave out: whoever reads them, or passes them on, is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "checker/PlanChecker.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Train/plan_builder.h"

namespace bowline {
namespace {

using fbs::BufferKind;
using fbs::DType;
using kernels::Access;
using testing::BytesOf;
using ::testing::HasSubstr;
using testing::PlanIn;

constexpr int64_t kRows = 8, kColumns = 4, kOffsets = 5;

// Generated code leaves rows of `middle` out, and a product of groups reads the others. Offsets are those of the input,
// copied twice.
struct Rows {
  Rows() {
    input = builder.Buffer("input", BufferKind::Input, DType::F32, {kRows, kColumns});
    matrices = builder.Buffer("matrices", BufferKind::Input, DType::F32, {kOffsets - 1, kColumns, kColumns});
    ids = builder.Buffer("ids", BufferKind::Input, DType::I32, {kRows});
    given = builder.Buffer("given", BufferKind::Input, DType::I32, {kOffsets});
    offsets = builder.Buffer("offsets", BufferKind::Temporary, DType::I32, {kOffsets});
    others = builder.Buffer("others", BufferKind::Temporary, DType::I32, {kOffsets});
    middle = builder.Buffer("middle", BufferKind::Temporary, DType::F32, {kRows, kColumns});
    fault = builder.Buffer("fault", BufferKind::Fault, DType::I32, {2});
    output = builder.Buffer("output", BufferKind::Output, DType::F32, {kRows, kColumns});
    builder.BeginProgram("step");
    builder.BeginSegment("rows");
    SetOffsets(offsets);
    SetOffsets(others);
  }

  void SetOffsets(uint32_t buffer) { builder.Copy(given, 0, buffer, 0, kOffsets * sizeof(int32_t)); }
  void CopyRows(uint32_t from, uint32_t to) { builder.Copy(from, 0, to, 0, kRows * kColumns * sizeof(float)); }

  // From `from` to `to`, rows of `columns` elements.
  void Generated(uint32_t from, uint32_t to, uint32_t count, int64_t columns = kColumns) {
    const int64_t rows = kRows * kColumns / columns;
    // From a kernel that takes as many arguments.
    builder.Launch("gather_rows", {},
                   {{from, Access::kRead, {kRows, kColumns}},
                    {count, Access::kRead, {kOffsets}},
                    {to, Access::kWrite, {kOffsets, kColumns}}});
    fbs::KernelT& kernel = *builder.plan().kernels.back();
    kernel.origin = fbs::KernelOrigin::Generated;
    kernel.name = "gated";
    kernel.attributes.clear();
    kernel.geometry.Set(fbs::ByRangeT());
    kernel.geometry.AsByRange()->extent = static_cast<uint64_t>(rows);
    kernel.arguments[0]->shape = kernel.arguments[2]->shape = {rows, columns};
    kernel.valid_rows = std::make_unique<fbs::ValidRowsT>();
    kernel.valid_rows->count = 1;
    kernel.valid_rows->arguments = {0, 2};
  }

  void Product(uint32_t rows, uint32_t at) {
    builder.Launch("check_offsets", {{"rows", {kRows}, {}, ""}},
                   {{at, Access::kRead, {kOffsets}}, {fault, Access::kReadWrite, {2}}});
    builder.Launch("grouped_matmul", {{"transposed", {0}, {}, ""}},
                   {{rows, Access::kRead, {kRows, kColumns}},
                    {matrices, Access::kRead, {kOffsets - 1, kColumns, kColumns}},
                    {at, Access::kRead, {kOffsets}},
                    {output, Access::kWrite, {kRows, kColumns}}});
  }

  // Rows of `to` are gathered from the input, which is a table, by `ids`, as many as `count` says.
  void Gathered(uint32_t ids, uint32_t to, uint32_t count) {
    builder.Launch("gather_rows", {{"leaves_rows_out", {1}, {}, ""}, {"in_range", {1}, {}, ""}},
                   {{input, Access::kRead, {kRows, kColumns}},
                    {ids, Access::kRead, {kRows}},
                    {count, Access::kRead, {kOffsets}},
                    {to, Access::kWrite, {kRows, kColumns}}});
  }
  void Scattered(uint32_t from, uint32_t ids, uint32_t count) {
    builder.Launch("scatter_add_rows", {{"leaves_rows_out", {1}, {}, ""}, {"in_range", {1}, {}, ""}},
                   {{from, Access::kRead, {kRows, kColumns}},
                    {ids, Access::kRead, {kRows}},
                    {count, Access::kRead, {kOffsets}},
                    {output, Access::kWrite, {kRows, kColumns}}});
  }

  fbs::PlanT Finish() {
    builder.Call(0);
    builder.Entry(fbs::EntryKind::EvalStep, {{"input", input}, {"matrices", matrices}, {"ids", ids}, {"given", given}},
                  {{"output", output}});
    fbs::PlanT plan = builder.Take();
    plan.images.push_back(std::make_unique<fbs::ImageT>());
    plan.images.back()->codes.push_back(std::make_unique<fbs::CodeT>());
    plan.images.back()->codes.back()->format = "none";
    plan.entries[0]->inputs[2]->limit = kRows;
    const fbs::BufferT& last = *plan.buffers.back();
    plan.arena_bytes = last.offset + last.bytes;
    return plan;
  }

  PlanBuilder builder{"rows", 1, 1};
  uint32_t input, matrices, ids, given, offsets, others, middle, fault, output;
};

absl::Status Check(fbs::PlanT plan) {
  const auto bytes = BytesOf(plan);
  EXPECT_EQ(VerifyPlan(PlanIn(bytes)), absl::OkStatus());
  return PlanChecker(PlanIn(bytes)).check();
}

TEST(RowsLeftOut, AreReadByNobodyInASoundPlan) {
  Rows rows;
  rows.Generated(rows.input, rows.middle, rows.offsets);
  rows.Product(rows.middle, rows.offsets);
  // In one that leaves out others, rows are whole again before everything is read.
  rows.Generated(rows.input, rows.middle, rows.others);
  rows.CopyRows(rows.input, rows.middle);
  rows.CopyRows(rows.middle, rows.output);
  EXPECT_EQ(Check(rows.Finish()), absl::OkStatus());
}

TEST(RowsLeftOut, NarrowerRowsOfTheSameCountAreThere) {
  Rows rows;
  rows.Generated(rows.input, rows.middle, rows.offsets);
  rows.Generated(rows.middle, rows.middle, rows.offsets, kColumns / 2);
  rows.builder.plan().kernels.back()->in_place.emplace_back(2, 0);
  rows.CopyRows(rows.input, rows.output);
  EXPECT_EQ(Check(rows.Finish()), absl::OkStatus());
}

TEST(RowsLeftOut, AreThoseThatRegisteredKernelsLeaveOutToo) {
  Rows rows;
  rows.Gathered(rows.ids, rows.middle, rows.offsets);
  rows.Scattered(rows.middle, rows.ids, rows.offsets);
  EXPECT_EQ(Check(rows.Finish()), absl::OkStatus());
}

struct Unsound {
  const char* name;
  std::function<void(Rows&)> commands;
  std::vector<const char*> message;
};

class RowsLeftOutBy : public ::testing::TestWithParam<Unsound> {};

TEST_P(RowsLeftOutBy, AreRefused) {
  Rows rows;
  GetParam().commands(rows);
  const absl::Status status = Check(rows.Finish());
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  for (const char* part : GetParam().message) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

const Unsound kUnsound[] = {
    {"Copied",
     [](Rows& r) {
       r.Generated(r.input, r.middle, r.offsets);
       r.CopyRows(r.middle, r.output);
     },
     {"the proof of initialisation fails", "command 3, copy", "reads all rows of buffer 6 'middle'",
      "command 2, launch of 'gated'", "left those behind its own count out"}},
    {"ReadByAnotherCount",
     [](Rows& r) {
       r.Generated(r.input, r.middle, r.offsets);
       r.Product(r.middle, r.others);
     },
     {"the proof of initialisation fails", "launch of 'grouped_matmul'", "buffer 6 'middle'"}},
    {"ReadWhenTheCountIsAnother",
     [](Rows& r) {
       r.Generated(r.input, r.middle, r.offsets);
       r.SetOffsets(r.offsets);
       r.Product(r.middle, r.offsets);
     },
     {"the proof of initialisation fails", "launch of 'grouped_matmul'", "buffer 6 'middle'"}},
    {"WrittenAgainInPart",
     [](Rows& r) {
       r.Generated(r.input, r.middle, r.others);
       // As many rows as offsets say, but of the first half alone.
       r.Generated(r.input, r.middle, r.offsets);
       fbs::KernelT& half = *r.builder.plan().kernels.back();
       half.arguments[0]->shape = half.arguments[2]->shape = {kRows / 2, kColumns};
       r.Product(r.middle, r.offsets);
     },
     {"the proof of initialisation fails", "launch of 'grouped_matmul'", "buffer 6 'middle'"}},
    {"ReadAsLongerRows",
     [](Rows& r) {
       r.Generated(r.input, r.middle, r.offsets);
       r.Generated(r.middle, r.output, r.offsets, 2 * kColumns);
     },
     {"the proof of initialisation fails", "command 3, launch of 'gated'", "buffer 6 'middle'"}},
    {"GatheredAndCopied",
     [](Rows& r) {
       r.Gathered(r.ids, r.middle, r.offsets);
       r.CopyRows(r.middle, r.output);
     },
     {"the proof of initialisation fails", "command 3, copy", "buffer 6 'middle'", "launch of 'gather_rows'"}},
    {"ScatteredByAnotherCount",
     [](Rows& r) {
       r.Gathered(r.ids, r.middle, r.offsets);
       r.Scattered(r.middle, r.ids, r.others);
     },
     {"the proof of initialisation fails", "launch of 'scatter_add_rows'", "buffer 6 'middle'"}},
    {"PassedOnToTheCaller",
     [](Rows& r) { r.Generated(r.input, r.output, r.offsets); },
     {"the proof of outputs fails: entry 'run.EvalStep' returns output 'output'", "launch of 'gated'",
      "left rows out"}},
};

INSTANTIATE_TEST_SUITE_P(All, RowsLeftOutBy, ::testing::ValuesIn(kUnsound),
                         [](const ::testing::TestParamInfo<Unsound>& info) { return info.param.name; });

struct Broken {
  const char* name;
  std::function<void(fbs::KernelT&)> breaks;
  const char* message;
};

class ValidRowsVerifier : public ::testing::TestWithParam<Broken> {};

TEST_P(ValidRowsVerifier, Refuses) {
  Rows rows;
  rows.Generated(rows.input, rows.middle, rows.offsets);
  rows.Product(rows.middle, rows.offsets);
  fbs::PlanT plan = rows.Finish();
  GetParam().breaks(*plan.kernels[0]);
  const auto bytes = BytesOf(plan);
  const absl::Status status = VerifyPlan(PlanIn(bytes));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

using K = fbs::KernelT;
const Broken kBroken[] = {
    {"NoSuchCount", [](K& k) { k.valid_rows->count = 3; }, "argument 3"},
    {"CountOfFloats", [](K& k) { k.valid_rows->count = 0; }, "argument 0, is not read as i32 of one dimension"},
    {"CountThatIsWritten", [](K& k) { k.arguments[1]->access = fbs::Access::ReadWrite; }, "is not read as i32"},
    {"NoSuchArgument", [](K& k) { k.valid_rows->arguments = {0, 9}; }, "argument 9"},
    {"Twice", [](K& k) { k.valid_rows->arguments = {0, 2, 0}; }, "argument 0 with rows is named twice"},
    {"CountAsRows", [](K& k) { k.valid_rows->arguments = {0, 1, 2}; }, "argument 1 with rows is named twice, or is"},
    {"OtherRows", [](K& k) { k.arguments[2]->shape = {kRows / 2, 2 * kColumns}; },
     "argument 2 with rows has another first dimension"},
    {"WrittenWhole", [](K& k) { k.valid_rows->arguments = {0}; }, "argument 2 is written and not among those"},
    {"Registered",
     [](K& k) {
       k.origin = fbs::KernelOrigin::Registered;
       k.geometry.Reset();
     },
     "of a registered kernel the registry knows that"},
};

INSTANTIATE_TEST_SUITE_P(All, ValidRowsVerifier, ::testing::ValuesIn(kBroken),
                         [](const ::testing::TestParamInfo<Broken>& info) { return info.param.name; });

}  // namespace
}  // namespace bowline
