// Checkpoints that several ranks write, without devices: tensors in memory as each rank would have them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/base/safetensors.h"
#include "runtime/train/checkpoint/save_checkpoint.h"
#include "runtime/train/tensors/shard_index.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A tensor of numbers, and how one strategy divides it.
struct Whole {
  std::string key;
  CheckpointRole role;
  std::vector<int64_t> shape;
  Sharding sharding;
  std::vector<float> values;
};

// The memory of the ranks of a mesh.
class Ranks {
 public:
  Ranks(RankMesh mesh, std::vector<Whole> tensors) : mesh_(std::move(mesh)), wholes_(std::move(tensors)) {
    memory_.resize(static_cast<size_t>(mesh_.ranks()));
    for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
      for (const Whole& whole : wholes_) {
        memory_[rank].emplace_back(static_cast<size_t>(Sharded(whole).memory().memory_elements()), 7.0f);
      }
    }
  }

  const RankMesh& mesh() const { return mesh_; }
  std::vector<CheckpointTensor> Tensors(int64_t rank) {
    std::vector<CheckpointTensor> tensors;
    for (size_t i = 0; i < wholes_.size(); ++i) {
      const Whole& whole = wholes_[i];
      std::shared_ptr<TensorMemory> data;
      if (Sharded(whole).HasRole(rank)) data = HostTensorMemory(memory_[rank][i].data());
      tensors.push_back({whole.key, whole.role, ElementType::kF32, whole.shape, data, whole.sharding});
    }
    return tensors;
  }

  // Every rank's memory as the values say, with `padding` elsewhere.
  void Fill(float padding) {
    ForEachMemory(
        [&](const Whole& whole, int64_t rank, std::vector<float>& memory) { memory = Expected(whole, rank, padding); });
  }
  void ExpectLoaded() {
    ForEachMemory([&](const Whole& whole, int64_t rank, std::vector<float>& memory) {
      EXPECT_EQ(memory, Expected(whole, rank, 0)) << whole.key << ", rank " << rank;
    });
  }

  void Save(const std::string& directory, const TrainerState& state = {.step = 3}) {
    const int64_t step = state.step;
    auto writer = CheckpointWriter::Begin(directory, step);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
      const std::vector<CheckpointTensor> tensors = Tensors(rank);
      const auto parts = StoredParts(tensors, {mesh_, rank});
      ASSERT_TRUE(parts.ok()) << parts.status();
      const absl::Status written = WriteParts(writer->staging_path(), state, *parts, {mesh_, rank}, nullptr);
      ASSERT_TRUE(written.ok()) << written;
    }
    if (mesh_.ranks() > 1) ASSERT_TRUE(writer->WriteIndex(step, mesh_, Tensors(0)).ok());
    ASSERT_TRUE(writer->WriteState(state, "{\"a\": 1}").ok());
    ASSERT_TRUE(writer->Commit().ok());
  }

  absl::Status Load(const std::string& path, int64_t rank) {
    const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(path);
    return checkpoint.ok() ? checkpoint->Load(Tensors(rank), {mesh_, rank}) : checkpoint.status();
  }
  void LoadAll(const std::string& path) {
    for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
      const absl::Status loaded = Load(path, rank);
      ASSERT_TRUE(loaded.ok()) << loaded;
    }
  }

 private:
  ShardedTensor Sharded(const Whole& whole) const {
    auto sharded = ShardedTensor::Create(mesh_, whole.shape, whole.sharding);
    EXPECT_TRUE(sharded.ok()) << sharded.status();
    return *std::move(sharded);
  }

  std::vector<float> Expected(const Whole& whole, int64_t rank, float padding) const {
    const ShardedTensor sharded = Sharded(whole);
    std::vector<float> memory(static_cast<size_t>(sharded.memory().memory_elements()), padding);
    EXPECT_TRUE(sharded.memory()
                    .ForEachRun(sharded.MemoryPlace(rank),
                                [&](const TensorDivision::Run& run) {
                                  std::copy_n(whole.values.begin() + run.global, run.count, memory.begin() + run.local);
                                  return absl::OkStatus();
                                })
                    .ok());
    return memory;
  }

  template <typename Visit>
  void ForEachMemory(Visit visit) {
    for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
      for (size_t i = 0; i < wholes_.size(); ++i) {
        if (Sharded(wholes_[i]).HasRole(rank)) visit(wholes_[i], rank, memory_[rank][i]);
      }
    }
  }

  RankMesh mesh_;
  std::vector<Whole> wholes_;
  std::vector<std::vector<std::vector<float>>> memory_;  // by rank and tensor
};

