//===- AdviceTest.cpp - The compiler accepts the flags that its messages advise
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "compiler/Driver/Compile.h"
#include "compiler/Driver/StepSizes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "test/Unit/Base/temp_directory.h"

using namespace bowline;
using llvm::StringRef;
using testing::HasSubstr;

namespace {

/// A model of llama's family with so many layers and 37 positions; nothing else matters here.
std::string modelOf(const TempDirectory& directory, int layers, const nlohmann::json& keys = nlohmann::json::object()) {
  std::ifstream file(std::string(BOWLINE_TEST_DIR) + "/Models/llama-tied/config.json");
  nlohmann::json config = nlohmann::json::parse(file);
  config["num_hidden_layers"] = layers;
  config.update(keys);
  std::string folder = directory / ("layers" + std::to_string(layers));
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json") << config;
  return folder;
}

/// Applies one word of advice, such as "--batch 6"; false for one that is not known.
bool apply(StringRef flag, StringRef value, CompileOptions& options) {
  int64_t number = 0;
  if (flag == "--schedule") {
    options.strategy.schedule = value.str();
    return true;
  }
  if (value.getAsInteger(10, number)) return false;
  if (flag == "--batch")
    options.batch = number;
  else if (flag == "--microbatches")
    options.strategy.microbatches = number;
  else if (flag == "--seq")
    options.seq = number;
  else
    return false;
  return true;
}

/// All options that a message advises: "...; use --microbatches 2 or 6, or --batch 4 with --microbatches 2".
std::vector<CompileOptions> adviceOf(StringRef message, const CompileOptions& options) {
  std::vector<CompileOptions> advised;
  if (!message.contains("; use --")) return advised;
  llvm::SmallVector<StringRef> ways;
  message.split("; use ").second.split(ways, ", or ");
  for (StringRef way : ways) {
    auto [alone, with] = way.split(" with ");
    auto [flag, values] = alone.split(' ');
    llvm::SmallVector<StringRef> list;
    values.split(list, " or ");
    for (StringRef value : list) {
      CompileOptions& changed = advised.emplace_back(options);
      EXPECT_TRUE(apply(flag, value, changed)) << message.str();
      if (!with.empty()) EXPECT_TRUE(apply(with.split(' ').first, with.split(' ').second, changed)) << message.str();
    }
  }
  return advised;
}

/// Compiles up to where all sizes have been divided.
absl::Status compile(const CompileOptions& options) { return compileModel(options).status(); }

CompileOptions optionsOf(const std::string& model, int64_t batch, const char* mesh) {
  CompileOptions options;
  options.model = model;
  options.batch = batch;
  options.seq = 4;
  options.threads = 1;
  options.strategy.mesh = mesh;
  options.to = Phase::Local;
  return options;
}

std::string describe(const CompileOptions& options) {
  return absl::StrCat("--batch ", options.batch, " --seq ", options.seq, " --mesh ", options.strategy.mesh,
                      " --microbatches ", options.strategy.microbatches.value_or(1), " --schedule ",
                      options.strategy.schedule);
}

/// Where the options are refused, all that is advised must be accepted. Returns how much was.
size_t expectAdviceHolds(const CompileOptions& options) {
  absl::Status status = compile(options);
  std::vector<CompileOptions> advised = adviceOf({status.message().data(), status.message().size()}, options);
  EXPECT_TRUE(status.ok() || !advised.empty()) << describe(options) << ": " << status;
  for (const CompileOptions& changed : advised)
    EXPECT_TRUE(compile(changed).ok()) << describe(options) << ": " << status << "\nadvised " << describe(changed)
                                       << ": " << compile(changed);
  return advised.size();
}

}  // namespace

// Batches, meshes, microbatches and schedules, of which most combinations are wrong, some in several ways at once.
TEST(Advice, SizesOfAStepAreTriedTogether) {
  TempDirectory directory;
  std::string model = modelOf(directory, 8);
  const struct {
    const char *mesh, *schedule;
  } strategies[] = {{"dp=2", ""},
                    {"dp=3,fsdp=2", ""},
                    {"pp=2", ""},
                    {"pp=2", "interleaved:2"},
                    {"pp=4,dp=2", "interleaved:2"},
                    {"pp=2,dp=2", "dualpipe_v"},
                    {"pp=3", "interleaved:2"},
                    {"pp=2,fsdp=3", "zb_v"},
                    {"pp=2,dp=2", "breadth_first:3"}};
  size_t advised = 0;
  for (auto [mesh, schedule] : strategies)
    for (int64_t batch : {4, 9})
      for (int64_t microbatches : {1, 3, 8}) {
        CompileOptions options = optionsOf(model, batch, mesh);
        options.strategy.microbatches = microbatches;
        options.strategy.schedule = schedule;
        advised += expectAdviceHolds(options);
      }
  EXPECT_GE(advised, 50u);
}

