#ifndef BOWLINE_TEST_UNIT_TRAIN_RUN_FIXTURE_H_
#define BOWLINE_TEST_UNIT_TRAIN_RUN_FIXTURE_H_

// A directory with plans, data and weights, and bowline-run as a person calls it.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/plan/plan_writer.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Train/shell.h"
#include "test/Unit/Train/token_files.h"
#include "test/Unit/Train/toy_plan.h"

namespace bowline {

class RunFixture : public ::testing::Test {
 protected:
  // x.plan and g.plan of one model, d.bin with tokens for it.
  RunFixture() {
    Write("x.plan", ToyTrainPlan(shape_));
    ToyShape generate = shape_;
    generate.sequence = 16;
    Write("g.plan", ToyGeneratePlan(generate));
    WriteWholeFile(directory_ / "d.bin", LlmcFile(RandomTokens(301, shape_.vocabulary, 1)));
  }

  void Write(const std::string& name, fbs::PlanT plan) {
    const absl::Status status = WritePlanFile(plan, directory_ / name);
    ASSERT_TRUE(status.ok()) << status;
  }

  // `arguments` may use $D, the directory of the test.
  Outcome Run(const std::string& arguments, const std::string& before = "") const {
    return RunShell("D='" + directory_.path() + "'; export BOWLINE_CACHE_DIR=off; " + before +
                    " '" BOWLINE_RUN_TOOL "' " + arguments);
  }

  // Lines of a metrics file.
  std::vector<nlohmann::json> Metrics(const std::string& name) const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(directory_ / name);
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  // The same without values that depend on the clock, as when a save in the background is done.
  std::vector<nlohmann::json> TimelessMetrics(const std::string& name) const {
    std::vector<nlohmann::json> lines;
    for (nlohmann::json& line : Metrics(name)) {
      if (line.contains("save_s")) continue;
      line.erase("tokens_per_s");
      line.erase("step_ms");
      line.erase("run");
      lines.push_back(std::move(line));
    }
    return lines;
  }

  ToyShape shape_ = {.vocabulary = 128, .sequence = 5, .rows = 2, .microbatches = 3, .width = 8, .max_steps = 400};
  TempDirectory directory_;
};

}  // namespace bowline

#endif  // BOWLINE_TEST_UNIT_TRAIN_RUN_FIXTURE_H_
