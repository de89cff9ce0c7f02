#include "runtime/base/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace bowline {
namespace {

using ::testing::HasSubstr;

TEST(StatusTest, ExitCodesSayWhoHasToAct) {
  EXPECT_EQ(ExitCode(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCode(absl::InvalidArgumentError("")), 1);
  EXPECT_EQ(ExitCode(absl::NotFoundError("")), 1);
  EXPECT_EQ(ExitCode(absl::FailedPreconditionError("")), 1);
  EXPECT_EQ(ExitCode(absl::DataLossError("")), 1);
  EXPECT_EQ(ExitCode(absl::PermissionDeniedError("")), 1);
  EXPECT_EQ(ExitCode(absl::AbortedError("")), 2);
  EXPECT_EQ(ExitCode(absl::ResourceExhaustedError("")), 3);
  EXPECT_EQ(ExitCode(absl::InternalError("")), 3);
  EXPECT_EQ(ExitCode(NotFiniteError("")), 4);
}

TEST(StatusTest, AnnotateKeepsCodeAndOk) {
  EXPECT_TRUE(Annotate(absl::OkStatus(), "here").ok());
  const absl::Status status = Annotate(absl::NotFoundError("no x"), "here");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "here: no x");
}

TEST(StatusTest, ErrnoBecomesACodeAndAdvice) {
  EXPECT_TRUE(absl::IsNotFound(ErrnoToStatus(ENOENT, "x")));
  EXPECT_TRUE(absl::IsPermissionDenied(ErrnoToStatus(EACCES, "x")));
  for (int full : {ENOSPC, EDQUOT, EFBIG}) {
    const absl::Status status = ErrnoToStatus(full, "cannot write 'f'");
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write 'f': "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("choose another path"));
  }
  EXPECT_EQ(ExitCode(ErrnoToStatus(EISDIR, "x")), 1);
  EXPECT_EQ(ExitCode(ErrnoToStatus(ENOTDIR, "x")), 1);
  EXPECT_EQ(ExitCode(ErrnoToStatus(EROFS, "x")), 1);
  EXPECT_EQ(ExitCode(ErrnoToStatus(ENAMETOOLONG, "x")), 1);
  EXPECT_EQ(ExitCode(ErrnoToStatus(EIO, "x")), 3);
}

}  // namespace
}  // namespace bowline
