// How processes find each other: strangers and garbage on the port, two runs at one address, files of earlier runs.

#include <sys/socket.h>

#include <csignal>
#include <fstream>
#include <random>

#include "runtime/comm/agree.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Runtime/process_fixture.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::OptionsAtFile;
using testing::OptionsAtPort;
using testing::Processes;
using testing::RankProcess;
using testing::WithRank;

constexpr auto kPatient = std::chrono::minutes(5);

std::string TextOf(const testing::Outcome& outcome) { return std::string(outcome.status.message()); }

// Connects to the port of a run and sends.
Connection Stranger(const GlooOptions& options, absl::string_view bytes = {}) {
  auto socket = ConnectTo(options.rendezvous.host, options.rendezvous.port, Clock::now() + std::chrono::seconds(10));
  if (!socket.ok()) return {};
  if (!bytes.empty()) ::send(socket->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return Connection(std::move(*socket));
}

std::string Framed(MessageType type, absl::string_view payload) {
  std::string bytes = WireWriter().U32(static_cast<uint32_t>(payload.size() + 1)).bytes();
  bytes.push_back(static_cast<char>(type));
  return bytes + std::string(payload);
}

std::vector<std::string> Garbage(int ranks) {
  std::mt19937_64 random(TestSeed());
  std::vector<std::string> garbage = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", std::string(4, '\0'),
                                      std::string(100000, '\xff'), "\x05"};
  for (int i = 0; i < 40; ++i) {
    std::string bytes(random() % 3000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    garbage.push_back(bytes);
    // A length that is possible, and nonsense of that length.
    garbage.push_back(Framed(static_cast<MessageType>(random() % 20), bytes.substr(0, 500)));
  }
  for (int rank : {-1, ranks, 1 << 30, -(1 << 30)}) {
    Hello hello;
    hello.rank = rank;
    hello.ranks = ranks;
    garbage.push_back(Framed(MessageType::kHello, hello.Encode()));
    garbage.push_back(Framed(MessageType::kHello, hello.Encode().substr(0, 30)));
  }
  return garbage;
}

TEST(Rendezvous, BearsStrangersAndGarbage) {
  Processes processes;
  const GlooOptions options = OptionsAtPort(3, kPatient);
  const auto fork = [&](int rank) {
    return processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      self.Tell();
      BOWLINE_RETURN_IF_ERROR(self.SumOnes(100000));
      if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
      return self.Barrier();
    });
  };
  fork(0);
  fork(1);
  std::vector<Connection> open;
  while (open.empty() || !open[0].open()) {
    open.clear();
    open.push_back(Stranger(options));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  // Some stay open, some close.
  for (const std::string& bytes : Garbage(3)) open.push_back(Stranger(options, bytes));
  for (const std::string& bytes : Garbage(3)) Stranger(options, bytes);
  // More than the hub keeps.
  for (int i = 0; i < 300; ++i) open.push_back(Stranger(options));
  fork(2);
  processes.WaitForTell(2);
  for (const std::string& bytes : Garbage(3)) open.push_back(Stranger(options, bytes));
  for (int rank : {0, 1, 2}) EXPECT_TRUE(processes.Wait(rank).status.ok());
}

