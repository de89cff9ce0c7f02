// bowline-check and bowline-inspect as a person runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "runtime/base/atomic_file.h"
#include "runtime/plan/plan_writer.h"
#include "runtime/plan/view/plan_view.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/plan_fixture.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Result {
  int exit_code = -1;
  std::string output;  // stdout and stderr
};

Result RunTool(const std::string& command) {
  Result result;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof(buffer), pipe)) result.output.append(buffer, count);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

class Tools : public ::testing::Test {
 protected:
  std::string Write(const std::function<void(fbs::PlanT&)>& change) {
    fbs::PlanT plan = testing::MakePlan();
    change(plan);
    const std::vector<uint8_t> bytes = testing::BytesOf(plan);
    const std::string path = directory_ / "x.plan";
    EXPECT_TRUE(WriteFileAtomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}).ok());
    return path;
  }

  const TempDirectory directory_;
  const std::string check_ = std::string(BOWLINE_CHECK) + " ";
  const std::string inspect_ = std::string(BOWLINE_INSPECT) + " ";
};

void Nothing(fbs::PlanT&) {}

TEST_F(Tools, CheckProvesASoundPlan) {
  const Result result = RunTool(check_ + Write(Nothing));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("proven  exact memory"));
  EXPECT_THAT(result.output, HasSubstr("\nsound\n"));
}

TEST_F(Tools, PlansWithoutCodeAreCheckedAndShown) {
  const std::string path = Write([](fbs::PlanT& p) {
    p.images[0]->codes[0]->format = kNoImageFormat;
    p.images[0]->codes[0]->data.clear();
  });
  const Result check = RunTool(check_ + path);
  EXPECT_EQ(check.exit_code, 0) << check.output;
  EXPECT_THAT(check.output, AllOf(HasSubstr("generated without code;"), HasSubstr("\nsound\n")));
  EXPECT_THAT(RunTool(check_ + "--json " + path).output, HasSubstr("\"has_code\": false"));
  EXPECT_THAT(RunTool(inspect_ + path).output, HasSubstr("has_code       false"));
  EXPECT_THAT(RunTool(inspect_ + Write(Nothing)).output, HasSubstr("has_code       true"));
}

TEST_F(Tools, InspectPrintsNamesThatAreNoText) {
  const std::string path = Write([](fbs::PlanT& p) {
    for (auto& kernel : p.kernels) {
      if (kernel->origin == fbs::KernelOrigin::Generated) kernel->name += "\xff";
    }
    for (auto& source : p.sources) source->location += "\xff\x80";
    p.images[0]->codes[0]->format += "\xff";
    p.name += "\xff";
  });
  for (const char* flags : {"", " --kernels", " --memory", " --json", " --json --kernels", " --json --memory"}) {
    const Result result = RunTool(inspect_ + path + flags);
    EXPECT_EQ(result.exit_code, 0) << flags << result.output;
    if (absl::StrContains(flags, "--json")) {
      EXPECT_TRUE(nlohmann::json::accept(result.output)) << flags << result.output;
    }
  }
}

TEST_F(Tools, CheckPrintsTheCounterexample) {
  const std::string path = Write([](fbs::PlanT& p) { p.programs[1]->timeline.erase(p.programs[1]->timeline.begin()); });
  const Result result = RunTool(check_ + path);
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("the proof of initialisation fails: entry 'step', segment 'micro'"));
  const std::string json = directory_ / "out.json";
  EXPECT_EQ(RunTool("(" + check_ + "--json " + path + " 2>/dev/null >" + json + ")").exit_code, 2);
  std::ifstream file(json);
  const auto report = nlohmann::json::parse(file);
  EXPECT_EQ(report["sound"], false);
  EXPECT_THAT(report["counterexample"].get<std::string>(), HasSubstr("initialisation"));
}

TEST_F(Tools, InspectSaysWhyRanksCommunicate) {
  fbs::PlanT plan = testing::MakeShardedLoop(2, 3, 4);
  plan.sources[0]->reason = "it's \x01needed";
  const std::vector<uint8_t> bytes = testing::BytesOf(plan);
  const std::string path = directory_ / "ranks.plan";
  EXPECT_TRUE(WriteFileAtomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}).ok());
  const Result why = RunTool(inspect_ + path + " --why");
  EXPECT_EQ(why.exit_code, 0) << why.output;
  EXPECT_THAT(why.output, AllOf(HasSubstr("all_reduce on 'tp'"), HasSubstr("  along tp\n"), HasSubstr("  along dp\n")));
  const auto json = nlohmann::json::parse(RunTool(inspect_ + path + " --json --about all_gather").output);
  ASSERT_EQ(json["entries"].size(), 1u);
  for (const auto& communication : json["entries"][0]["communications"]) {
    EXPECT_THAT(communication["operation"].get<std::string>(), HasSubstr("all_gather on 'dp'"));
  }
  EXPECT_EQ(RunTool(inspect_ + path + " --about nonsense").output, "no such communication\n");
  EXPECT_EQ(RunTool(inspect_ + Write(Nothing) + " --why").output, "no such communication\n");
}

