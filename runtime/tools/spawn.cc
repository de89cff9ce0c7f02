#include "runtime/tools/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/comm/control/connection.h"
#include "runtime/tools/rank_output.h"
#include "runtime/tools/stop_signals.h"

namespace bowline {
namespace {

constexpr char kListenerVariable[] = "BOWLINE_SPAWNED_LISTENER";
// The time that ranks have to hear that their run is broken and to say so; longer than the hub's answers take.
constexpr auto kGrace = std::chrono::seconds(12);

using Clock = std::chrono::steady_clock;

struct Child {
  int pid = -1;
  FileDescriptor output;
  bool ended = false, stopped = false;
};

class Spawner {
 public:
  Spawner(absl::string_view tool, int ranks) : children_(static_cast<size_t>(ranks)), output_(tool, ranks) {}
  Spawner(const Spawner&) = delete;
  // Kills what runs.
  ~Spawner();

  absl::Status Start(const std::vector<std::string>& arguments);
  // The exit code.
  int Wait();

 private:
  absl::Status StartRank(int rank, const std::vector<std::string>& arguments);
  [[noreturn]] void BecomeRank(int rank, int output, char* const* argv) const;
  void HandleSignal(int signal);
  void PassOn(int signal);
  void Reap();
  void NoteEnd(int rank, int status);
  void CheckGrace();
  bool AllEnded() const;

  std::vector<Child> children_;
  RankOutput output_;
  FileDescriptor listener_, signals_;
  sigset_t handled_ = {}, before_ = {};
  int port_ = 0;
  int exit_code_ = 0;
  int passed_on_ = 0;           // the last signal that asked to stop
  int ended_by_ = 0;            // the signal that ended a rank, when it was one that was passed on
  bool stopped_early_ = false;  // a rank, as it was asked to
  bool stopping_ = false;       // this process is about to stop, and so are the ranks
  bool killed_ = false;         // all that did not end after another one failed
  Clock::time_point kill_at_ = Clock::time_point::max();
};

Spawner::~Spawner() {
  for (const Child& child : children_) {
    if (child.pid > 0 && !child.ended) ::kill(child.pid, SIGKILL);
  }
  for (const Child& child : children_) {
    if (child.pid > 0 && !child.ended) ::waitpid(child.pid, nullptr, 0);
  }
  if (signals_.valid()) ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

absl::Status Spawner::Start(const std::vector<std::string>& arguments) {
  BOWLINE_ASSIGN_OR_RETURN(listener_, Listen("127.0.0.1", 0));
  BOWLINE_ASSIGN_OR_RETURN(port_, PortOf(listener_.get()));
  ::sigemptyset(&handled_);
  for (const int signal : {SIGCHLD, SIGTSTP, SIGCONT}) ::sigaddset(&handled_, signal);
  for (const int signal : kStopSignals) {
    if (signal != SIGHUP || !IsIgnored(signal)) ::sigaddset(&handled_, signal);
  }
  ::sigprocmask(SIG_BLOCK, &handled_, &before_);
  // If SIGCHLD stayed ignored, no signal would tell that a rank ended.
  std::signal(SIGCHLD, SIG_DFL);
  signals_ = FileDescriptor(::signalfd(-1, &handled_, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_.valid()) return ErrnoToStatus(errno, "signalfd");
  for (int rank = 0; rank < static_cast<int>(children_.size()); ++rank) {
    BOWLINE_RETURN_IF_ERROR(StartRank(rank, arguments));
  }
  // The ranks have it; without one that has it, connections are refused.
  listener_.Close();
  return absl::OkStatus();
}

absl::Status Spawner::StartRank(int rank, const std::vector<std::string>& arguments) {
  std::vector<std::string> texts = {
      program_invocation_name,          "--rank",       absl::StrCat(rank), "--world-size",
      absl::StrCat(children_.size()),   "--local-rank", absl::StrCat(rank), "--rendezvous",
      absl::StrCat("127.0.0.1:", port_)};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return ErrnoToStatus(errno, absl::StrCat("a pipe for rank ", rank));
  FileDescriptor read(pipe[0]), write(pipe[1]);
  ::fcntl(read.get(), F_SETFL, O_NONBLOCK);
  const int parent = ::getpid(), pid = ::fork();
  if (pid < 0)
    return absl::ResourceExhaustedError(absl::StrCat("cannot start rank ", rank, ": ", std::strerror(errno)));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(3);
    BecomeRank(rank, write.get(), argv.data());
  }
  Child& child = children_[static_cast<size_t>(rank)];
  child.pid = pid;
  child.output = std::move(read);
  return absl::OkStatus();
}

void Spawner::BecomeRank(int rank, int output, char* const* argv) const {
  // Away from the terminal's signals, which come to this process once and not through both ways.
  ::setpgid(0, 0);
  std::signal(SIGTTOU, SIG_IGN);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  ::dup2(output, STDERR_FILENO);
  if (rank != 0) {
    ::dup2(output, STDOUT_FILENO);
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) ::dup2(null, STDIN_FILENO);
  }
  if (rank == 0) ::fcntl(listener_.get(), F_SETFD, 0);
  ::setenv(kListenerVariable, absl::StrCat(rank == 0 ? listener_.get() : -1).c_str(), 1);
  ::execv("/proc/self/exe", argv);
  std::fprintf(stderr, "cannot start this program again: %s\n", std::strerror(errno));
  ::_exit(3);
}

bool Spawner::AllEnded() const {
  return std::all_of(children_.begin(), children_.end(), [](const Child& child) { return child.ended; });
}

int Spawner::Wait() {
  while (!AllEnded()) {
    std::vector<pollfd> descriptors = {{signals_.get(), POLLIN, 0}};
    for (const Child& child : children_) descriptors.push_back({child.output.get(), POLLIN, 0});
    int wait = -1;
    if (!killed_ && kill_at_ != Clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(kill_at_ - Clock::now()).count();
      wait = static_cast<int>(std::max<int64_t>(left, 0));
    }
    ::poll(descriptors.data(), descriptors.size(), wait);
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      // Closed descriptors are -1, which poll leaves out.
      if (descriptors[rank + 1].revents != 0 && !output_.Read(static_cast<int>(rank), children_[rank].output.get())) {
        children_[rank].output.Close();
      }
    }
    signalfd_siginfo info = {};
    while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      HandleSignal(static_cast<int>(info.ssi_signo));
    }
    CheckGrace();
  }
  // Reads what the ranks wrote last.
  for (size_t rank = 0; rank < children_.size(); ++rank) {
    if (children_[rank].output.valid()) output_.Read(static_cast<int>(rank), children_[rank].output.get());
  }
  // When the user ended the ranks, their errors are not printed: some would complain about others that ended.
  output_.Finish(/*errors=*/ended_by_ == 0);
  if (ended_by_ != 0) {
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    std::signal(ended_by_, SIG_DFL);
    std::raise(ended_by_);
  }
  return exit_code_ == 0 && stopped_early_ ? kStoppedExitCode : exit_code_;
}

