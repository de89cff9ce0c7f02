// Data that a device finds wrong: the run fails and names the data, and nothing was read or written beyond its
// arguments.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checker/PlanChecker.h"
#include "kernels/cpu/grouped/grouped_reference.h"
#include "runtime/drivers/builtin_drivers.h"
#include "runtime/executor/session.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Runtime/session_tensors.h"
#include "test/Unit/Train/plan_builder.h"

namespace bowline {
namespace {

using fbs::BufferKind;
using fbs::DType;
using kernels::Access;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ReadTensor;
using testing::WriteTensor;

constexpr int64_t kRows = 24, kColumns = 5, kOut = 3, kGroups = 4;

fbs::PlanT Finished(PlanBuilder& builder, bool two_runs) {
  fbs::PlanT plan = builder.Take();
  if (two_runs) testing::AllowTwoRuns(plan, *plan.entries[0]);
  // The builder rounds up.
  const fbs::BufferT& last = *plan.buffers.back();
  plan.arena_bytes = last.offset + last.bytes + (last.slots - 1) * last.slot_stride;
  return plan;
}

// Products of rows in groups, in two microbatches; their offsets are an input that nobody has looked at.
fbs::PlanT Grouped(bool two_runs) {
  PlanBuilder builder("grouped", 1, 1);
  const uint32_t rows = builder.Buffer("rows", BufferKind::Input, DType::F32, {kRows, kColumns});
  const uint32_t matrices = builder.Buffer("matrices", BufferKind::Input, DType::F32, {kGroups, kColumns, kOut});
  const uint32_t offsets = builder.Buffer("offsets", BufferKind::Input, DType::I32, {kGroups + 1}, 2);
  const uint32_t out = builder.Buffer("out", BufferKind::Output, DType::F32, {kRows, kOut}, 2);
  const uint32_t faults = builder.Buffer("faults", BufferKind::Fault, DType::I32, {2});
  builder.BeginProgram("step");
  builder.BeginSegment("products");
  builder.Launch("check_offsets", {{"rows", {kRows}, {}, ""}},
                 {{offsets, Access::kRead, {kGroups + 1}}, {faults, Access::kReadWrite, {2}}});
  builder.Launch("grouped_matmul", {{"transposed", {0}, {}, ""}},
                 {{rows, Access::kRead, {kRows, kColumns}},
                  {matrices, Access::kRead, {kGroups, kColumns, kOut}},
                  {offsets, Access::kRead, {kGroups + 1}},
                  {out, Access::kWrite, {kRows, kOut}}});
  builder.Call(0);
  builder.Call(1);
  builder.Entry(fbs::EntryKind::EvalStep, {{"rows", rows}, {"matrices", matrices}, {"offsets", offsets}},
                {{"out", out}});
  return Finished(builder, two_runs);
}

constexpr int64_t kTable = 7, kIds = 11;

// Rows of a table by numbers that nobody has looked at, and their sums by the same numbers.
fbs::PlanT Numbered() {
  PlanBuilder builder("numbered", 1, 1);
  const uint32_t table = builder.Buffer("table", BufferKind::Input, DType::F32, {kTable, kColumns});
  const uint32_t ids = builder.Buffer("ids", BufferKind::Input, DType::I32, {kIds});
  const uint32_t rows = builder.Buffer("rows", BufferKind::Output, DType::F32, {kIds, kColumns});
  const uint32_t sums = builder.Buffer("sums", BufferKind::Output, DType::F32, {kTable, kColumns});
  const uint32_t faults = builder.Buffer("faults", BufferKind::Fault, DType::I32, {4});
  builder.BeginProgram("step");
  builder.BeginSegment("lookups");
  builder.Launch("check_ids", {{"rows", {kTable}, {}, ""}},
                 {{ids, Access::kRead, {kIds}}, {faults, Access::kReadWrite, {2}}});
  builder.Launch("gather_rows", {},
                 {{table, Access::kRead, {kTable, kColumns}},
                  {ids, Access::kRead, {kIds}},
                  {rows, Access::kWrite, {kIds, kColumns}}});
  builder.Launch("check_ids", {{"rows", {kTable}, {}, ""}},
                 {{ids, Access::kRead, {kIds}}, {faults, Access::kReadWrite, {2}, 2 * sizeof(int32_t)}});
  builder.Launch("scatter_add_rows", {},
                 {{rows, Access::kRead, {kIds, kColumns}},
                  {ids, Access::kRead, {kIds}},
                  {sums, Access::kWrite, {kTable, kColumns}}});
  // As much as any device wants.
  fbs::BufferT& scratch = *builder.plan().buffers.back();
  scratch.bytes = 4096;
  scratch.shape = builder.plan().kernels.back()->arguments.back()->shape = {4096};
  builder.Call(0);
  builder.Entry(fbs::EntryKind::EvalStep, {{"table", table}, {"ids", ids}}, {{"rows", rows}, {"sums", sums}});
  return Finished(builder, /*two_runs=*/false);
}

// Rows of a table by numbers that are a state: an entry of kind Init, which prepares values, reads them. The step adds
// nothing but a lookup of its own, by an input.
fbs::PlanT Prepared() {
  PlanBuilder builder("prepared", 1, 1);
  const uint32_t table =
      builder.State("table", fbs::StateFlag::Weight | fbs::StateFlag::Saved, DType::F32, {kTable, kColumns});
  const uint32_t numbers = builder.State("numbers", fbs::StateFlag::Weight | fbs::StateFlag::Saved, DType::I32, {kIds});
  const uint32_t rows = builder.Buffer("rows", BufferKind::State, DType::F32, {kIds, kColumns});
  const uint32_t ids = builder.Buffer("ids", BufferKind::Input, DType::I32, {kIds});
  const uint32_t out = builder.Buffer("out", BufferKind::Output, DType::F32, {kIds, kColumns});
  const uint32_t own = builder.Buffer("own", BufferKind::Output, DType::F32, {kIds, kColumns});
  const uint32_t faults = builder.Buffer("faults", BufferKind::Fault, DType::I32, {4});
  const auto lookup = [&](uint32_t by, uint32_t result, uint64_t word) {
    builder.Launch("check_ids", {{"rows", {kTable}, {}, ""}},
                   {{by, Access::kRead, {kIds}}, {faults, Access::kReadWrite, {2}, word * sizeof(int32_t)}});
    builder.Launch("gather_rows", {},
                   {{table, Access::kRead, {kTable, kColumns}},
                    {by, Access::kRead, {kIds}},
                    {result, Access::kWrite, {kIds, kColumns}}});
  };
  builder.BeginProgram("step");
  builder.BeginSegment("lookups");
  lookup(ids, own, 0);
  builder.Copy(rows, 0, out, 0, kIds * kColumns * sizeof(float));
  builder.Call();
  builder.Entry(fbs::EntryKind::EvalStep, {{"ids", ids}}, {{"out", out}, {"own", own}});
  builder.BeginProgram("prepare");
  builder.BeginSegment("prepared");
  lookup(numbers, rows, 2);
  builder.Call();
  builder.Entry(fbs::EntryKind::Prepare, {}, {});
  return Finished(builder, /*two_runs=*/false);
}

struct Way {
  const char* name;
  const char* driver;
  const char* target[3];  // device, architecture, processor
};

class Faults : public ::testing::TestWithParam<Way> {
 protected:
  // Without a card, tests of it are skipped, unless there should be one.
  void SetUp() override {
    if (!absl::StartsWith(GetParam().driver, "cuda")) return;
    const auto device = AllDrivers("").CreateDevice("cuda", {});
    if ((absl::IsUnavailable(device.status()) || absl::IsNotFound(device.status())) &&
        std::getenv("BOWLINE_REQUIRE_CARD") == nullptr) {
      GTEST_SKIP() << device.status().message();
    }
  }