std::vector<float> RandomValues(size_t count) {
  static std::mt19937 random(TestSeed());
  std::vector<float> values(count);
  for (float& value : values) value = std::uniform_real_distribution<float>(1, 2)(random);
  return values;
}

constexpr CheckpointRole kParameter = CheckpointRole::kParameter, kOptimizer = CheckpointRole::kOptimizer;

// The same tensors under several strategies.
std::vector<Ranks> Strategies() {
  std::vector<Whole> tensors = {
      {"embed", kParameter, {13, 6}, {}, RandomValues(78)},   {"head", kParameter, {6, 13}, {}, RandomValues(78)},
      {"norm", kParameter, {5}, {}, RandomValues(5)},         {"nothing", kParameter, {0, 4}, {}, {}},
      {"embed.m", kOptimizer, {13, 6}, {}, RandomValues(78)}, {"scale", kOptimizer, {}, {}, RandomValues(1)}};
  std::vector<Ranks> strategies;
  const auto add = [&](const RankMesh& mesh, const std::vector<Sharding>& shardings) {
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].sharding = shardings[i];
    strategies.emplace_back(mesh, tensors);
  };
  add({}, {{}, {}, {}, {}, {}, {}});
  add({{{"dp", 3}}}, {{}, {}, {}, {}, {}, {}});
  add({{{"dp", 3}}}, {{.flat = {0}}, {.flat = {0}}, {.flat = {0}}, {.flat = {0}}, {.flat = {0}}, {.flat = {0}}});
  add({{{"dp", 2}, {"tp", 4}}}, {{.dim_shardings = {{1}, {}}, .flat = {0}},
                                 {.dim_shardings = {{}, {1}}},
                                 {},
                                 {.dim_shardings = {{}, {1}}},
                                 {.dim_shardings = {{1}, {0}}},
                                 {}});
  add({{{"pp", 2}, {"dp", 2}, {"tp", 2}}, 0},
      {{.dim_shardings = {{2}, {}}, .role = 0},
       {.view = {2, 3, 13}, .dim_shardings = {{2}, {}, {}}, .flat = {1}, .role = 1},
       {.role = 1},
       {.role = 0},
       {.view = {78}, .dim_shardings = {{2, 1}}, .role = 0},
       {.role = 1}});
  return strategies;
}

TEST(ShardedCheckpointTest, LoadsUnderEveryOtherStrategy) {
  std::vector<Ranks> strategies = Strategies();
  for (Ranks& saved : strategies) {
    const TempDirectory directory;
    saved.Fill(/*padding=*/99);
    saved.Save(directory.path());
    for (Ranks& loaded : strategies) {
      loaded.LoadAll(directory.path());
      loaded.ExpectLoaded();
    }
  }
}

TEST(ShardedCheckpointTest, EveryElementIsStoredOnce) {
  for (Ranks& ranks : Strategies()) {
    const TempDirectory directory;
    ranks.Save(directory.path());
    int64_t elements = 0, largest = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory / "step-00000003")) {
      if (entry.path().extension() != ".safetensors") continue;
      const auto file = SafetensorsFile::Open(entry.path());
      ASSERT_TRUE(file.ok()) << file.status();
      int64_t in_file = 0;
      for (const SafetensorsTensor& tensor : file->tensors()) in_file += tensor.elements;
      elements += in_file;
      largest = std::max(largest, in_file);
    }
    EXPECT_EQ(elements, 78 * 3 + 5 + 1);
    // Ranks share the work: parameters, of which the pipeline's stages have about as many.
    EXPECT_LE(largest, 161 / ranks.mesh().ranks() + (ranks.mesh().role_axis >= 0 ? 20 : 10));
  }
}

