//===- CollectiveProgramTest.cpp - Programs of one rank that use collectives themselves
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Collectives that no pass asks for yet, in programs that were written by hand or drawn, through the compiler from the
// phase `local` on to a plan that is proven and run: by ranks that are threads, on this processor and on the driver
// that judges plans, and by ranks that are processes. Elements are small integers: everything is exact and has to equal
// the reference interpreter. Interpreter and runtime both move data by the table of collectives, so drawn programs
// are computed once more here, by arithmetic on coordinates alone.
//
//===----------------------------------------------------------------------===//

#include "checker/PlanChecker.h"
#include "compiler/Driver/Compile.h"
#include "compiler/Interp/DistributedInterpreter.h"
#include "mlir/Parser/Parser.h"
#include "runtime/comm/loopback/loopback_group.h"
#include "runtime/executor/session.h"
#include "runtime/plan/plan_writer.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/view/mesh_view.h"
#include "test/Unit/Interp/OpHarness.h"
#include "test/Unit/Runtime/process_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <thread>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using ::testing::HasSubstr;

namespace {

constexpr int64_t kRows = 3, kColumns = 5;

/// The text of a module on a mesh, whose only role has function @f.
std::string moduleOn(const std::string &mesh, const std::string &function) {
  return R"(module attributes {plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "x86-64-v3", threads = 1>} {
    dist.mesh @mesh )" +
         mesh + "\nmodule {\ngraph.entry @run [@f] repeat [1]\n" + function + "}\n}\n";
}

/// The attributes of an argument whose rows are divided along `axes`.
std::string dividedAlong(const std::string &axes, int64_t ranks) {
  return " {dist.sharding = #dist.sharding<[{" + axes +
         "}, {}]>, dist.global_shape = array<i64: " + std::to_string(kRows * ranks) + ", " + std::to_string(kColumns) +
         ">}";
}

/// A program whose arguments are divided by rows among all ranks, and whose results all ranks have whole.
struct RankProgram {
  std::string text;
  int64_t ranks;
  std::vector<HostTensor> inputs, expected;
  std::vector<uint8_t> plan;

  /// Draws inputs, interprets and compiles.
  void prepare(Random &random, int64_t arguments) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context());
    ASSERT_TRUE(module) << text;
    for (int64_t index = 0; index < arguments; ++index)
      inputs.push_back(random.integers({kRows * ranks, kColumns}, -100, 100));
    auto results = DistributedInterpreter(*module->getOps<ModuleOp>().begin()).run("run", inputs);
    ASSERT_TRUE(succeeded(results)) << text;
    expected.assign(results->begin(), results->end());
    CompileOptions options;
    options.from = Phase::Local;
    options.threads = 1;
    absl::StatusOr<CompileResult> compiled = compileModule(*module, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status() << text;
    auto written = WritePlan(*compiled->plan);
    ASSERT_TRUE(written.ok()) << written.status();
    plan.assign(written->data(), written->data() + written->size());
  }

  absl::StatusOr<LoadedPlan> load() const { return LoadedPlan::FromBytes({plan.data(), plan.size()}); }

  void expectProven() const {
    auto loaded = load();
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    absl::Status certified = RequireCertificates(loaded->plan());
    EXPECT_TRUE(certified.ok()) << certified;
    PlanChecker checker(loaded->plan());
    absl::Status sound = checker.check();
    EXPECT_TRUE(sound.ok()) << sound << text;
  }

  /// Runs the plan twice as one rank; an error where a result is not the expected one.
  absl::Status runAsRank(RankGroup *group, const std::string &driver) const {
    BOWLINE_ASSIGN_OR_RETURN(LoadedPlan loaded, load());
    SessionOptions options;
    options.group = group;
    options.driver = driver;
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(loaded), options));
    for (int run = 0; run < 2; ++run) {
      for (size_t index = 0; index < inputs.size(); ++index)
        BOWLINE_RETURN_IF_ERROR(write(*session, index));
      BOWLINE_RETURN_IF_ERROR(session->Run("run"));
      for (size_t index = 0; index < expected.size(); ++index)
        BOWLINE_RETURN_IF_ERROR(compare(*session, index));
    }
    return absl::OkStatus();
  }

  void runOnThreads(const std::string &driver) const {
    auto group = LoopbackGroup::Create(static_cast<int>(ranks), {std::chrono::seconds(60)});
    ASSERT_TRUE(group.ok()) << group.status();
    std::vector<absl::Status> statuses(ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        std::unique_ptr<RankGroup> view = (*group)->AsRank(rank);
        statuses[rank] = runAsRank(view.get(), driver);
        view->Abort(statuses[rank]);
      });
    for (std::thread &thread : threads)
      thread.join();
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_TRUE(statuses[rank].ok()) << "rank " << rank << ": " << statuses[rank] << text;
  }

