#include "runtime/base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace bowline {
namespace {

// Vectors of FIPS 180-4 and NIST's examples.
TEST(Sha256Test, KnownVectors) {
  EXPECT_EQ(ToHex(Sha256Of("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ToHex(Sha256Of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ToHex(Sha256Of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(ToHex(Sha256Of(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PiecesGiveTheDigestOfTheWhole) {
  const std::string text(1000, 'x');
  for (size_t cut : {0, 1, 63, 64, 65, 999, 1000}) {
    Sha256 hash;
    hash.Update(absl::string_view(text).substr(0, cut));
    hash.Update(absl::string_view(text).substr(cut));
    EXPECT_EQ(hash.Finish(), Sha256Of(text)) << cut;
  }
}

TEST(Sha256Test, FinishStartsAnew) {
  Sha256 hash;
  hash.Update("abc");
  hash.Finish();
  hash.Update("abc");
  EXPECT_EQ(hash.Finish(), Sha256Of("abc"));
}

TEST(Sha256Test, HexRoundTripsAndRefusesAnythingElse) {
  const Sha256Digest digest = Sha256Of("abc");
  Sha256Digest parsed{};
  EXPECT_TRUE(DigestFromHex(ToHex(digest), &parsed));
  EXPECT_EQ(parsed, digest);
  EXPECT_TRUE(DigestFromHex("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD", &parsed));
  EXPECT_EQ(parsed, digest);
  for (const std::string& bad : {std::string(), std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'g')}) {
    EXPECT_FALSE(DigestFromHex(bad, &parsed));
    EXPECT_EQ(parsed, digest);
  }
}

}  // namespace
}  // namespace bowline
