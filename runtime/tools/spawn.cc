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
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/small_file.h"
#include "runtime/comm/control/connection.h"
#include "runtime/tools/rank_output.h"
#include "runtime/tools/stop_signals.h"

namespace bowline {
namespace {

constexpr char kListenerVariable[] = "BOWLINE_SPAWNED_LISTENER", kReportsVariable[] = "BOWLINE_SPAWNED_REPORTS";
// The time that ranks have to hear that their run is broken and to say so; longer than the hub's answers take.
constexpr auto kGrace = std::chrono::seconds(12);
// The same before all ranks have met, after one exited: perhaps because another one failed, which is about to say why.
constexpr auto kStartGrace = std::chrono::milliseconds(500);
// The time that a stopped rank has to go on before all have met: whoever stops and continues a whole job does not do it
// to all of its processes at one moment.
constexpr auto kStopPatience = std::chrono::seconds(1);
// The time that stopped ranks have to go on after all others have ended, which else would find that they do not answer.
constexpr auto kLonePatience = std::chrono::seconds(3);

using Clock = std::chrono::steady_clock;

struct Child {
  int pid = -1;
  FileDescriptor output;
  bool ended = false, stopped = false;
  int stop_signal = 0;
  Clock::time_point continue_by;  // while it is stopped
};

std::string SignalName(int signal) { return absl::StrFormat("signal %d (%s)", signal, ::strsignal(signal)); }

// Whether the process is dying: the system has closed its files, perhaps, and does not report its end yet.
bool IsDying(int pid) {
  constexpr uint64_t kExiting = 4;  // PF_EXITING of the kernel's flags, field 9 (proc(5))
  constexpr size_t kFlags = 7;      // after the name, which may have spaces
  const std::string stat = FirstLineOf(absl::StrCat("/proc/", pid, "/stat"));
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(stat.rfind(')') + 1), ' ');
  uint64_t flags = 0;
  return fields.size() > kFlags && absl::SimpleAtoi(fields[kFlags], &flags) && (flags & kExiting) != 0;
}

// `status` is that of waitpid.
std::string DescribeEnd(int status) {
  return WIFEXITED(status) ? absl::StrCat("ended with exit code ", WEXITSTATUS(status))
                           : absl::StrCat("was ended by ", SignalName(WTERMSIG(status)));
}

// `to_rank` is set if the child inherits the descriptor.
void PassDescriptor(const char* variable, int descriptor, bool to_rank) {
  if (to_rank) ::fcntl(descriptor, F_SETFD, 0);
  ::setenv(variable, absl::StrCat(to_rank ? descriptor : -1).c_str(), 1);
}

std::optional<int> TakeDescriptor(const char* variable) {
  const char* text = std::getenv(variable);
  int descriptor = -1;
  if (text == nullptr || !absl::SimpleAtoi(text, &descriptor)) return std::nullopt;
  // Processes that this one may start must not inherit the variable.
  ::unsetenv(variable);
  if (descriptor >= 0) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return descriptor;
}

class Spawner {
 public:
  explicit Spawner(const SpawnOptions& options)
      : options_(options),
        children_(static_cast<size_t>(std::max(options.ranks, 1))),
        output_(options.tool, static_cast<int>(children_.size())),
        met_(children_.size() == 1) {}
  Spawner(const Spawner&) = delete;
  // Kills running processes.
  ~Spawner();

  absl::Status Start();
  SpawnEnd Wait();

 private:
  absl::Status StartRank(int rank);
  std::vector<std::string> CommandLine(int rank) const;
  [[noreturn]] void BecomeRank(int rank, int output, char* const* argv) const;
  void HandleSignal(int signal);
  void PassOn(int signal);
  void ReadOutput(int rank);
  void ReadReports();
  void Reap();
  void NoteStop(int rank, int signal);
  void NoteEnd(int rank, int status);
  // `exited`: a rank ended by itself, perhaps because of another one.
  void Fail(int exit_code, const std::string& how, bool exited = false);
  void CheckStopped();
  void CheckLone();
  void CheckGrace();
  // In milliseconds, as poll takes it.
  int TimeToCheck() const;
  bool AllEnded() const;
  // Whether all ranks ended but for some that are stopped.
  bool OnlyStoppedRun() const;
  // "rank 3 (pid 77)"
  std::string Name(int rank) const;