// A user's example: the second message refused flags that the first one had advised.
TEST(Advice, MicrobatchesDivideWhatRanksDivide) {
  TempDirectory directory;
  CompileOptions options = optionsOf(modelOf(directory, 2), 4, "dp=2");
  options.strategy.microbatches = 3;
  EXPECT_THAT(std::string(compile(options).message()),
              HasSubstr("--batch 4 must be a multiple of 6: each of the 3 microbatches divides over the 2 ranks along "
                        "\"dp\"; use --microbatches 2, or --batch 6"));
}

// Stages and heads are no matter of a batch: where the model has too few, no batch is advised.
TEST(Advice, TheModelComesBeforeSizes) {
  TempDirectory directory;
  std::string model =
      modelOf(directory, 2, {{"num_attention_heads", 6}, {"num_key_value_heads", 2}, {"hidden_size", 48}});
  const struct {
    int64_t batch, microbatches;
    const char *mesh, *schedule, *says, *mended_mesh, *mended_schedule;
  } cases[] = {{7, 3, "pp=2,dp=2", "interleaved:2", "stages", "pp=2,dp=2", "1f1b"},
               {8, 5, "pp=2", "dualpipe_v", "stages", "pp=2", "zb_h1"},
               {10, 4, "pp=2,dp=2", "zb_v", "stages", "pp=2,dp=2", "zb_h1"},
               {7, 2, "pp=4", "", "stages", "pp=2", ""},
               {6, 4, "dp=2,tp=3", "", "heads", "dp=2,tp=2", ""}};
  for (const auto& [batch, microbatches, mesh, schedule, says, mended_mesh, mended_schedule] : cases) {
    CompileOptions options = optionsOf(model, batch, mesh);
    options.strategy.microbatches = microbatches;
    options.strategy.schedule = schedule;
    std::string message(compile(options).message());
    EXPECT_THAT(message, HasSubstr(says)) << describe(options);
    EXPECT_THAT(message, HasSubstr("; and then --batch ")) << describe(options);
    // Both pieces of advice together are accepted.
    std::smatch sizes;
    ASSERT_TRUE(std::regex_search(message, sizes, std::regex("--batch ([0-9]+)( or [0-9]+)?$"))) << message;
    CompileOptions mended = options;
    mended.batch = std::stoll(sizes[1]);
    mended.strategy.mesh = mended_mesh;
    mended.strategy.schedule = mended_schedule;
    EXPECT_TRUE(compile(mended).ok()) << message << "\n" << compile(mended);
  }
}

TEST(Advice, SizesAtTheLimits) {
  TempDirectory directory;
  std::string model = modelOf(directory, 4);
  for (int64_t batch : {int64_t{1} << 33, int64_t{1} << 62, INT64_MAX})
    for (int64_t microbatches : {int64_t{1}, int64_t{1} << 21, INT64_MAX})
      for (const char* mesh : {"dp=1", "dp=3", "pp=2,dp=3"}) {
        CompileOptions options = optionsOf(model, batch, mesh);
        options.strategy.microbatches = microbatches;
        absl::Status status = compile(options);
        ASSERT_FALSE(status.ok());
        // Checked, and not compiled: a step of a million microbatches takes its time.
        Strategy strategy;
        strategy.mesh = {{"pp", StringRef(mesh).contains("pp") ? 2 : 1}, {"dp", StringRef(mesh).contains('3') ? 3 : 1}};
        strategy.stageAxis = "pp", strategy.batchAxes = {"dp"};
        std::vector<CompileOptions> advised = adviceOf({status.message().data(), status.message().size()}, options);
        EXPECT_FALSE(advised.empty()) << status;
        for (const CompileOptions& changed : advised)
          EXPECT_TRUE(
              StepSizeRules(strategy).allows({changed.batch, changed.strategy.microbatches.value_or(1), changed.seq}))
              << status;
      }
}

TEST(Advice, SequencesOfTheModelDivide) {
  TempDirectory directory;
  std::string model = modelOf(directory, 2);
  size_t advised = 0;
  for (const char* mesh : {"tp=2", "tp=4"})
    for (int64_t seq : {1, 3, 37, 38, 39, 4000})
      for (bool isParallel : {false, true}) {
        CompileOptions options = optionsOf(model, 2, mesh);
        options.seq = seq;
        options.strategy.sequenceParallel = isParallel;
        advised += expectAdviceHolds(options);
      }
  EXPECT_GE(advised, 12u);
  for (CompileMode mode : {CompileMode::Train, CompileMode::Generate}) {
    CompileOptions options = optionsOf(model, 2, "tp=4");
    options.seq = 38;
    options.mode = mode;
    options.strategy.sequenceParallel = true;
    EXPECT_THAT(std::string(compile(options).message()),
                HasSubstr("has 37 positions, as config.json says; use --seq 36"));
    EXPECT_EQ(expectAdviceHolds(options), 1u);
  }
}

