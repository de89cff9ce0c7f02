#include "runtime/plan/meaning/value_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "test/Support/test_seed.h"

namespace bowline {
namespace {

// The digest of no bytes in the reference implementation of XXH3-128, so that certificates mean the same everywhere.
TEST(Digest, IsXxh3) { EXPECT_EQ(DigestOfBytes({}), (Digest{0x6001c324468d497f, 0x99aa06d3014798d8})); }

TEST(Digest, TellsSequencesApart) {
  const auto digest = [](auto... items) {
    DigestBuilder builder(1);
    (builder.Add(items), ...);
    return builder.Finish();
  };
  using absl::string_view;
  EXPECT_EQ(digest(string_view("ab"), string_view("c")), digest(string_view("ab"), string_view("c")));
  EXPECT_NE(digest(string_view("ab"), string_view("c")), digest(string_view("a"), string_view("bc")));
  EXPECT_NE(digest(uint64_t{1}, uint64_t{2}), digest(uint64_t{2}, uint64_t{1}));
  EXPECT_NE(digest(uint64_t{0}), digest(uint64_t{0}, uint64_t{0}));
  EXPECT_NE(digest(), DigestBuilder(2).Finish());
}

// The same map with a value and an offset for each byte.
class ByteMap {
 public:
  explicit ByteMap(size_t bytes) : bytes_(bytes) {}

  void Write(ByteRange range, const std::vector<ValuePiece>& pieces) {
    uint64_t at = range.begin;
    for (const ValuePiece& piece : pieces) {
      for (uint64_t i = 0; i < piece.bytes; ++i) bytes_[at++] = {piece.value, piece.offset + i};
    }
  }
  void Erase(ByteRange range) {
    for (uint64_t at = range.begin; at < range.end; ++at) bytes_[at] = {};
  }
  std::vector<ValuePiece> Read(ByteRange range) const {
    std::vector<ValuePiece> pieces;
    for (uint64_t at = range.begin; at < range.end; ++at) {
      const auto& [value, offset] = bytes_[at];
      const bool undefined = value == kUndefined;
      if (!pieces.empty() && pieces.back().value == value &&
          (undefined || pieces.back().offset + pieces.back().bytes == offset)) {
        ++pieces.back().bytes;
      } else {
        pieces.push_back({value, undefined ? 0 : offset, 1});
      }
    }
    return pieces;
  }

 private:
  std::vector<std::pair<Digest, uint64_t>> bytes_;
};

TEST(ValueMap, IsWhatEachByteHolds) {
  const uint32_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr uint64_t kBytes = 97;
  WorkMeter meter(uint64_t{1} << 40, 1 << 20);
  ValueMap map(meter);
  ByteMap reference(kBytes);
  const auto any_range = [&] {
    const uint64_t begin = random() % kBytes;
    return ByteRange{begin, begin + random() % (kBytes - begin + 1)};
  };
  uint64_t next = 1;
  ValuePieces pieces;
  for (int round = 0; round < 20000 && !HasFailure(); ++round) {
    const ByteRange range = any_range();
    switch (random() % 4) {
      case 0:
        map.Erase(range);
        reference.Erase(range);
        break;
      case 1:
        map.Write(range, Digest{next, 7});
        reference.Write(range, {{Digest{next++, 7}, 0, range.bytes()}});
        break;
      default: {  // as a copy does
        const ByteRange to{random() % (kBytes - range.bytes() + 1), 0};
        const ByteRange destination{to.begin, to.begin + range.bytes()};
        map.Read(range, pieces);
        map.Write(destination, pieces);
        reference.Write(destination, reference.Read(range));
      }
    }
    const ByteRange look = any_range();
    map.Read(look, pieces);
    const std::vector<ValuePiece> expected = reference.Read(look);
    ASSERT_EQ(pieces.size(), expected.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_EQ(pieces[i].value, expected[i].value);
      EXPECT_EQ(pieces[i].bytes, expected[i].bytes);
      if (pieces[i].value != kUndefined) EXPECT_EQ(pieces[i].offset, expected[i].offset);
    }
    EXPECT_EQ(map.DigestOf(look), DigestOf(expected));
  }
}

TEST(ValueMap, StopsWhenThereIsNoMoreWork) {
  WorkMeter few_pieces(1000, 3);
  ValueMap map(few_pieces);
  for (uint64_t i = 0; i < 100; ++i) map.Write({2 * i, 2 * i + 1}, Digest{i + 1, 0});
  EXPECT_TRUE(few_pieces.exhausted());
  WorkMeter few_steps(10, 1000);
  ValueMap other(few_steps);
  for (uint64_t i = 0; i < 100; ++i) other.Write({0, 8}, Digest{i + 1, 0});
  EXPECT_TRUE(few_steps.exhausted());
}

}  // namespace
}  // namespace bowline
