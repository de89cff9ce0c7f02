// The scan of all ids before a run, by one rank and several.

#include "runtime/train/token_scan.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/train/data/dataset_group.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Runtime/comm_fixture.h"
#include "test/Unit/Train/token_files.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::World;

constexpr int64_t kVocabulary = 300;

// Counts the tokens that are looked at.
class WatchedDataset : public TokenDataset {
 public:
  WatchedDataset(const std::string& path, std::atomic<int64_t>& looked, std::chrono::nanoseconds delay = {})
      : looked_(looked), delay_(delay) {
    auto opened = OpenTokenDataset(path, {.vocabulary = kVocabulary});
    EXPECT_TRUE(opened.ok()) << opened.status();
    file_ = *std::move(opened);
  }
  int64_t size() const override { return file_->size(); }
  int64_t max_possible_id() const override { return file_->max_possible_id(); }
  std::string description() const override { return file_->description(); }
  const std::string& path() const override { return file_->path(); }
  bool MayBeOutside() const override { return file_->MayBeOutside(); }
  absl::Status Read(int64_t begin, int64_t count, int32_t* out) const override {
    return file_->Read(begin, count, out);
  }
  bool HasIndex() const override { return file_->HasIndex(); }
  absl::Status CheckIndex() const override { return file_->CheckIndex(); }
  absl::Status CheckTokens(int64_t begin, int64_t count) const override {
    std::this_thread::sleep_for(delay_);
    looked_ += count;
    return file_->CheckTokens(begin, count);
  }

 private:
  std::unique_ptr<TokenDataset> file_;
  std::atomic<int64_t>& looked_;
  const std::chrono::nanoseconds delay_;
};

class TokenScanTest : public ::testing::Test {
 protected:
  // Returns the verdict of all ranks, and into `looked_` how many tokens they looked at together.
  std::vector<std::string> Scan(int ranks, const std::vector<std::string>& paths, int64_t vocabulary = kVocabulary) {
    looked_ = reports_ = 0;
    World world(ranks);
    const std::vector<absl::Status> results = world.Run([&](int rank) -> absl::Status {
      BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(&world.group(rank)));
      std::vector<DatasetGroup::Member> members;
      for (const std::string& path : paths) members.push_back({std::make_unique<WatchedDataset>(path, looked_), 0});
      const DatasetGroup group(std::move(members));
      return ScanTokens(group, vocabulary, directory_ / "cache", agreement, [&](int64_t done, int64_t all) {
        ++reports_;
        EXPECT_GE(done, 0);
        EXPECT_LE(done, all);
      });
    });
    std::vector<std::string> messages;
    for (const absl::Status& status : results) messages.emplace_back(status.message());
    return messages;
  }

  size_t Kept() const {
    std::error_code none;
    const std::filesystem::directory_iterator files(directory_ / "cache", none);
    return none ? 0 : static_cast<size_t>(std::distance(begin(files), end(files)));
  }

  TempDirectory directory_;
  std::atomic<int64_t> looked_{0}, reports_{0};
};

std::vector<uint16_t> Tokens(size_t count) {
  std::vector<uint16_t> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = static_cast<uint16_t>(i * 7 % 257);
  return tokens;
}

TEST_F(TokenScanTest, EveryPlaceOfEveryFileIsLookedAtByOneRank) {
  for (const int ranks : {1, 2, 3, 5}) {
    WriteWholeFile(directory_ / "a", LlmcFile(Tokens(1001)));
    WriteWholeFile(directory_ / "b", LlmcFile(Tokens(2)));
    EXPECT_THAT(Scan(ranks, {directory_ / "a", directory_ / "b"}), Each(""));
    EXPECT_EQ(looked_, 1003);
    for (const size_t place : {0, 499, 500, 1000}) {
      std::vector<uint16_t> tokens = Tokens(1001);
      tokens[place] = 300;
      WriteWholeFile(directory_ / "bad", LlmcFile(tokens));
      EXPECT_THAT(Scan(ranks, {directory_ / "b", directory_ / "bad"}),
                  AllOf(SizeIs(ranks), Each(HasSubstr(absl::StrCat("'", directory_ / "bad", "': token ", place,
                                                                   " has the id 300, outside of the vocabulary "
                                                                   "[0, 300)")))))
          << ranks << " ranks";
    }
    std::filesystem::remove_all(directory_ / "cache");
  }
}