// Says nothing, or nonsense, where rank 0 should be.
TEST(Rendezvous, SomebodyElseAtThePort) {
  for (bool talks : {false, true}) {
    GlooOptions options = OptionsAtPort(2, kPatient);
    options.rendezvous_timeout = std::chrono::milliseconds(500);
    auto listener = Listen("127.0.0.1", options.rendezvous.port);
    ASSERT_TRUE(listener.ok()) << listener.status();
    Processes processes;
    const int process = processes.Fork([&](RankProcess& self) { return self.Start(WithRank(options, 1)); });
    FileDescriptor accepted;
    ASSERT_TRUE(WaitForSocket(listener->get(), false, Clock::now() + std::chrono::seconds(10)));
    accepted = FileDescriptor(::accept(listener->get(), nullptr, nullptr));
    const std::string nonsense(64, talks ? '\xff' : '\0');
    if (talks) ::send(accepted.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
    EXPECT_THAT(TextOf(processes.Wait(process)),
                AllOf(HasSubstr("rank 1 did not find rank 0 at 127.0.0.1:"), HasSubstr("listens there")));
    // Rank 0 itself cannot take the port.
    const int zero = processes.Fork([&](RankProcess& self) { return self.Start(WithRank(options, 0)); });
    EXPECT_THAT(TextOf(processes.Wait(zero)), HasSubstr("rank 0 cannot listen at 127.0.0.1:"));
  }
}

// The address of a socket's own end, after somebody listens for the ranks that MASTER_ADDR=`host` was said to.
std::string ListensAt(const std::string& host, bool beyond_loopback) {
  Rendezvous rendezvous = OptionsAtPort(2, kPatient).rendezvous;
  rendezvous.host = host;
  rendezvous.beyond_loopback = beyond_loopback;
  Hello hello;
  const auto listener = ListenForRanks(rendezvous, "", hello);
  EXPECT_TRUE(listener.ok()) << listener.status();
  return listener.ok() ? LocalAddressOf(listener->get()) : "";
}

TEST(Rendezvous, RankZeroListensBeyondLoopbackWhereOthersMayComeFromElsewhere) {
  for (const char* host : {"localhost", "127.0.0.1", "127.0.1.1"}) {
    EXPECT_THAT(ListensAt(host, true), AnyOf("::", "0.0.0.0")) << host;
    EXPECT_TRUE(IsLoopbackAddress(ListensAt(host, false))) << host;
  }
}

TEST(Rendezvous, OtherNumbersOfRanksAndTwoOfOneAreRefused) {
  Processes processes;
  GlooOptions options = OptionsAtPort(3, kPatient);
  options.rendezvous_timeout = kPatient;
  const auto fork = [&](int rank) {
    return processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      return self.SumOnes(10);
    });
  };
  const int zero = fork(0), one = fork(1), another = fork(1);
  // The one that came second.
  const int second = processes.FirstToEnd(one, another), first = one + another - second;
  EXPECT_THAT(TextOf(processes.Wait(second)), HasSubstr(": two processes are rank 1: host "));
  const int other = processes.Fork([&](RankProcess& self) {
    GlooOptions of_four = WithRank(options, 2);
    of_four.ranks = 4;
    return self.Start(of_four);
  });
  const testing::Outcome outcome = processes.Wait(other);
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(TextOf(outcome), HasSubstr("was started as one of 4 ranks, but rank 0 as one of 3"));
  // It has not come in the place of rank 2, and the others still wait for that.
  const int two = fork(2);
  for (int process : {zero, first, two}) {
    const testing::Outcome end = processes.Wait(process);
    EXPECT_TRUE(end.status.ok()) << end.status;
  }
}

TEST(Rendezvous, TwoRunsAtTheSamePorts) {
  Processes processes;
  std::vector<GlooOptions> runs = {OptionsAtPort(2, kPatient)};
  runs[0].rendezvous.ports = 8;
  runs.push_back(runs[0]);
  runs[0].rendezvous.job = "first";
  runs[1].rendezvous.job = "second";
  for (int rank : {1, 0}) {
    for (const GlooOptions& run : runs) {
      processes.Fork([&, rank](RankProcess& self) -> absl::Status {
        BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(run, rank)));
        BOWLINE_RETURN_IF_ERROR(AgreeOn(self.all->exchange(), {{"job", run.rendezvous.job}}));
        return self.SumOnes(1000);
      });
    }
  }
  for (int process = 0; process < 4; ++process) EXPECT_TRUE(processes.Wait(process).status.ok());
}

// While the others still come, and while all run.
TEST(Rendezvous, TwoOfOneRankAtAFileAreRefusedAtOnce) {
  Processes processes;
  const GlooOptions options = OptionsAtFile(3, kPatient);
  const std::string& file = options.rendezvous.file;
  const auto fork = [&](int rank) {
    return processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      self.Tell();
      while (std::ifstream(file + ".go").fail()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return self.SumOnes(10);
    });
  };
  const auto expect_refused = [&](int second, int rank, int first) {
    const int pid = processes.pid(second);
    const testing::Outcome outcome = processes.Wait(second);
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        TextOf(outcome),
        AllOf(HasSubstr(absl::StrCat("at file:", file, ": two processes are rank ", rank, ": ")),
              HasSubstr(absl::StrCat("pid ", processes.pid(first), ",")), HasSubstr(absl::StrCat("pid ", pid, ";")),
              HasSubstr("give each a rank of its own, and each run a file of its own")));
  };
  const auto refuse = [&](int rank, int first) { expect_refused(fork(rank), rank, first); };
  const int zero = fork(0), some = fork(1), other = fork(1);
  // The one that came second.
  const int second = processes.FirstToEnd(some, other), one = some + other - second;
  expect_refused(second, 1, one);
  refuse(0, zero);
  const int two = fork(2);
  for (int process : {zero, one, two}) processes.WaitForTell(process);
  refuse(2, two);
  refuse(0, zero);
  std::ofstream(file + ".go") << "go";
  for (int process : {zero, one, two}) {
    const testing::Outcome outcome = processes.Wait(process);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }
  EXPECT_TRUE(std::ifstream(file).fail()) << "the file is left";
  std::remove((file + ".go").c_str());
}

// Two processes of rank 0 find no file: one of them replaces the file of the other.
TEST(Rendezvous, TwoOfRank0AtOnce) {
  GlooOptions options = OptionsAtFile(2, kPatient);
  options.rendezvous_timeout = std::chrono::seconds(8);
  Processes processes;
  for ([[maybe_unused]] int i : {0, 1})
    processes.Fork([&](RankProcess& self) { return self.Start(WithRank(options, 0)); });
  const std::string texts[] = {TextOf(processes.Wait(0)), TextOf(processes.Wait(1))};
  EXPECT_THAT(texts,
              ::testing::UnorderedElementsAre(HasSubstr("rank 1 of 2 did not come"),
                                              HasSubstr(absl::StrCat("rendezvous at file:", options.rendezvous.file,
                                                                     ": two processes are rank 0: "))));
  EXPECT_TRUE(std::ifstream(options.rendezvous.file).fail()) << "the file is left";
}