  const SpawnOptions& options_;
  std::vector<Child> children_;
  RankOutput output_;
  FileDescriptor listener_, signals_;
  FileDescriptor reports_, reports_of_rank_;  // the two ends of a pipe
  sigset_t handled_ = {}, before_ = {};
  int port_ = 0;
  SpawnEnd end_;
  int passed_on_ = 0;           // the last signal that asked to stop
  bool stopped_early_ = false;  // a rank, as it was asked to
  bool stopping_ = false;       // this process is about to stop, and so are the ranks
  bool killed_ = false;         // all that did not end after another one failed
  bool met_;                    // all ranks, as rank 0 says
  Clock::time_point kill_at_ = Clock::time_point::max();
  Clock::time_point lone_until_ = Clock::time_point::max();  // while OnlyStoppedRun
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

absl::Status Spawner::Start() {
  if (options_.ranks > 0) {
    BOWLINE_ASSIGN_OR_RETURN(listener_, Listen("127.0.0.1", 0));
    BOWLINE_ASSIGN_OR_RETURN(port_, PortOf(listener_.get()));
  }
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
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return ErrnoToStatus(errno, "a pipe for rank 0");
  reports_ = FileDescriptor(pipe[0]);
  reports_of_rank_ = FileDescriptor(pipe[1]);
  ::fcntl(reports_.get(), F_SETFL, O_NONBLOCK);
  for (int rank = 0; rank < static_cast<int>(children_.size()); ++rank) {
    BOWLINE_RETURN_IF_ERROR(StartRank(rank));
  }
  // Ranks hold the listener and the pipe now. If all ranks close the listener, connections are refused.
  listener_.Close();
  reports_of_rank_.Close();
  return absl::OkStatus();
}

std::vector<std::string> Spawner::CommandLine(int rank) const {
  std::vector<std::string> texts = {program_invocation_name};
  if (options_.ranks > 0) {
    const std::string number = absl::StrCat(rank), size = absl::StrCat(children_.size());
    const std::string where = absl::StrCat("127.0.0.1:", port_);
    for (const std::string& text : {std::string("--rank"), number, std::string("--world-size"), size,
                                    std::string("--local-rank"), number, std::string("--rendezvous"), where}) {
      texts.push_back(text);
    }
  }
  texts.insert(texts.end(), options_.arguments.begin(), options_.arguments.end());
  return texts;
}

absl::Status Spawner::StartRank(int rank) {
  std::vector<std::string> texts = CommandLine(rank);
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
  if (options_.ranks > 0) child.output = std::move(read);
  return absl::OkStatus();
}

void Spawner::BecomeRank(int rank, int output, char* const* argv) const {
  // Away from the terminal's signals, which come to this process once and not through both ways.
  ::setpgid(0, 0);
  std::signal(SIGTTOU, SIG_IGN);
  // EndOnStopSignals takes the stop signals; until then they wait.
  sigset_t mask = before_;
  for (const int signal : kStopSignals) ::sigaddset(&mask, signal);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (options_.ranks > 0) ::dup2(output, STDERR_FILENO);
  if (rank != 0) {
    ::dup2(output, STDOUT_FILENO);
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0) ::dup2(null, STDIN_FILENO);
  }
  PassDescriptor(kListenerVariable, listener_.get(), rank == 0);
  PassDescriptor(kReportsVariable, reports_of_rank_.get(), rank == 0);
  ::execv("/proc/self/exe", argv);
  std::fprintf(stderr, "cannot start this program again: %s\n", std::strerror(errno));
  ::_exit(3);
}

bool Spawner::AllEnded() const {
  return std::all_of(children_.begin(), children_.end(), [](const Child& child) { return child.ended; });
}

bool Spawner::OnlyStoppedRun() const {
  const auto count = [&](auto is) { return std::count_if(children_.begin(), children_.end(), is); };
  const auto ended = count([](const Child& child) { return child.ended; });
  const auto stopped = count([](const Child& child) { return !child.ended && child.stopped; });
  return ended > 0 && stopped > 0 && ended + stopped == static_cast<std::ptrdiff_t>(children_.size());
}

SpawnEnd Spawner::Wait() {
  while (!AllEnded()) {
    std::vector<pollfd> descriptors = {{signals_.get(), POLLIN, 0}, {reports_.get(), POLLIN, 0}};
    for (const Child& child : children_) descriptors.push_back({child.output.get(), POLLIN, 0});
    ::poll(descriptors.data(), descriptors.size(), TimeToCheck());
    // Closed descriptors are -1, which poll leaves out.
    if (descriptors[1].revents != 0) ReadReports();
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      if (descriptors[rank + 2].revents != 0) ReadOutput(static_cast<int>(rank));
    }
    signalfd_siginfo info = {};
    while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      HandleSignal(static_cast<int>(info.ssi_signo));
    }
    CheckStopped();
    CheckLone();
    CheckGrace();
  }
  // Reads the last output of the ranks.
  for (size_t rank = 0; rank < children_.size(); ++rank) ReadOutput(static_cast<int>(rank));
  // When the user ended the ranks, their errors are not printed: some would complain about others that ended.
  output_.Finish(/*errors=*/end_.ended_by == 0);
  if (end_.ended_by != 0) std::signal(end_.ended_by, SIG_DFL);
  if (end_.exit_code == 0 && stopped_early_) end_.exit_code = kStoppedExitCode;
  end_.asked_to_stop = passed_on_ != 0;
  return end_;
}

