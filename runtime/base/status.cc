#include "runtime/base/status.h"

#include <cerrno>
#include <cstring>

namespace bowline {
namespace {

absl::StatusCode CodeOf(int error_number) {
  switch (error_number) {
    // absl calls a file over the size limit "out of range"; to us it is a disk that takes no more.
    case EFBIG:
    case EDQUOT:
      return absl::StatusCode::kResourceExhausted;
    // Nor is it a mistake of the user that a reader is gone.
    case EPIPE:
      return absl::StatusCode::kUnavailable;
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::ErrnoToStatusCode(error_number);
  }
}

// The advice to the user, which follows strerror's text; empty where that text suffices.
const char* AdviceOf(int error_number) {
  switch (error_number) {
    case ENOSPC:
      return "; free space on that file system or choose another path";
    case EDQUOT:
      return "; free space under your disk quota or choose another path";
    case EFBIG:
      return "; raise the file size limit (ulimit -f) or choose another path";
    case ENOENT:
      return "; check the path";
    case EACCES:
    case EPERM:
      return "; check the permissions of the file and of its directories";
    case EROFS:
      return "; choose a path on a writable file system";
    case EMFILE:
      return "; raise the limit of open files (ulimit -n)";
    default:
      return "";
  }
}

}  // namespace

absl::Status NotFiniteError(absl::string_view message) { return absl::OutOfRangeError(message); }

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kPermissionDenied:
      return 1;
    case absl::StatusCode::kAborted:
      return 2;
    case absl::StatusCode::kOutOfRange:
      return kNotFiniteExitCode;
    default:
      return 3;
  }
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { annotated.SetPayload(type, payload); });
  return annotated;
}

absl::Status ErrnoToStatus(int error_number, absl::string_view what) {
  return absl::Status(CodeOf(error_number),
                      absl::StrCat(what, ": ", std::strerror(error_number), AdviceOf(error_number)));
}

}  // namespace bowline
