#include "test/Unit/Runtime/process_fixture.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <numeric>
#include <thread>

namespace bowline::testing {

absl::Status RankProcess::Start(const GlooOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(group, GlooGroup::Create(options));
  BOWLINE_ASSIGN_OR_RETURN(device, CreateCpuDevice({.threads = 1}));
  BOWLINE_ASSIGN_OR_RETURN(stream, device->CreateStream());
  std::vector<int> members(static_cast<size_t>(options.ranks));
  std::iota(members.begin(), members.end(), 0);
  BOWLINE_ASSIGN_OR_RETURN(all, PointerCommunicator::Create(*group, *device, "all", members));
  return absl::OkStatus();
}

absl::Status RankProcess::Finish(const absl::Status& issued) {
  const absl::Status synchronized = stream->Synchronize();
  return issued.ok() ? synchronized : issued;
}

absl::Status RankProcess::SumOnes(size_t count) {
  std::vector<float> values(count, 1.0f);
  BOWLINE_RETURN_IF_ERROR(Finish(
      all->AllReduce(*stream, {{values.data(), values.data(), count}}, kernels::DType::kF32, hal::ReduceOp::kSum)));
  for (float value : values) {
    if (value != static_cast<float>(all->size())) return absl::InternalError(absl::StrCat("the sum is ", value));
  }
  return absl::OkStatus();
}

absl::Status RankProcess::SumForever(size_t count) {
  while (true) BOWLINE_RETURN_IF_ERROR(SumOnes(count));
}

void RankProcess::Tell() const { [[maybe_unused]] const ssize_t written = ::write(tell, "!", 1); }

Processes::~Processes() {
  for (const Child& child : children_) {
    if (child.pid > 0) {
      ::kill(child.pid, SIGKILL);
      ::waitpid(child.pid, nullptr, 0);
    }
    ::close(child.told);
    ::close(child.report);
  }
}

int Processes::Fork(const std::function<absl::Status(RankProcess&)>& body) {
  int told[2], report[2];
  if (::pipe(told) != 0 || ::pipe(report) != 0) std::abort();
  const int parent = ::getpid(), pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    absl::Status status;
    {
      RankProcess rank;
      rank.tell = told[1];
      status = body(rank);
    }
    const std::string text = WireWriter().Status(status).bytes();
    const bool written = ::write(report[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  ::close(told[1]);
  ::close(report[1]);
  children_.push_back({pid, told[0], report[0]});
  return static_cast<int>(children_.size()) - 1;
}

bool Processes::HasTold(int process) {
  pollfd descriptor = {children_[static_cast<size_t>(process)].told, POLLIN, 0};
  char byte = 0;
  return ::poll(&descriptor, 1, 300000) == 1 && ::read(descriptor.fd, &byte, 1) == 1;
}

void Processes::WaitForSleep(int process) {
  // A short wait on the way into the operation, for a lock, is over sooner, or on a slow machine seen as running.
  constexpr int kLooks = 20;
  const std::string path = absl::StrCat("/proc/", pid(process), "/stat");
  for (int asleep = 0; asleep < kLooks;) {
    std::string line;
    std::getline(std::ifstream(path), line);
    // The state follows the name, which is in parentheses and may have any letters.
    const size_t name_end = line.rfind(") ");
    ASSERT_NE(name_end, std::string::npos) << path << " says '" << line << "'";
    const char state = line[name_end + 2];
    ASSERT_NE(state, 'Z') << "process " << process << " ended";
    asleep = state == 'S' ? asleep + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

int Processes::FirstToEnd(int process, int other) {
  pollfd descriptors[2] = {{children_[static_cast<size_t>(process)].report, POLLIN, 0},
                           {children_[static_cast<size_t>(other)].report, POLLIN, 0}};
  if (::poll(descriptors, 2, 300000) < 1) ADD_FAILURE() << "neither process " << process << " nor " << other << " ends";
  return descriptors[0].revents != 0 ? process : other;
}

void Processes::Signal(int process, int signal) { ASSERT_EQ(::kill(pid(process), signal), 0); }

void Processes::Kill(int process) {
  Signal(process, SIGKILL);
  ::waitpid(pid(process), nullptr, 0);
  children_[static_cast<size_t>(process)].pid = -1;
}

Outcome Processes::Wait(int process, std::chrono::seconds limit) {
  Child& child = children_[static_cast<size_t>(process)];
  Outcome outcome;
  pollfd descriptor = {child.report, POLLIN, 0};
  if (::poll(&descriptor, 1, static_cast<int>(limit.count() * 1000)) != 1) {
    ADD_FAILURE() << "process " << process << " has not ended after " << limit.count() << " s";
    return outcome;
  }
  std::string text(65536, '\0');
  const ssize_t size = ::read(child.report, text.data(), text.size());
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  int ending = 0;
  ::waitpid(child.pid, &ending, 0);
  child.pid = -1;
  if (!WIFEXITED(ending) || WEXITSTATUS(ending) != 0) {
    ADD_FAILURE() << "process " << process << " crashed";
    return outcome;
  }
  WireReader reader(text);
  outcome.ended = true;
  if (text.substr(0, 4) != std::string(4, '\0')) outcome.status = reader.Status();
  return outcome;
}

GlooOptions OptionsAtFile(int ranks, std::chrono::nanoseconds timeout) {
  static int runs = 0;
  GlooOptions options;
  options.ranks = ranks;
  options.timeout = timeout;
  options.rendezvous_timeout = std::chrono::seconds(60);
  options.address = "127.0.0.1";
  options.rendezvous.file = absl::StrCat(::testing::TempDir(), "/bowline-processes-", ::getpid(), "-", runs++);
  return options;
}

GlooOptions OptionsAtPort(int ranks, std::chrono::nanoseconds timeout) {
  GlooOptions options = OptionsAtFile(ranks, timeout);
  options.rendezvous.file.clear();
  options.rendezvous.host = "127.0.0.1";
  // Free a moment ago.
  const auto listener = Listen("127.0.0.1", 0);
  options.rendezvous.port = *PortOf(listener->get());
  return options;
}

GlooOptions WithRank(GlooOptions options, int rank) {
  options.rank = rank;
  return options;
}

}  // namespace bowline::testing