  std::unique_ptr<Session> Open(bool two_runs) { return Open(Grouped(two_runs)); }

  std::unique_ptr<Session> Open(fbs::PlanT plan) {
    const auto& [device, arch, cpu] = GetParam().target;
    plan.target->device = device;
    plan.target->arch = arch;
    plan.target->cpu = cpu;
    auto loaded = LoadedPlan::FromBytes(testing::BytesOf(plan));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    SessionOptions options;
    options.driver = GetParam().driver;
    // The builder places buffers as processors need them, for which cards are stricter.
    options.prove = device != "cuda";
    options.note = [](absl::string_view note) { ADD_FAILURE() << note; };
    auto session = Session::Create(*std::move(loaded), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  void Write(Session& session, const std::vector<int32_t>& first, const std::vector<int32_t>& second) {
    const absl::string_view entry = session.NameOf(0);
    WriteTensor<float>(session, session.Input(entry, "rows"), rows_);
    WriteTensor<float>(session, session.Input(entry, "matrices"), matrices_);
    WriteTensor<int32_t>(session, session.Input(entry, "offsets", 0), first);
    WriteTensor<int32_t>(session, session.Input(entry, "offsets", 1), second);
  }

  void ExpectProducts(const Session& session, const std::vector<std::vector<int32_t>>& offsets) {
    const std::vector<double> rows(rows_.begin(), rows_.end()), matrices(matrices_.begin(), matrices_.end());
    for (uint32_t slot = 0; slot < 2; ++slot) {
      const auto expected =
          kernels::reference::GroupedMatmul({kRows, kColumns, kOut, kGroups}, false, rows, matrices, offsets[slot]);
      const auto got = ReadTensor<float>(session, session.Output(session.NameOf(0), "out", slot));
      for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], expected[i]) << i;  // of small integers
    }
  }