void ExpectToMeet(const GlooOptions& options) {
  Processes processes;
  for (int rank : {1, 0}) {
    processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      return self.SumOnes(10);
    });
  }
  for (int process : {0, 1}) {
    const testing::Outcome outcome = processes.Wait(process);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }
}

std::string FileOf(int port) { return absl::StrCat("bowline rendezvous 2\n127.0.0.1\n", port, "\n0123456789abcdef\n"); }

TEST(Rendezvous, AFileOfAnEarlierRun) {
  for (const std::string& content : {std::string(), FileOf(1), FileOf(99999), std::string("bowline rendezvous 1\n"),
                                     std::string("bowline rendezvous 2\n")}) {
    const GlooOptions options = OptionsAtFile(2, kPatient);
    std::ofstream(options.rendezvous.file) << content;
    ExpectToMeet(options);
  }
}

TEST(Rendezvous, AFileOfSomebodyElseIsRefusedAndStays) {
  for (const std::string& content : {std::string("???"), std::string("bowline"), std::string(100000, '\0')}) {
    const GlooOptions options = OptionsAtFile(2, kPatient);
    std::ofstream(options.rendezvous.file) << content;
    for (int rank : {0, 1}) {
      Processes processes;
      const int process = processes.Fork([&](RankProcess& self) { return self.Start(WithRank(options, rank)); });
      const testing::Outcome outcome = processes.Wait(process);
      EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(TextOf(outcome), AllOf(HasSubstr(options.rendezvous.file), HasSubstr("is no file of a rendezvous")));
    }
    std::ifstream file(options.rendezvous.file);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), content);
    std::remove(options.rendezvous.file.c_str());
  }
}

// The port that a file names is now that of another run, which lives, or of somebody who says nothing.
TEST(Rendezvous, AFileWhosePortIsSomebodyElsesNow) {
  Processes processes;
  const GlooOptions another = OptionsAtPort(2, kPatient);
  const int zero = processes.Fork([&](RankProcess& self) { return self.Start(WithRank(another, 0)); });
  while (!Stranger(another).open()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  auto silent = Listen("127.0.0.1", 0);
  ASSERT_TRUE(silent.ok()) << silent.status();
  for (int port : {another.rendezvous.port, PortOf(silent->get()).value()}) {
    const GlooOptions options = OptionsAtFile(2, kPatient);
    std::ofstream(options.rendezvous.file) << FileOf(port);
    ExpectToMeet(options);
  }
  processes.Signal(zero, SIGKILL);
}

TEST(Rendezvous, AFileOfARunThatCrashed) {
  Processes processes;
  GlooOptions options = OptionsAtFile(2, kPatient);
  for (int rank : {0, 1}) {
    processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      self.Tell();
      return self.SumForever(10);
    });
  }
  processes.WaitForTell(0);
  processes.Signal(0, SIGKILL);
  EXPECT_THAT(TextOf(processes.Wait(1)), HasSubstr("rank 0"));
  EXPECT_FALSE(std::ifstream(options.rendezvous.file).fail());
  ExpectToMeet(options);
  // Without rank 0 nobody replaces it.
  std::ofstream(options.rendezvous.file) << FileOf(1);
  options.rendezvous_timeout = std::chrono::milliseconds(500);
  const int alone = processes.Fork([&](RankProcess& self) { return self.Start(WithRank(options, 1)); });
  EXPECT_THAT(TextOf(processes.Wait(alone)),
              AllOf(HasSubstr("rank 1 did not find rank 0 at file:"), HasSubstr("it names 127.0.0.1:1: "),
                    HasSubstr("if a run that crashed left the file, start rank 0, which replaces it")));
}

// A rank that is killed while the others still come may be started again.
TEST(Rendezvous, ARankMayComeAgain) {
  Processes processes;
  const GlooOptions options = OptionsAtFile(3, kPatient);
  const auto fork = [&](int rank) {
    return processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      return self.SumOnes(10);
    });
  };
  const int zero = fork(0), some = fork(1), other = fork(1);
  // One of two is refused when the other has come.
  const int refused = processes.FirstToEnd(some, other);
  EXPECT_THAT(TextOf(processes.Wait(refused)), HasSubstr(": two processes are rank 1: "));
  // Gone before the last rank comes: else the run may begin with it, and end at once.
  processes.Kill(some + other - refused);
  const int again = fork(1), two = fork(2);
  for (int process : {zero, again, two}) {
    const testing::Outcome outcome = processes.Wait(process);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }
}

}  // namespace
}  // namespace bowline
