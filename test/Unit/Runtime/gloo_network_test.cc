// Ranks on two hosts, which are network namespaces, and the link between them taken down.

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "test/Unit/Runtime/process_fixture.h"

namespace bowline {
namespace {

using ::testing::ContainsRegex;
using testing::OptionsAtPort;
using testing::Outcome;
using testing::Processes;
using testing::RankProcess;
using testing::WithRank;

// Two hosts with a link, 10.77.0.1 and 10.77.0.2.
class TwoHosts {
 public:
  // Creates both hosts. Returns the obstacle on this machine, or "" if there is none.
  std::string Create() {
    for (int& host : hosts_) {
      host = processes_.Fork([](RankProcess& self) -> absl::Status {
        if (::unshare(CLONE_NEWNET) != 0) return ErrnoToStatus(errno, "unshare");
        self.Tell();
        ::pause();
        return absl::OkStatus();
      });
    }
    if (!processes_.HasTold(hosts_[0]) || !processes_.HasTold(hosts_[1]))
      return "this user may make no network namespace";
    if (!Run(0, absl::StrCat("ip link add link0 type veth peer name link0 netns ", processes_.pid(hosts_[1])))) {
      return "no program 'ip', or no veth devices";
    }
    for (int host : {0, 1}) {
      if (!Run(host, "ip link set lo up") ||
          !Run(host, absl::StrCat("ip addr add 10.77.0.", host + 1, "/24 dev link0")) ||
          !Run(host, "ip link set link0 up")) {
        return "the link cannot be set up";
      }
    }
    return "";
  }

  // For a process of a rank.
  absl::Status Enter(int host) const {
    const FileDescriptor space(
        ::open(absl::StrCat("/proc/", processes_.pid(hosts_[host]), "/ns/net").c_str(), O_RDONLY));
    if (::setns(space.get(), CLONE_NEWNET) != 0) return ErrnoToStatus(errno, "setns");
    return absl::OkStatus();
  }

  bool Cut() { return Run(0, "ip link set link0 down"); }

 private:
  bool Run(int host, const std::string& command) {
    return std::system(absl::StrCat("nsenter -t ", processes_.pid(hosts_[host]), " -n ", command, " >/dev/null 2>&1")
                           .c_str()) == 0;
  }

  Processes processes_;
  int hosts_[2] = {-1, -1};
};

TEST(GlooNetwork, RanksThatAreCutOffAreNamedOnBothSides) {
  TwoHosts hosts;
  if (const std::string why = hosts.Create(); !why.empty()) GTEST_SKIP() << why;
  GlooOptions options = OptionsAtPort(4, std::chrono::seconds(2));
  options.rendezvous.host = "10.77.0.1";
  options.address.clear();
  Processes processes;
  for (int rank = 0; rank < 4; ++rank) {
    processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(hosts.Enter(rank / 2));
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      BOWLINE_RETURN_IF_ERROR(self.SumOnes(100000));
      self.Tell();
      return self.SumForever(100000);
    });
  }
  for (int rank = 0; rank < 4; ++rank) processes.WaitForTell(rank);
  ASSERT_TRUE(hosts.Cut());
  for (int rank = 0; rank < 4; ++rank) {
    const Outcome outcome = processes.Wait(rank);
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kUnavailable) << outcome.status;
    EXPECT_THAT(
        std::string(outcome.status.message()),
        ContainsRegex(rank < 2 ? "all_reduce.*; cause: rank 2 \\(.*\\), rank 3 \\(.*\\) did not answer for .* "
                                 "network to it is cut"
                               : "all_reduce.*; cause: rank 0 \\(.*\\) did not answer for .* network to it is cut"));
  }
}

}  // namespace
}  // namespace bowline
