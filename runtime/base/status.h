#ifndef BOWLINE_RUNTIME_BASE_STATUS_H_
#define BOWLINE_RUNTIME_BASE_STATUS_H_

// Errors are values. absl::StatusCode depends on the person who has to act:
//   kInvalidArgument     the user's input (a file, a flag) is wrong                    exit code 1
//   kNotFound            a file or a name that the user gave does not exist            exit code 1
//   kFailedPrecondition  two inputs do not fit together (plan and weights, target)     exit code 1
//   kDataLoss            bytes are corrupt or truncated                                exit code 1
//   kPermissionDenied    a path that the user gave may not be read or written          exit code 1
//   kAborted             a check of a plan failed; the message is the counter-example  exit code 2
//   kOutOfRange          a loss or a state is infinite or NaN (NotFiniteError)          exit code 4
//   everything else      a fault at run time (disk full, out of memory)                exit code 3
// An assertion is for the programmer; a status for everyone else. A message states the fault, the place and the remedy.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace bowline {

// The exit code of training that became infinite or NaN: the same command would come to the same numbers again.
inline constexpr int kNotFiniteExitCode = 4;

// The error of a loss, a gradient or a state that is infinite or NaN.
absl::Status NotFiniteError(absl::string_view message);

// The exit code of a command that ends with `status`.
int ExitCode(const absl::Status& status);

// `status` with "context: " before its message; OK stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// kNotFound, kPermissionDenied, kResourceExhausted (disk full) ... for an errno value, with strerror in the message.
absl::Status ErrnoToStatus(int error_number, absl::string_view what);

}  // namespace bowline

#define BOWLINE_CONCAT_INNER_(a, b) a##b
#define BOWLINE_CONCAT_(a, b) BOWLINE_CONCAT_INNER_(a, b)

#define BOWLINE_RETURN_IF_ERROR(expression)                                   \
  do {                                                                        \
    if (absl::Status bowline_status_ = (expression); !bowline_status_.ok()) { \
      return bowline_status_;                                                 \
    }                                                                         \
  } while (false)

#define BOWLINE_ASSIGN_OR_RETURN(declaration, expression) \
  BOWLINE_ASSIGN_OR_RETURN_IMPL_(BOWLINE_CONCAT_(bowline_status_or_, __LINE__), declaration, expression)

#define BOWLINE_ASSIGN_OR_RETURN_IMPL_(temporary, declaration, expression) \
  auto temporary = (expression);                                           \
  if (!temporary.ok()) return temporary.status();                          \
  declaration = std::move(*temporary)

#endif  // BOWLINE_RUNTIME_BASE_STATUS_H_