private:
  absl::Status write(Session &session, size_t index) const {
    const fbs::Port &port = *session.plan().entries()->Get(0)->inputs()->Get(index);
    BOWLINE_ASSIGN_OR_RETURN(TensorRef tensor, session.Input("run", TextOf(port.name())));
    ArrayRef<double> own = ArrayRef(inputs[index].data).slice(kRows * kColumns * session.rank(), kRows * kColumns);
    if (tensor.dtype == fbs::DType::I32)
      return session.WriteAll<int32_t>(tensor, std::vector<int32_t>(own.begin(), own.end()));
    return session.WriteAll<float>(tensor, std::vector<float>(own.begin(), own.end()));
  }

  template <typename T>
  static absl::Status compareAs(const Session &session, const TensorRef &tensor, const HostTensor &want) {
    std::vector<T> values(want.data.size());
    BOWLINE_RETURN_IF_ERROR(session.ReadAll(tensor, absl::MakeSpan(values)));
    for (auto [index, value, expected] : llvm::enumerate(values, want.data))
      if (value != expected)
        return absl::InternalError(absl::StrCat("element ", index, " is ", value, ", not ", expected));
    return absl::OkStatus();
  }

  absl::Status compare(const Session &session, size_t index) const {
    const fbs::Port &port = *session.plan().entries()->Get(0)->outputs()->Get(index);
    BOWLINE_ASSIGN_OR_RETURN(TensorRef tensor, session.Output("run", TextOf(port.name())));
    return tensor.dtype == fbs::DType::I32 ? compareAs<int32_t>(session, tensor, expected[index])
                                           : compareAs<float>(session, tensor, expected[index]);
  }
};

//===----------------------------------------------------------------------===//
// By hand
//===----------------------------------------------------------------------===//

/// A mesh, all of whose axes together are a ring.
struct Ring {
  std::string name, mesh, axes;
  int64_t ranks;
};

const Ring kRings[] = {{"Three", R"(["ring"] [3])", R"("ring")", 3},
                       {"Four", R"(["ring"] [4])", R"("ring")", 4},
                       {"TwoByTwo", R"(["dp", "ring"] [2, 2])", R"("dp", "ring")", 4}};

void PrintTo(const Ring &ring, std::ostream *out) { *out << ring.mesh; }