TEST(ShardedCheckpointTest, ExportsWhatOneRankWouldHaveSaved) {
  std::vector<Ranks> strategies = Strategies();
  const TempDirectory directory;
  strategies[0].Fill(0);
  ASSERT_TRUE(SaveCheckpoint(directory / "one", {.step = 3}, strategies[0].Tensors(0), "{\"a\": 1}").ok());
  for (size_t i = 0; i < strategies.size(); ++i) {
    const std::string run = directory / ("run" + std::to_string(i)), out = run + "-out";
    strategies[i].Fill(99);
    strategies[i].Save(run);
    const auto checkpoint = Checkpoint::Open(run);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    for (const bool with_training : {false, true}) {
      const std::string output = out + (with_training ? "-all" : "");
      const absl::Status exported = ExportCheckpoint(*checkpoint, output, with_training);
      ASSERT_TRUE(exported.ok()) << exported;
      for (const char* file : {"model.safetensors", "config.json", "optimizer.safetensors", "trainer_state.json"}) {
        const std::string expected = ReadWholeFile(directory / "one/step-00000003/" + file);
        ASSERT_FALSE(expected.empty());
        const bool is_there = with_training || std::string(file) < "o";
        EXPECT_EQ(ReadWholeFile(output + "/" + file), is_there ? expected : "") << file;
      }
    }
    // An export does not overwrite files in the folder.
    const absl::Status again = ExportCheckpoint(*checkpoint, out, false);
    EXPECT_EQ(ExitCode(again), 1);
    EXPECT_THAT(std::string(again.message()), HasSubstr("exists and is not empty"));
  }
}

class DamagedShardsTest : public ::testing::Test {
 protected:
  DamagedShardsTest() : ranks_(std::move(Strategies()[3])) {
    ranks_.Fill(0);
    ranks_.Save(directory_.path());
    index_ = nlohmann::json::parse(ReadWholeFile(path_ + "/shards.json"));
  }

  // The message of loading as rank 5, whose memory must stay as it is.
  std::string LoadError() {
    const absl::Status status = ranks_.Load(directory_.path(), 5);
    EXPECT_EQ(ExitCode(status), 1) << status;
    return std::string(status.message());
  }
  std::string LoadErrorWith(const nlohmann::json& index) {
    WriteWholeFile(path_ + "/shards.json", index.dump());
    return LoadError();
  }

  TempDirectory directory_;
  const std::string path_ = directory_ / "step-00000003";
  Ranks ranks_;
  nlohmann::json index_;
};

TEST_F(DamagedShardsTest, FilesOfRanks) {
  const std::string file = path_ + "/parameters.rank-00001.safetensors";
  const std::string good = ReadWholeFile(file);
  WriteWholeFile(file, good.substr(0, good.size() - 3));
  EXPECT_THAT(LoadError(), AllOf(HasSubstr("parameters.rank-00001.safetensors'"), HasSubstr("truncated")));
  std::filesystem::copy_file(path_ + "/parameters.rank-00002.safetensors", file,
                             std::filesystem::copy_options::overwrite_existing);
  // Rank 1 and 2 have other columns of the head, but as many.
  EXPECT_THAT(LoadError(), AllOf(HasSubstr("parameters.rank-00001.safetensors'"), HasSubstr("rank 2")));
  std::filesystem::remove(file);
  EXPECT_THAT(LoadError(), HasSubstr("parameters.rank-00001.safetensors': No such file"));
}

TEST_F(DamagedShardsTest, FilesOfAnotherStep) {
  ranks_.Save(directory_.path(), {.step = 4});
  std::filesystem::copy_file(directory_ / "step-00000004/parameters.rank-00001.safetensors",
                             path_ + "/parameters.rank-00001.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  const absl::Status status = ranks_.Load(path_, 5);
  EXPECT_EQ(ExitCode(status), 1);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("rank-00001"), HasSubstr("step 4")));
}

TEST_F(DamagedShardsTest, FilesOfAnotherRun) {
  const auto save = [&](const char* name, const char* run) {
    ranks_.Save(directory_ / name, {.step = 3, .run = run});
    return directory_ / name + "/step-00000003";
  };
  const std::string one = save("a", "a1"), other = save("b", "b2");
  ASSERT_TRUE(ranks_.Load(one, 5).ok());
  for (const char* file : {"parameters.rank-00001.safetensors", "trainer_state.json"}) {
    std::filesystem::copy_file(other + "/" + file, one + "/" + file, std::filesystem::copy_options::overwrite_existing);
    const absl::Status status = ranks_.Load(one, 5);
    EXPECT_EQ(ExitCode(status), 1);
    EXPECT_THAT(std::string(status.message()), HasSubstr("was saved by run"));
  }
  const absl::Status exported = ExportCheckpoint(*Checkpoint::Open(one), directory_ / "x", /*with_training=*/false);
  EXPECT_EQ(ExitCode(exported), 1) << exported;
}

