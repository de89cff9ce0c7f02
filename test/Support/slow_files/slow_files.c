// A library for LD_PRELOAD that makes a disk slow: each file whose path contains the text BOWLINE_SLOW_FILES takes
// BOWLINE_SLOW_SECONDS longer to open, or until the file BOWLINE_SLOW_UNTIL is there if that is earlier. The first
// BOWLINE_SLOW_AFTER of them are not slow.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef int Open(const char* path, int flags, ...);

EXPORT int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  const unsigned mode = has_mode ? va_arg(arguments, unsigned) : 0;
  va_end(arguments);
  const char* slow = getenv("BOWLINE_SLOW_FILES");
  const char* seconds = getenv("BOWLINE_SLOW_SECONDS");
  static int opened = 0;
  const char* after = getenv("BOWLINE_SLOW_AFTER");
  if (slow && seconds && strstr(path, slow) &&
      __atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED) >= (after ? atoi(after) : 0)) {
    const char* until = getenv("BOWLINE_SLOW_UNTIL");
    for (double left = atof(seconds); left > 0 && !(until && access(until, F_OK) == 0); left -= 0.01) usleep(10000);
  }
  Open* next = (Open*)dlsym(RTLD_NEXT, "open");
  return next(path, flags, mode);
}