/// Multiplies the neighbour's part with the rank's own part, sends the product two places on and one back, and adds it
/// to integers that were sent the other way.
std::string ringOn(const Ring &ring) {
  std::string rows = std::to_string(kRows * ring.ranks), over = " over [" + ring.axes + "]";
  std::string argument = dividedAlong(ring.axes, ring.ranks);
  std::string body = "graph.func @f(%x: tensor<3x5xf32>" + argument + ", %i: tensor<3x5xi32>" + argument +
                     ") -> (tensor<ROWSx5xf32>, tensor<ROWSx5xi32>) {\n" + "%next = dist.permute %x by 1" + over +
                     " : tensor<3x5xf32>\n" + "%product = arith.mulf %next, %x : tensor<3x5xf32>\n" +
                     "%far = dist.permute %product by " + std::to_string(ring.ranks + 2) + over +
                     " : tensor<3x5xf32>\n" + "%back = dist.permute %far by -1" + over + " : tensor<3x5xf32>\n" +
                     "%around = dist.permute %i by -1" + over + " : tensor<3x5xi32>\n" +
                     "%real = arith.sitofp %around : tensor<3x5xi32> to tensor<3x5xf32>\n" +
                     "%sum = arith.addf %back, %real : tensor<3x5xf32>\n" + "%all = dist.all_gather %sum dim 0" + over +
                     " : tensor<3x5xf32> -> tensor<ROWSx5xf32>\n" + "%numbers = dist.all_gather %around dim 0" + over +
                     " : tensor<3x5xi32> -> tensor<ROWSx5xi32>\n" +
                     "graph.return %all, %numbers : tensor<ROWSx5xf32>, tensor<ROWSx5xi32>\n}\n";
  for (size_t at = body.find("ROWS"); at != std::string::npos; at = body.find("ROWS"))
    body.replace(at, 4, rows);
  return moduleOn(ring.mesh, body);
}

class CollectiveProgram : public ::testing::TestWithParam<Ring> {
protected:
  void SetUp() override {
    program = {ringOn(GetParam()), GetParam().ranks, {}, {}, {}};
    program.prepare(random, /*arguments=*/2);
  }

  Random random;
  RankProgram program;
};

//===----------------------------------------------------------------------===//
// Drawn
//===----------------------------------------------------------------------===//

/// Permutations along some axes, added to earlier values, on a grid of ranks.
class DrawnRings {
public:
  explicit DrawnRings(Random &random) {
    const std::vector<int64_t> grids[] = {{2, 2}, {2, 3}, {3, 2}, {4, 1}, {5, 1}, {1, 3}};
    sizes = grids[random.integer(0, std::size(grids) - 1)];
    ranks = sizes[0] * sizes[1];
    std::string type = "tensor<3x5xf32>", whole = "tensor<" + std::to_string(kRows * ranks) + "x5xf32>";
    std::string body = "graph.func @f(%0: " + type + dividedAlong(R"("a", "b")", ranks) + ") -> " + whole + " {\n";
    for (int step = 1; step <= 6; ++step) {
      std::string name = "%" + std::to_string(step);
      if (step % 3 == 0) {
        int64_t other = random.integer(0, step - 2);
        body +=
            name + " = arith.addf %" + std::to_string(step - 1) + ", %" + std::to_string(other) + " : " + type + "\n";
        steps.push_back({{}, other});
        continue;
      }
      std::vector<int64_t> axes;
      for (int64_t axis : random.permutation(2))
        if (sizes[axis] > 1 && (axes.empty() || random.flip()))
          axes.push_back(axis);
      int64_t members = 1;
      std::string names;
      for (int64_t axis : axes) {
        members *= sizes[axis];
        names += std::string(names.empty() ? "" : ", ") + (axis == 0 ? R"("a")" : R"("b")");
      }
      int64_t shift = random.integer(1, members - 1) + members * random.integer(-2, 2);
      body += name + " = dist.permute %" + std::to_string(step - 1) + " by " + std::to_string(shift) + " over [" +
              names + "] : " + type + "\n";
      steps.push_back({axes, shift});
    }
    text = moduleOn(R"(["a", "b"] [)" + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + "]",
                    body + R"(%all = dist.all_gather %6 dim 0 over ["a", "b"] : )" + type + " -> " + whole +
                        "\ngraph.return %all : " + whole + "\n}\n");
  }

  /// The results of the program for `input`.
  std::vector<double> compute(const std::vector<double> &input) const {
    constexpr int64_t kPart = kRows * kColumns;
    std::vector<std::vector<double>> values = {input};
    for (const Step &step : steps) {
      std::vector<double> result(input.size());
      for (int64_t rank = 0; rank < ranks; ++rank)
        for (int64_t i = 0; i < kPart; ++i) {
          double own = values.back()[rank * kPart + i];
          if (step.axes.empty())
            result[rank * kPart + i] = own + values[step.number][rank * kPart + i];
          else
            result[receiverOf(rank, step) * kPart + i] = own;
        }
      values.push_back(result);
    }
    return values.back();
  }