int Spawner::TimeToCheck() const {
  Clock::time_point until = killed_ ? Clock::time_point::max() : std::min(kill_at_, lone_until_);
  for (const Child& child : children_) {
    if (child.stopped && !child.ended && !met_ && !stopping_ && !killed_) until = std::min(until, child.continue_by);
  }
  if (until == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

std::string Spawner::Name(int rank) const {
  const std::string name = options_.ranks > 0 ? absl::StrCat("rank ", rank) : "the run";
  return absl::StrFormat("%s (pid %d)", name, children_[static_cast<size_t>(rank)].pid);
}

void Spawner::ReadOutput(int rank) {
  FileDescriptor& output = children_[static_cast<size_t>(rank)].output;
  if (output.valid() && !output_.Read(rank, output.get())) output.Close();
}

void Spawner::ReadReports() {
  char report = 0;
  ssize_t size = 0;
  while (reports_.valid() && (size = ::read(reports_.get(), &report, 1)) == 1) {
    if (static_cast<SpawnReport>(report) == SpawnReport::kAllMet) met_ = true;
    if (static_cast<SpawnReport>(report) == SpawnReport::kTraining) end_.trained = true;
  }
  if (size == 0) reports_.Close();
}

void Spawner::HandleSignal(int signal) {
  if (std::find(kStopSignals.begin(), kStopSignals.end(), signal) != kStopSignals.end()) {
    passed_on_ = signal;
    return PassOn(signal);
  }
  switch (signal) {
    case SIGCHLD:
      return Reap();
    case SIGTSTP:
      stopping_ = true;
      PassOn(SIGSTOP);
      ::kill(::getpid(), SIGSTOP);
      return;
    case SIGCONT:
      stopping_ = false;
      for (Child& child : children_) child.continue_by = Clock::now() + kStopPatience;
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
  std::vector<std::pair<int, int>> ends;  // rank and status
  for (size_t rank = 0; rank < children_.size(); ++rank) {
    Child& child = children_[rank];
    int status = 0;
    while (!child.ended && ::waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == child.pid) {
      if (WIFSTOPPED(status)) {
        NoteStop(static_cast<int>(rank), WSTOPSIG(status));
      } else if (WIFCONTINUED(status)) {
        child.stopped = false;
      } else {
        child.ended = true;
        ends.emplace_back(static_cast<int>(rank), status);
      }
    }
  }
  // A rank that exits may have seen that another one died, whose end comes a moment later.
  if (!ends.empty()) {
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      Child& child = children_[rank];
      int status = 0;
      if (child.ended || !IsDying(child.pid) || ::waitpid(child.pid, &status, 0) != child.pid) continue;
      child.ended = true;
      ends.emplace_back(static_cast<int>(rank), status);
    }
  }
  // Of several at once, ranks that were killed are the cause why others exit.
  std::stable_partition(ends.begin(), ends.end(), [](const auto& end) { return WIFSIGNALED(end.second); });
  for (const auto& [rank, status] : ends) NoteEnd(rank, status);
}

void Spawner::NoteStop(int rank, int signal) {
  Child& child = children_[static_cast<size_t>(rank)];
  child.stopped = true;
  child.stop_signal = signal;
  child.continue_by = Clock::now() + kStopPatience;
  if (!stopping_) output_.Say(absl::StrCat("note: ", Name(rank), " was stopped by ", SignalName(signal)));
}

void Spawner::NoteEnd(int rank, int status) {
  // All that it said comes before its end.
  ReadOutput(rank);
  ReadReports();
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
  if (code == 0 && met_) return;
  if (code == kStoppedExitCode && passed_on_ != 0) {
    stopped_early_ = true;
    return;
  }
  const std::string how = absl::StrCat(Name(rank), " ", DescribeEnd(status), met_ ? "" : " before all ranks had met");
  if (WIFSIGNALED(status) && WTERMSIG(status) == passed_on_) {
    end_.ended_by = passed_on_;
  } else if (!killed_ && (WIFSIGNALED(status) || !met_)) {
    output_.Say(absl::StrCat(output_.HasError(rank) ? "note: " : "error: ", how));
  }
  Fail(code == 0 ? 3 : code, how, WIFEXITED(status));
}

// The first failure counts.
void Spawner::Fail(int exit_code, const std::string& how, bool exited) {
  if (kill_at_ != Clock::time_point::max()) return;
  end_.exit_code = exit_code;
  end_.failure = how;
  kill_at_ = Clock::now() + (met_ ? kGrace : exited ? kStartGrace : Clock::duration::zero());
}

void Spawner::CheckStopped() {
  if (met_ || stopping_ || killed_) return;
  for (size_t rank = 0; rank < children_.size(); ++rank) {
    const Child& child = children_[rank];
    if (child.ended || !child.stopped || Clock::now() < child.continue_by) continue;
    const std::string how = absl::StrCat(Name(static_cast<int>(rank)), " was stopped by ",
                                         SignalName(child.stop_signal), " before all ranks had met");
    output_.Say(absl::StrCat("error: ", how, ", and did not go on"));
    return Fail(3, how);
  }
}

void Spawner::CheckLone() {
  if (!OnlyStoppedRun() || stopping_ || killed_) {
    lone_until_ = Clock::time_point::max();
    return;
  }
  if (lone_until_ == Clock::time_point::max()) lone_until_ = Clock::now() + kLonePatience;
  if (Clock::now() < lone_until_) return;
  for (size_t rank = 0; rank < children_.size(); ++rank) {
    const Child& child = children_[rank];
    if (child.ended) continue;
    const std::string how =
        absl::StrCat(Name(static_cast<int>(rank)), " was stopped by ", SignalName(child.stop_signal));
    output_.Say(absl::StrCat("error: ", how, ", and did not go on when all others had ended"));
    return Fail(3, how);
  }
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

absl::StatusOr<SpawnEnd> SpawnOnce(const SpawnOptions& options) {
  Spawner spawner(options);
  BOWLINE_RETURN_IF_ERROR(spawner.Start());
  return spawner.Wait();
}

int EndAs(const SpawnEnd& end) {
  if (end.ended_by != 0) {
    std::signal(end.ended_by, SIG_DFL);
    std::raise(end.ended_by);
  }
  return end.exit_code;
}

absl::StatusOr<int> SpawnRanks(absl::string_view tool, int ranks, const std::vector<std::string>& arguments) {
  BOWLINE_ASSIGN_OR_RETURN(const SpawnEnd end, SpawnOnce({std::string(tool), ranks, arguments}));
  return EndAs(end);
}

std::optional<SpawnedRank> FromSpawner() {
  const std::optional<int> listener = TakeDescriptor(kListenerVariable), reports = TakeDescriptor(kReportsVariable);
  if (!listener.has_value() || !reports.has_value()) return std::nullopt;
  return SpawnedRank{*listener, *reports};
}

void Report(const SpawnedRank& self, SpawnReport report) {
  const char byte = static_cast<char>(report);
  // The process that reads it ends this one when it ends.
  if (self.reports >= 0) [[maybe_unused]]
    const ssize_t written = ::write(self.reports, &byte, 1);
}

}  // namespace bowline