TEST(Advice, ATableHasItsMicrobatches) {
  TempDirectory directory;
  std::string model = modelOf(directory, 2), table = directory / "three.csv";
  std::ofstream(table) << "# F7 is none of them\nF0,F1,B0,F2,B1,B2\nF0,B0,F1,B1,F2,B2\n";
  for (int64_t batch : {3, 4, 6})
    for (int64_t microbatches : {1, 2, 4, 100}) {
      CompileOptions options = optionsOf(model, batch, "pp=2");
      options.strategy.microbatches = microbatches;
      options.strategy.schedule = table;
      EXPECT_GE(expectAdviceHolds(options), 1u);
    }
}

// Fewer ranks, or another schedule, where the model has fewer layers than stages.
TEST(Advice, StagesOfTheModel) {
  TempDirectory directory;
  size_t advised = 0;
  for (int layers : {2, 3, 5})
    for (const char* schedule : {"1f1b", "interleaved:2", "interleaved:3", "breadth_first:3", "zb_v", "dualpipe_v"})
      for (int ranks : {2, 3, 4, 6}) {
        CompileOptions options = optionsOf(modelOf(directory, layers), 12, "");
        options.strategy.mesh = absl::StrCat("pp=", ranks);
        options.strategy.microbatches = 12;
        options.strategy.schedule = schedule;
        absl::Status status = compile(options);
        if (status.ok()) continue;
        StringRef message(status.message().data(), status.message().size());
        ASSERT_TRUE(message.contains("stages are asked for")) << status;
        ++advised;
        if (StringRef after = message.split("ranks along \"pp\" is ").second; !after.empty()) {
          CompileOptions fewer = options;
          fewer.strategy.mesh = "pp=" + after.take_while(llvm::isDigit).str();
          EXPECT_TRUE(compile(fewer).ok()) << status << "\n" << compile(fewer);
        }
        if (StringRef other = message.split("use schedule \"").second; !other.empty()) {
          CompileOptions changed = options;
          changed.strategy.schedule = other.take_until([](char c) { return c == '"'; }).str();
          EXPECT_TRUE(compile(changed).ok()) << status << "\n" << compile(changed);
        }
        if (message.contains("give the mesh no axis")) {
          CompileOptions none = options;
          none.strategy.mesh = none.strategy.schedule = "";
          EXPECT_TRUE(compile(none).ok()) << status;
        }
      }
  EXPECT_GE(advised, 30u);
}

// Stages take every kind of recomputation, also where a schedule divides backward passes.
TEST(Advice, RecomputationOfStages) {
  TempDirectory directory;
  std::string model = modelOf(directory, 4);
  for (const char* schedule : {"1f1b", "zb_h1", "dualpipe_v", "interleaved:2"}) {
    CompileOptions options = optionsOf(model, 4, "pp=2");
    options.strategy.microbatches = 4;
    options.strategy.schedule = schedule;
    options.memoryLimit = 1 << 30;
    options.to = Phase::Fuse;
    for (const char* recompute : {"auto", "full"}) {
      options.strategy.recompute = recompute;
      EXPECT_TRUE(compile(options).ok()) << compile(options);
    }
  }
}

// Numbers of ranks that heads allow, and sequences too.
TEST(Advice, RanksOfHeadsAndSequences) {
  TempDirectory directory;
  std::string model =
      modelOf(directory, 2, {{"num_attention_heads", 12}, {"num_key_value_heads", 3}, {"hidden_size", 48}});
  for (bool isParallel : {false, true}) {
    CompileOptions options = optionsOf(model, 2, "tp=2");
    options.seq = isParallel ? 18 : 17;
    options.strategy.sequenceParallel = isParallel;
    absl::Status status = compile(options);
    auto [before, after] =
        StringRef(status.message().data(), status.message().size()).split("numbers of ranks that do are ");
    EXPECT_EQ(after.str(), isParallel ? "1, 3, 6" : "1, 3, 6, 12") << status;
    llvm::SmallVector<StringRef> numbers;
    after.split(numbers, ", ");
    for (StringRef number : numbers) {
      options.strategy.mesh = "tp=" + number.str();
      EXPECT_TRUE(compile(options).ok()) << compile(options);
    }
  }
}