TEST_F(DamagedShardsTest, MistakesOfTheIndexAreNamed) {
  const auto error = [&](const std::string& pointer, const nlohmann::json& value) {
    nlohmann::json index = index_;
    index[nlohmann::json::json_pointer(pointer)] = value;
    return LoadErrorWith(index);
  };
  EXPECT_THAT(error("/version", 2), AllOf(HasSubstr("shards.json'"), HasSubstr("version 2; supported is 1")));
  EXPECT_THAT(error("/version", "1"), HasSubstr("\"version\" should be an integer"));
  EXPECT_THAT(error("/mesh", 1), HasSubstr("\"mesh\" should be an array"));
  EXPECT_THAT(error("/mesh/0/size", 0), HasSubstr("1 to 16777216 ranks"));
  EXPECT_THAT(error("/mesh/0/size", uint64_t{1} << 63), HasSubstr("1 to 16777216 ranks"));
  EXPECT_THAT(error("/mesh/1/axis", "dp"), HasSubstr("two axes 'dp'"));
  EXPECT_THAT(error("/mesh/1/axis", nullptr), HasSubstr("each axis should have"));
  EXPECT_THAT(error("/role_axis", "pp"), HasSubstr("\"role_axis\" should be the name of an axis"));
  EXPECT_THAT(error("/parameters", 3), HasSubstr("\"parameters\" should be an object"));
  EXPECT_THAT(error("/parameters/embed", 3), HasSubstr("tensor 'embed' of \"parameters\": should be an object"));
  EXPECT_THAT(error("/parameters/embed/dtype", "F31"), HasSubstr("\"dtype\" should be one of"));
  EXPECT_THAT(error("/parameters/embed/shape", {-13, 6}), HasSubstr("\"shape\" should be an array of sizes"));
  EXPECT_THAT(error("/parameters/embed/shape", {uint64_t{1} << 62, 6}), HasSubstr("63 bits"));
  EXPECT_THAT(error("/parameters/embed/shape", {13, 7}), HasSubstr("but the plan has F32 [13, 6]"));
  EXPECT_THAT(error("/parameters/embed/view", {13, 7}), HasSubstr("other elements"));
  EXPECT_THAT(error("/parameters/embed/cuts", {{"tp"}}), HasSubstr("not sharded by dimension"));
  EXPECT_THAT(error("/parameters/embed/cuts", {{"tp"}, {"tp"}}), HasSubstr("axis 'tp' divides it twice"));
  EXPECT_THAT(error("/parameters/embed/cuts", {{"xp"}, {"tp"}}), HasSubstr("should hold arrays of axes"));
  EXPECT_THAT(error("/parameters/embed/flat", "dp"), HasSubstr("\"flat\" should be an array of axes"));
  EXPECT_THAT(error("/parameters/embed/role", 1), HasSubstr("no role 1"));
  EXPECT_THAT(error("/parameters/other", index_["parameters"]["embed"]), HasSubstr("'other' is not in the plan"));
  // A division that is sound, but not that of the files.
  EXPECT_THAT(error("/parameters/embed/cuts", {nlohmann::json::array(), {"tp"}}), HasSubstr("shards.json has F32"));
  nlohmann::json without = index_;
  without["parameters"].erase("embed");
  EXPECT_THAT(LoadErrorWith(without), HasSubstr("tensor 'embed' is missing"));
}

// Random damage is an error, or does no harm; under a sanitizer this is the stronger statement.
TEST_F(DamagedShardsTest, RandomDamageNeverCrashes) {
  std::mt19937 random(TestSeed());
  const std::string good = index_.dump();
  const std::string pieces[] = {"0", "9", "-", "[", "]", "{", "\"", ",", "18446744073709551615", "\"dp\"", "[],", "e9"};
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
      bad.replace(random() % bad.size(), random() % 4, pieces[random() % std::size(pieces)]);
    }
    WriteWholeFile(path_ + "/shards.json", bad);
    const absl::Status status = ranks_.Load(directory_.path(), static_cast<int64_t>(random() % 8));
    EXPECT_TRUE(status.ok() || ExitCode(status) == 1) << status << "\n" << bad;
    const auto checkpoint = Checkpoint::Open(directory_.path());
    ASSERT_TRUE(checkpoint.ok());
    if (i % 30 == 0) ExportCheckpoint(*checkpoint, directory_ / "out" + std::to_string(i), true).IgnoreError();
  }
}

}  // namespace
}  // namespace bowline