  std::mt19937 random_{TestSeed()};
  std::vector<float> rows_ = Random(kRows * kColumns), matrices_ = Random(kGroups * kColumns * kOut);
  const std::vector<int32_t> good_ = {0, 3, 3, 20, 24};

 private:
  std::vector<float> Random(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(random_() % 16);
    return values;
  }
};

TEST_P(Faults, OfHostileOffsetsFailTheRunAndNoOther) {
  const auto session = Open(/*two_runs=*/false);
  const std::vector<std::pair<std::vector<int32_t>, const char*>> hostile = {
      {{-1, 3, 3, 20, 24},
       "offset 0 of rows in groups is -1, which is below the one before it, or 0, or above the number of rows"},
      {{0, 3, 2, 20, 24}, "offset 2 of rows"},
      {{0, 3, 3, 20, 25}, "offset 4 of rows"},
      {{0, INT32_MAX, 3, 20, INT32_MIN}, "offset 1 of rows"},
      {{INT32_MIN, INT32_MIN, -5, -4, -3}, "offset 0 of rows"}};
  for (const auto& [offsets, message] : hostile) {
    for (const bool first : {true, false}) {
      Write(*session, first ? offsets : good_, first ? good_ : offsets);
      const absl::Status status = session->Run(0);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("entry 'run.EvalStep', segment 'products', command 0, launch of 'check_offsets'"),
                        HasSubstr(message)));
      Write(*session, good_, {2, 2, 2, 2, 2});
      ASSERT_EQ(session->Run(0), absl::OkStatus());
      ExpectProducts(*session, {good_, {2, 2, 2, 2, 2}});
    }
  }
}

TEST_P(Faults, OfRandomOffsets) {
  const auto session = Open(/*two_runs=*/false);
  for (int i = 0; i < 50; ++i) {
    std::vector<int32_t> offsets(kGroups + 1);
    const uint32_t spread = i % 2 == 0 ? 30 : UINT32_MAX;
    for (int32_t& offset : offsets) offset = static_cast<int32_t>(random_() % spread) - (i % 3 == 0 ? 3 : 0);
    if (i % 4 < 3) std::sort(offsets.begin(), offsets.end());
    const bool right =
        offsets.front() >= 0 && offsets.back() <= kRows && std::is_sorted(offsets.begin(), offsets.end());
    Write(*session, good_, offsets);
    EXPECT_EQ(session->Run(0).ok(), right) << ::testing::PrintToString(offsets);
    if (right) ExpectProducts(*session, {good_, offsets});
  }
}