void Spawner::HandleSignal(int signal) {
  switch (signal) {
    case SIGCHLD:
      return Reap();
    case SIGINT:
    case SIGTERM:
    case SIGUSR1:
    case SIGHUP:
      passed_on_ = signal;
      return PassOn(signal);
    case SIGTSTP:
      stopping_ = true;
      PassOn(SIGSTOP);
      ::kill(::getpid(), SIGSTOP);
      return;
    case SIGCONT:
      stopping_ = false;
      return PassOn(SIGCONT);
    default:
      return;
  }
}

void Spawner::PassOn(int signal) {
  for (const Child& child : children_) {
    if (!child.ended) ::kill(child.pid, signal);
  }
}

void Spawner::Reap() {
  for (size_t rank = 0; rank < children_.size(); ++rank) {
    Child& child = children_[rank];
    int status = 0;
    while (!child.ended && ::waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == child.pid) {
      if (WIFSTOPPED(status)) {
        child.stopped = true;
        if (!stopping_) {
          output_.Say(absl::StrFormat("note: rank %d (pid %d) was stopped by signal %d (%s)", rank, child.pid,
                                      WSTOPSIG(status), ::strsignal(WSTOPSIG(status))));
        }
      } else if (WIFCONTINUED(status)) {
        child.stopped = false;
      } else {
        child.ended = true;
        NoteEnd(static_cast<int>(rank), status);
      }
    }
  }
}

void Spawner::NoteEnd(int rank, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kStoppedExitCode && passed_on_ != 0) {
    stopped_early_ = true;
    return;
  }
  const bool first = kill_at_ == Clock::time_point::max();
  if (WIFSIGNALED(status) && WTERMSIG(status) == passed_on_) {
    ended_by_ = passed_on_;
  } else if (WIFSIGNALED(status) && !killed_) {
    output_.Say(absl::StrFormat("error: rank %d (pid %d) was ended by signal %d (%s)", rank,
                                children_[static_cast<size_t>(rank)].pid, WTERMSIG(status),
                                ::strsignal(WTERMSIG(status))));
  }
  if (!first) return;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
  kill_at_ = Clock::now() + kGrace;
}

void Spawner::CheckGrace() {
  if (kill_at_ == Clock::time_point::max()) return;
  // One that is stopped says nothing any more.
  const bool all_stopped =
      std::all_of(children_.begin(), children_.end(), [](const Child& child) { return child.ended || child.stopped; });
  if (killed_ || (!all_stopped && Clock::now() < kill_at_)) return;
  killed_ = true;
  PassOn(SIGKILL);
}

}  // namespace

absl::StatusOr<int> SpawnRanks(absl::string_view tool, int ranks, const std::vector<std::string>& arguments) {
  Spawner spawner(tool, ranks);
  BOWLINE_RETURN_IF_ERROR(spawner.Start(arguments));
  return spawner.Wait();
}

std::optional<int> ListenerOfSpawner() {
  const char* text = std::getenv(kListenerVariable);
  int listener = -1;
  if (text == nullptr || !absl::SimpleAtoi(text, &listener)) return std::nullopt;
  // Processes that this one may start must not inherit the variable.
  ::unsetenv(kListenerVariable);
  if (listener >= 0) ::fcntl(listener, F_SETFD, FD_CLOEXEC);
  return listener;
}

}  // namespace bowline