TEST_F(Tools, CheckReportsRanks) {
  const auto write = [&](fbs::PlanT plan) {
    const std::vector<uint8_t> bytes = testing::BytesOf(plan);
    const std::string path = directory_ / "ranks.plan";
    EXPECT_TRUE(WriteFileAtomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}).ok());
    return path;
  };
  const std::string path = write(testing::MakePipeline(2, 3, 4));
  const Result sound = RunTool(check_ + path);
  EXPECT_EQ(sound.exit_code, 0) << sound.output;
  for (const char* part :
       {"ranks   6 (pp=2, dp=3), 2 roles\n", "of role 'stage1'", "proven  no deadlock     9 operations",
        "proven  no race", "proven  one stream", "proven  matching"}) {
    EXPECT_THAT(sound.output, HasSubstr(part));
  }
  const auto json = nlohmann::json::parse(RunTool(check_ + "--json " + path).output);
  EXPECT_EQ(json["ranks"], 6);
  EXPECT_EQ(json["roles"].size(), 2u);
  EXPECT_EQ(json["roles"][1]["name"], "stage1");
  EXPECT_EQ(json["roles"][1]["arena_bytes"], json["roles"][1]["highest_byte"]);
  EXPECT_EQ(json["entries"][1]["role"], 1);
  EXPECT_EQ(json["proofs"].size(), 16u);

  // The first stage does everything backwards.
  fbs::PlanT hangs = testing::MakePipeline(2, 3, 4);
  auto& timeline = hangs.programs[0]->timeline;
  std::reverse(timeline.begin(), timeline.end());
  const Result result = RunTool(check_ + write(std::move(hangs)));
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("bowline-check: error: '"));
  EXPECT_THAT(result.output, HasSubstr("ranks.plan': the proof of "));
}

// The command starts when its reader is gone; the exit code is that of its own work.
TEST_F(Tools, AReaderThatClosesEarlyIsNoError) {
  const std::string gone = directory_ / "gone";
  const auto run = [&](const std::string& command) {
    return RunTool("{ rm -f " + gone + "; mkfifo " + gone + "; { read gone < " + gone + "; " + command +
                   "; echo $? >&2; } | { exec <&-; echo > " + gone + "; }; }")
        .output;
  };
  const std::string sound = Write(Nothing);
  EXPECT_EQ(run(inspect_ + sound), "0\n");
  EXPECT_EQ(run(check_ + sound), "0\n");
  EXPECT_EQ(RunTool("(" + inspect_ + sound + " > /dev/full)").exit_code, 3);
  const std::string wrong =
      Write([](fbs::PlanT& p) { p.programs[1]->timeline.erase(p.programs[1]->timeline.begin()); });
  EXPECT_THAT(run(check_ + "--json " + wrong), AllOf(HasSubstr("fails"), ::testing::EndsWith("\n2\n")));
}

TEST_F(Tools, WrongFilesAreTheUsersFault) {
  const std::string malformed = Write([](fbs::PlanT& p) { p.entries[1]->program = 7; });
  const std::string text = directory_ / "text";
  ASSERT_TRUE(WriteFileAtomically(text, "hello, this is no plan").ok());
  for (const std::string& tool : {check_, inspect_}) {
    for (const std::string& arguments : {malformed, text, std::string("/nonexistent"), directory_.path(),
                                         std::string("/dev/null"), std::string(""), std::string("--no-such-flag")}) {
      const Result result = RunTool(tool + arguments);
      EXPECT_EQ(result.exit_code, 1) << tool << arguments << "\n" << result.output;
      EXPECT_FALSE(result.output.empty());
    }
    EXPECT_EQ(RunTool(tool + "--help").exit_code, 0);
  }
}

TEST_F(Tools, InspectShowsWhatIsInside) {
  const std::string path = Write(Nothing);
  const Result text = RunTool(inspect_ + path);
  EXPECT_EQ(text.exit_code, 0);
  for (const char* part : {"arena_bytes", "init (Init): program init", "step (Custom): program step, 11 commands",
                           "i32[5]", "x 2 slots below 32", "fixture_add", "segment micro", "workspace"}) {
    EXPECT_THAT(text.output, HasSubstr(part));
  }
  const Result memory = RunTool(inspect_ + "--memory " + path);
  EXPECT_EQ(memory.exit_code, 0);
  EXPECT_THAT(memory.output, HasSubstr("launch of 'matmul', from model.head (by emit)"));
  EXPECT_THAT(memory.output, HasSubstr("largest tensors at the peak"));
  const auto json = nlohmann::json::parse(RunTool(inspect_ + "--memory --json " + path).output);
  EXPECT_EQ(json["entries"][1]["memory"]["peak_command"], 2);
  EXPECT_EQ(json["buffers"].size(), 10u);
  EXPECT_EQ(json["kernels"][5]["launches"], 4);
}

}  // namespace
}  // namespace bowline