TEST_P(Faults, OfOneOfTwoRunsInFlight) {
  const auto session = Open(/*two_runs=*/true);
  const std::vector<int32_t> wrong = {0, 9, 8, 20, 24};
  for (const int bad : {0, 1, 2}) {
    std::vector<absl::Status> statuses;
    std::vector<RunTicket> tickets;
    for (int run = 0; run < 2; ++run) {
      Write(*session, good_, run == bad ? wrong : good_);
      const auto ticket = session->Start(0);
      ASSERT_TRUE(ticket.ok()) << ticket.status();
      tickets.push_back(*ticket);
    }
    for (const RunTicket ticket : tickets) statuses.push_back(session->Wait(ticket));
    EXPECT_EQ(statuses[0].ok(), bad != 0) << statuses[0];
    EXPECT_EQ(statuses[1].ok(), bad == 2) << statuses[1];
    if (bad == 0) EXPECT_THAT(std::string(statuses[1].message()), HasSubstr("began behind a run of entry"));
    if (bad == 2) ExpectProducts(*session, {good_, good_});
  }
}

// Each run in flight has its own inputs and results.
TEST_P(Faults, OfNoRunInFlight) {
  const auto session = Open(/*two_runs=*/true);
  std::optional<RunTicket> before;
  std::vector<std::vector<int32_t>> offsets_before;
  for (int run = 0; run < 40; ++run) {
    std::vector<std::vector<int32_t>> offsets(2, std::vector<int32_t>(kGroups + 1));
    for (std::vector<int32_t>& own : offsets) {
      for (int32_t& offset : own) offset = static_cast<int32_t>(random_() % (kRows + 1));
      std::sort(own.begin(), own.end());
    }
    if (run < 39) {
      Write(*session, offsets[0], offsets[1]);
      const auto ticket = session->Start(0);
      ASSERT_TRUE(ticket.ok()) << ticket.status();
      std::optional<RunTicket> last = std::exchange(before, *ticket);
      if (!last.has_value()) {
        offsets_before = offsets;
        continue;
      }
      ASSERT_EQ(session->Wait(*last), absl::OkStatus());
    } else {
      ASSERT_EQ(session->Wait(*before), absl::OkStatus());
    }
    ExpectProducts(*session, offsets_before);
    offsets_before = offsets;
  }
}

TEST_P(Faults, OfNumbersOfRows) {
  const auto session = Open(Numbered());
  const absl::string_view entry = session->NameOf(0);
  std::vector<float> table(kTable * kColumns);
  for (float& value : table) value = static_cast<float>(random_() % 16);
  for (int i = 0; i < 60; ++i) {
    std::vector<int32_t> ids(kIds), rows(kIds);
    for (int32_t& id : ids) id = static_cast<int32_t>(random_() % kTable);
    // Every third run is right, a third has one wrong number, and a third any.
    if (i % 3 == 1) {
      const int32_t wrong[] = {-1, kTable, INT32_MAX, INT32_MIN, kTable + 1};
      ids[random_() % kIds] = wrong[random_() % std::size(wrong)];
    }
    for (int32_t& id : ids) {
      if (i % 3 == 2) id = static_cast<int32_t>(random_());
    }
    for (int64_t n = 0; n < kIds; ++n) {
      rows[n] = static_cast<int32_t>(std::clamp<int64_t>(ids[n], 0, kTable - 1));
    }
    WriteTensor<float>(*session, session->Input(entry, "table"), table);
    WriteTensor<int32_t>(*session, session->Input(entry, "ids"), ids);
    const absl::Status status = session->Run(0);
    const auto first = std::mismatch(ids.begin(), ids.end(), rows.begin()).first;
    if (first == ids.end()) {
      ASSERT_EQ(status, absl::OkStatus());
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("entry 'run.EvalStep', segment 'lookups', command 0, launch of 'check_ids'"),
                        HasSubstr(absl::StrCat("row number ", first - ids.begin(), " is ", *first, ", which"))));
    }
    // A wrong row number counts as the nearest row, and nothing beside the arguments is touched.
    std::vector<float> expected_rows, expected_sums(table.size());
    for (const int32_t row : rows) {
      for (int64_t c = 0; c < kColumns; ++c) {
        expected_rows.push_back(table[row * kColumns + c]);
        expected_sums[row * kColumns + c] += expected_rows.back();
      }
    }
    EXPECT_EQ(ReadTensor<float>(*session, session->Output(entry, "rows")), expected_rows);
    EXPECT_EQ(ReadTensor<float>(*session, session->Output(entry, "sums")), expected_sums);
  }
}