// As one whose disk is slow.
TEST_F(TokenScanTest, ARankThatReadsLongerThanTheTimeoutIsWaitedFor) {
  const auto timeout = std::chrono::seconds(2);
  const std::string path = directory_ / "a";
  WriteWholeFile(path, LlmcFile(Tokens(100)));
  std::vector<std::string> notes;
  World world(2, timeout);
  const std::vector<absl::Status> results = world.Run([&](int rank) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(&world.group(rank), timeout));
    if (rank == 0) agreement.SetNotes([&](absl::string_view note) { notes.emplace_back(note); });
    const WatchedDataset data(path, looked_, rank == 1 ? 2 * timeout : std::chrono::seconds(0));
    return ScanTokens(data, kVocabulary, "", agreement, [](int64_t, int64_t) {});
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
  EXPECT_EQ(looked_, 100);
  EXPECT_THAT(notes, ElementsAre("waiting for rank 1, which is checking ids"));
}

TEST_F(TokenScanTest, AResultIsKeptForThisFileAndVocabulary) {
  const std::string a = directory_ / "a", b = directory_ / "b";
  WriteWholeFile(a, LlmcFile(Tokens(100)));
  EXPECT_THAT(Scan(2, {a}), Each(""));
  EXPECT_EQ(looked_, 100);
  EXPECT_EQ(Kept(), 1u);
  EXPECT_THAT(Scan(2, {a}), Each(""));
  EXPECT_EQ(looked_, 0);
  // For a larger vocabulary the result holds too, for a smaller one it says nothing.
  EXPECT_THAT(Scan(2, {a}, kVocabulary + 1), Each(""));
  EXPECT_EQ(looked_, 0);
  EXPECT_THAT(Scan(2, {a}, kVocabulary - 1), Each(""));
  EXPECT_EQ(looked_, 100);
  // A file beside one that is known.
  WriteWholeFile(b, LlmcFile(Tokens(30)));
  EXPECT_THAT(Scan(1, {a, b}), Each(""));
  EXPECT_EQ(looked_, 30);
  EXPECT_EQ(Kept(), 2u);
}

// The sizes are equal, and the changed byte is between the samples of the fingerprint.
TEST_F(TokenScanTest, AChangedFileIsLookedAtAgain) {
  const std::string path = directory_ / "a";
  std::vector<uint16_t> tokens = Tokens(1 << 20);
  WriteWholeFile(path, LlmcFile(tokens));
  EXPECT_THAT(Scan(2, {path}), Each(""));
  EXPECT_EQ(looked_, 1 << 20);
  EXPECT_EQ(reports_, 2);  // one of each rank
  EXPECT_THAT(Scan(2, {path}), Each(""));
  EXPECT_EQ(looked_, 0);
  struct stat before;
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  tokens[5000] = 400;
  // The clock of the file system has steps.
  struct stat after = before;
  while (after.st_ctim.tv_sec == before.st_ctim.tv_sec && after.st_ctim.tv_nsec == before.st_ctim.tv_nsec) {
    WriteWholeFile(path, LlmcFile(tokens));
    ASSERT_EQ(::stat(path.c_str(), &after), 0);
  }
  // A program that copies files sets their time back.
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_THAT(Scan(2, {path}), Each(HasSubstr("token 5000 has the id 400")));
  // A failed scan is not kept.
  EXPECT_THAT(Scan(2, {path}), Each(HasSubstr("token 5000 has the id 400")));
}

