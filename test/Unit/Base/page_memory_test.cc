#include "runtime/base/page_memory.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bowline {
namespace {

constexpr uintptr_t kHugePage = uintptr_t{2} << 20;

TEST(PageMemoryTest, IsAlignedAndZeroed) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{4097}, size_t{kHugePage}, size_t{5 * kHugePage + 13}}) {
    auto memory = PageMemory::Create(bytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(memory->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % kHugePage, 0u);
    const absl::Span<uint8_t> span = memory->span();
    EXPECT_EQ(span.size(), bytes);
    EXPECT_TRUE(std::all_of(span.begin(), span.end(), [](uint8_t byte) { return byte == 0; }));
    std::fill(span.begin(), span.end(), uint8_t{7});
  }
}

TEST(PageMemoryTest, OfNoBytesIsMemory) {
  const auto memory = PageMemory::Create(0);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_NE(memory->data(), nullptr);
  EXPECT_TRUE(memory->span().empty());
}

TEST(PageMemoryTest, MovesWithItsBytes) {
  PageMemory first = *PageMemory::Create(100);
  first.data()[99] = 5;
  const uint8_t* data = first.data();
  PageMemory second = std::move(first);
  EXPECT_EQ(second.data(), data);
  PageMemory third;
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.span()[99], 5);
}

TEST(PageMemoryTest, MoreThanThereIsIsAnError) {
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 4, size_t{1} << 60}) {
    const auto memory = PageMemory::Create(bytes);
    EXPECT_TRUE(absl::IsResourceExhausted(memory.status())) << memory.status();
    EXPECT_THAT(std::string(memory.status().message()), ::testing::HasSubstr(absl::StrCat(bytes, " bytes")));
  }
}

// Sizes of whole pages: otherwise the rest of the last one may be touched.
TEST(PageMemoryDeathTest, StopsWhoRunsPastTheEnd) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  for (const size_t pages : {size_t{1}, size_t{3}, kHugePage / page}) {
    const auto memory = PageMemory::Create(pages * page);
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_DEATH(const_cast<volatile uint8_t*>(memory->data())[memory->bytes()] = 1, "");
  }
}

}  // namespace
}  // namespace bowline
