#include "runtime/tools/child_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

[[noreturn]] void Become(char* const* argv, const sigset_t& blocked, int parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(3);
  ::sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::execv(argv[0], argv);
  std::fprintf(stderr, "cannot start '%s': %s\n", argv[0], std::strerror(errno));
  ::_exit(3);
}

absl::Status StatusOf(const std::string& name, int status) {
  if (WIFSIGNALED(status)) {
    return absl::InternalError(absl::StrCat(name, " was ended by signal ", WTERMSIG(status), " (",
                                            ::strsignal(WTERMSIG(status)), ")",
                                            WTERMSIG(status) == SIGKILL ? ", as by a system that lacks memory" : ""));
  }
  const int code = WEXITSTATUS(status);
  if (code == 0) return absl::OkStatus();
  const std::string message = absl::StrCat(name, " failed with exit code ", code, " for the reason above");
  return code == 1 ? absl::InvalidArgumentError(message) : absl::InternalError(message);
}

}  // namespace

absl::Status RunChild(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> texts = {program};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  const std::string name = std::filesystem::path(program).filename().string();

  sigset_t awaited, before;
  ::sigemptyset(&awaited);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) ::sigaddset(&awaited, signal);
  ::pthread_sigmask(SIG_BLOCK, &awaited, &before);
  // If SIGCHLD stayed ignored, no signal would tell that the program ended.
  std::signal(SIGCHLD, SIG_DFL);
  const int parent = ::getpid(), pid = ::fork();
  if (pid == 0) Become(argv.data(), awaited, parent);
  const int fork_error = errno;
  int status = 0;
  bool stopped = false;
  while (pid > 0) {
    const int signal = ::sigwaitinfo(&awaited, nullptr);
    if (signal == SIGINT || signal == SIGTERM) {
      stopped = true;
      // Shells let background processes ignore SIGINT.
      ::kill(pid, SIGTERM);
    }
    // Anybody's child may have ended.
    if (::waitpid(pid, &status, WNOHANG) == pid) break;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0)
    return absl::ResourceExhaustedError(absl::StrCat("cannot start ", name, ": ", std::strerror(fork_error)));
  if (stopped) return absl::CancelledError(absl::StrCat(name, " was stopped"));
  return StatusOf(name, status);
}

}  // namespace bowline