// Its disk is slow, and the rank is at work.
TEST_F(TokenScanTest, ARankThatReadsForLongIsWaitedFor) {
  const auto timeout = std::chrono::seconds(2);
  WriteWholeFile(directory_ / "a", LlmcFile(Tokens(1001)));
  World world(2, timeout);
  const std::vector<absl::Status> results = world.Run([&](int rank) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(&world.group(rank), timeout));
    std::vector<DatasetGroup::Member> members;
    members.push_back({std::make_unique<WatchedDataset>(directory_ / "a", looked_), 0});
    const DatasetGroup group(std::move(members));
    return ScanTokens(group, kVocabulary, "", agreement, [&](int64_t, int64_t) {
      if (rank == 1) std::this_thread::sleep_for(2 * timeout);
    });
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
}

TEST_F(TokenScanTest, DamagedResultsAndFoldersThatCannotBeWrittenCostAScan) {
  const std::string path = directory_ / "a";
  WriteWholeFile(path, LlmcFile(Tokens(100)));
  EXPECT_THAT(Scan(1, {path}), Each(""));
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "cache")) {
    const std::string good = ReadWholeFile(entry.path());
    for (const std::string& bad : {std::string(), std::string("x"), good.substr(0, good.size() - 2), good + "0\n"}) {
      WriteWholeFile(entry.path(), bad);
      EXPECT_THAT(Scan(1, {path}), Each(""));
      EXPECT_EQ(looked_, 100) << bad;
    }
  }
  std::filesystem::remove_all(directory_ / "cache");
  WriteWholeFile(directory_ / "cache", "a file, and no folder");
  EXPECT_THAT(Scan(1, {path}), Each(""));
  EXPECT_EQ(looked_, 100);
}

TEST_F(TokenScanTest, ATypeThatHoldsNoIdOutsideIsNotRead) {
  const std::string path = directory_ / "a.npy";
  WriteWholeFile(path, NpyFile(NpyDictionary("|u1", 5), BytesOf<uint8_t>({1, 2, 3, 4, 255})));
  EXPECT_THAT(Scan(2, {path}), Each(""));
  EXPECT_EQ(looked_, 0);
}

// Opening a Megatron index looks at its ends alone.
TEST_F(TokenScanTest, AnIndexIsCheckedWithTheIds) {
  const std::string index = directory_ / "a.idx";
  constexpr size_t kSizes = 34;
  for (const bool may_be_outside : {true, false}) {
    // Ids of 16 bits are all in a vocabulary of 65536.
    const int64_t vocabulary = may_be_outside ? kVocabulary : 65'536;
    WriteWholeFile(directory_ / "a.bin", BytesOf(Tokens(30)));
    const std::string good = MegatronIndexFile(8, 2, {10, 10, 10});
    std::string bad = good;
    bad.replace(kSizes, sizeof(int32_t), BytesOf(int32_t{-1}));
    WriteWholeFile(index, bad);
    for (int run = 0; run < 2; ++run) {
      EXPECT_THAT(Scan(2, {index}, vocabulary), Each(HasSubstr("sequence 0 has size -1"))) << "run " << run;
      EXPECT_EQ(looked_, 0);
    }
    WriteWholeFile(index, good);
    EXPECT_THAT(Scan(2, {index}, vocabulary), Each(""));
    EXPECT_EQ(Kept(), 1u);
    EXPECT_THAT(Scan(2, {index}, vocabulary), Each(""));
    EXPECT_EQ(looked_, 0);
    // The kept scan is of the index, too.
    WriteWholeFile(index, bad);
    EXPECT_THAT(Scan(2, {index}, vocabulary), Each(HasSubstr("sequence 0 has size -1")));
    std::filesystem::remove_all(directory_ / "cache");
  }
}

}  // namespace
}  // namespace bowline