  std::string text;
  int64_t ranks;

private:
  struct Step {
    std::vector<int64_t> axes; // of a permutation, the first one outermost; none: a sum
    int64_t number;            // the shift, or the addend
  };

  int64_t receiverOf(int64_t rank, const Step &step) const {
    int64_t coordinates[] = {rank / sizes[1], rank % sizes[1]}, place = 0, members = 1;
    for (int64_t axis : step.axes) {
      place = place * sizes[axis] + coordinates[axis];
      members *= sizes[axis];
    }
    place = ((place + step.number) % members + members) % members;
    for (int64_t axis : llvm::reverse(step.axes)) {
      coordinates[axis] = place % sizes[axis];
      place /= sizes[axis];
    }
    return coordinates[0] * sizes[1] + coordinates[1];
  }

  std::vector<int64_t> sizes;
  std::vector<Step> steps;
};

} // namespace

TEST_P(CollectiveProgram, IsProven) { program.expectProven(); }

/// Another shift is another meaning, which the certificate does not have.
TEST_P(CollectiveProgram, IsCertifiedWithItsShifts) {
  std::unique_ptr<fbs::PlanT> changed(fbs::GetPlan(program.plan.data())->UnPack());
  bool found = false;
  for (auto &segment : changed->programs[0]->segments)
    for (auto &command : segment->commands)
      if (auto *collective = command->body.AsCollective();
          collective && collective->kind == fbs::CollectiveKind::Permute && !found) {
        collective->shift = collective->shift == 1 ? 2 : 1;
        found = true;
      }
  ASSERT_TRUE(found);
  auto bytes = WritePlan(*changed);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  auto loaded = LoadedPlan::FromBytes({bytes->data(), bytes->size()});
  EXPECT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.status().ToString(), HasSubstr("certificate"));
}

TEST_P(CollectiveProgram, RunsOnProcesses) {
  bowline::testing::Processes processes;
  int ranks = static_cast<int>(program.ranks);
  GlooOptions options = bowline::testing::OptionsAtFile(ranks, std::chrono::seconds(60));
  for (int rank = 0; rank < ranks; ++rank)
    processes.Fork([&, rank](bowline::testing::RankProcess &) -> absl::Status {
      BOWLINE_ASSIGN_OR_RETURN(auto group, GlooGroup::Create(bowline::testing::WithRank(options, rank)));
      absl::Status status = program.runAsRank(group.get(), "");
      group->Abort(status);
      return status;
    });
  for (int rank = 0; rank < ranks; ++rank) {
    bowline::testing::Outcome outcome = processes.Wait(rank);
    EXPECT_TRUE(outcome.ended && outcome.status.ok()) << "rank " << rank << ": " << outcome.status;
  }
}

TEST_P(CollectiveProgram, RunsOnThreads) { program.runOnThreads(""); }

TEST_P(CollectiveProgram, RunsOnTheDriverThatJudges) {
  for (const char *driver : {"discrete:seed=1", "discrete:seed=2"})
    program.runOnThreads(driver);
}

INSTANTIATE_TEST_SUITE_P(Rings, CollectiveProgram, ::testing::ValuesIn(kRings),
                         [](const auto &info) { return info.param.name; });

TEST(DrawnPrograms, PassTensorsAroundAsCoordinatesSay) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int i = 0; i < 30 && !HasFailure(); ++i) {
    DrawnRings drawn(random);
    RankProgram program = {drawn.text, drawn.ranks, {}, {}, {}};
    ASSERT_NO_FATAL_FAILURE(program.prepare(random, /*arguments=*/1));
    EXPECT_EQ(program.expected.front().data, drawn.compute(program.inputs.front().data)) << drawn.text;
    program.expectProven();
    program.runOnThreads("");
  }
}