TEST_P(Faults, OfWhatPreparesFailEachRunThatNeedsIt) {
  const auto session = Open(Prepared());
  const absl::string_view entry = session->NameOf(0);
  std::vector<float> table(kTable * kColumns);
  for (float& value : table) value = static_cast<float>(random_() % 16);
  const auto rows_of = [&](const std::vector<int32_t>& ids) {
    std::vector<float> rows;
    for (const int32_t id : ids) rows.insert(rows.end(), &table[id * kColumns], &table[id * kColumns] + kColumns);
    return rows;
  };
  const auto run = [&](const std::vector<int32_t>& numbers, const std::vector<int32_t>& ids) {
    WriteTensor<float>(*session, session->State("table"), table);
    WriteTensor<int32_t>(*session, session->State("numbers"), numbers);
    WriteTensor<int32_t>(*session, session->Input(entry, "ids"), ids);
    return session->Run(0);
  };
  std::vector<int32_t> good(kIds), wrong(kIds), ids(kIds);
  for (int32_t& id : good) id = static_cast<int32_t>(random_() % kTable);
  for (int32_t& id : ids) id = static_cast<int32_t>(random_() % kTable);
  wrong = good;
  wrong[4] = kTable;
  for (int repetition = 0; repetition < 3; ++repetition) {
    ASSERT_EQ(run(good, ids), absl::OkStatus());
    EXPECT_EQ(ReadTensor<float>(*session, session->Output(entry, "out")), rows_of(good));
    EXPECT_EQ(ReadTensor<float>(*session, session->Output(entry, "own")), rows_of(ids));
    absl::Status status = run(wrong, ids);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("Prepare', segment 'prepared', command 0, launch of 'check_ids'"),
                      HasSubstr("row number 4 is 7, which")));
    // Nothing was written since: it has to run again, and finds the same.
    EXPECT_THAT(std::string(session->Prepare().message()), HasSubstr("row number 4 is 7, which"));
    EXPECT_THAT(std::string(session->Run(1).message()), HasSubstr("row number 4 is 7, which"));
    EXPECT_THAT(std::string(run(good, wrong).message()), HasSubstr("segment 'lookups', command 0"));
  }
}

// A fault of a run that nobody has waited for stays its own.
TEST_P(Faults, OfARunAreNotThoseOfWhatPrepares) {
  const auto session = Open(Prepared());
  const absl::string_view entry = session->NameOf(0);
  const std::vector<int32_t> good(kIds, 3);
  std::vector<int32_t> wrong = good;
  wrong[5] = -2;
  WriteTensor<float>(*session, session->State("table"), std::vector<float>(kTable * kColumns));
  WriteTensor<int32_t>(*session, session->State("numbers"), good);
  WriteTensor<int32_t>(*session, session->Input(entry, "ids"), wrong);
  const auto ticket = session->Start(0);
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  EXPECT_EQ(session->Prepare(), absl::OkStatus());
  EXPECT_THAT(std::string(session->Wait(*ticket).message()), HasSubstr("row number 5 is -2, which"));
}

INSTANTIATE_TEST_SUITE_P(Drivers, Faults,
                         ::testing::Values(Way{"Cpu", "cpu", {"cpu", "x86_64", "x86-64-v3"}},
                                           Way{"Discrete", "discrete:seed=1", {"discrete", "x86_64", "x86-64-v3"}},
                                           Way{"Cuda", "cuda:graphs=0", {"cuda", "nvptx64", "sm_90"}},
                                           Way{"CudaGraphs", "cuda:graphs=1", {"cuda", "nvptx64", "sm_90"}}),
                         [](const ::testing::TestParamInfo<Way>& info) { return info.param.name; });

TEST(FaultPlans, AreSound) {
  for (const bool two_runs : {false, true}) {
    fbs::PlanT plan = Grouped(two_runs);
    const auto bytes = testing::BytesOf(plan);
    EXPECT_EQ(PlanChecker(testing::PlanIn(bytes)).check(), absl::OkStatus());
  }
  for (const auto make : {&Numbered, &Prepared}) {
    fbs::PlanT plan = make();
    const auto bytes = testing::BytesOf(plan);
    EXPECT_EQ(PlanChecker(testing::PlanIn(bytes)).check(), absl::OkStatus());
  }
}

}  // namespace
}  // namespace bowline
