// Which rank a process is, by the launchers' environment variables.

#include "runtime/comm/control/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

namespace bowline {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

absl::StatusOr<Launch> Detect(const LaunchFlags& flags, const Variables& variables) {
  return DetectLaunch(flags, [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

void ExpectLaunch(const absl::StatusOr<Launch>& launch, int rank, int ranks, int local_rank, const std::string& where,
                  const std::string& job = "") {
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->rank, rank);
  EXPECT_EQ(launch->ranks, ranks);
  EXPECT_EQ(launch->local_rank, local_rank);
  if (ranks > 1) EXPECT_EQ(launch->rendezvous.ToString(), where);
  EXPECT_EQ(launch->rendezvous.job, job);
}

void ExpectRefused(const absl::StatusOr<Launch>& launch, const char* text) {
  EXPECT_EQ(launch.status().code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(launch.status().message()), HasSubstr(text));
}

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}
Variables Without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"MASTER_ADDR", "n1"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "run"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"}};
const Variables kSlurm = {{"SLURM_PROCID", "3"},
                          {"SLURM_NTASKS", "8"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_JOB_ID", "77"},
                          {"SLURM_STEP_ID", "4"},
                          {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_JOB_NODELIST", "gpu[03-05,09]-ib,x1"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_NAMESPACE", "1234567"}};

TEST(Launch, IsOneRankWhenNobodySaysMore) {
  ExpectLaunch(Detect({}, {}), 0, 1, 0, "");
  ExpectLaunch(Detect({}, {{"MASTER_ADDR", "left over"}}), 0, 1, 0, "");
  ExpectLaunch(Detect({}, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}), 0, 1, 0, "");
}

TEST(Launch, Flags) {
  const LaunchFlags flags = {1, 4, std::nullopt, "host:1234"};
  ExpectLaunch(Detect(flags, {}), 1, 4, 0, "host:1234");
  ExpectLaunch(Detect(flags, kTorchrun), 1, 4, 0, "host:1234");
  ExpectLaunch(Detect({1, 4, 3, "file:/a/b"}, {}), 1, 4, 3, "file:/a/b");
  ExpectLaunch(Detect({.rendezvous = "[::1]:7"}, kTorchrun), 5, 8, 1, "[::1]:7");
  ExpectRefused(Detect({.rank = 3}, kTorchrun), "--rank=3 is set, but --world-size is not");
  ExpectRefused(Detect({.world_size = 3}, {}), "--world-size=3 is set, but --rank is not");
  ExpectRefused(Detect({.rank = 3, .world_size = 3}, {}), "--rank=3 with --world-size=3: ranks are 0 to 2");
  ExpectRefused(Detect({.rank = 0, .world_size = 0}, {}), "--world-size=0");
  ExpectRefused(Detect({.rank = 0, .world_size = 2, .local_rank = 2}, {}), "--local-rank=2");
  ExpectRefused(Detect({.rank = 0, .world_size = 2}, {}),
                "--world-size says that there are 2 ranks, but nothing says where");
  ExpectRefused(Detect({.rendezvous = "host:1"}, {}), "--rendezvous=host:1 without a number of ranks");
}

TEST(Launch, Torchrun) {
  ExpectLaunch(Detect({}, kTorchrun), 5, 8, 1, "n1:29500", "torchrun run.2");
  // The agent has the port itself.
  ExpectLaunch(Detect({}, With(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})), 5, 8, 1, "n1:29501 to 29516",
               "torchrun run.2");
  ExpectLaunch(Detect({}, With(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"MASTER_PORT", "65530"}})), 5, 8,
               1, "n1:65514 to 65529", "torchrun run.2");
  ExpectLaunch(Detect({}, With(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})), 5, 8, 1, "n1:29500",
               "torchrun run.2");
  // As Kubeflow does.
  const Variables plain = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "job-0"}, {"MASTER_PORT", "23456"}};
  ExpectLaunch(Detect({}, plain), 1, 2, 0, "job-0:23456");
  // On every node, started by srun.
  ExpectLaunch(Detect({}, With(kTorchrun, kSlurm)), 5, 8, 1, "n1:29500", "torchrun run.2");
}

// Kubeflow gives rank 0 "localhost", and the others the name of its pod.
TEST(Launch, RankZeroIsReachedUnlessAllRanksAreOnItsMachine) {
  const Variables master = {{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}};
  const Variables plain = With(master, {{"RANK", "0"}, {"WORLD_SIZE", "4"}});
  const Variables openmpi = With(Without(kOpenMpi, "OMPI_COMM_WORLD_LOCAL_SIZE"), master);
  const Variables pmi = With(master, {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}});
  const Variables slurm = With(kSlurm, master);
  for (const auto& [ranks, name, all, some] :
       {std::tuple(plain, "LOCAL_WORLD_SIZE", "4", "2"), std::tuple(openmpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "4", "2"),
        std::tuple(pmi, "MPI_LOCALNRANKS", "3", "1"), std::tuple(slurm, "SLURM_STEP_NUM_NODES", "1", "2")}) {
    EXPECT_TRUE(Detect({}, ranks)->rendezvous.beyond_loopback) << name;
    EXPECT_TRUE(Detect({}, With(ranks, {{name, some}}))->rendezvous.beyond_loopback) << name;
    EXPECT_FALSE(Detect({}, With(ranks, {{name, all}}))->rendezvous.beyond_loopback) << name;
  }
  EXPECT_TRUE(Detect({.rank = 0, .world_size = 2}, master)->rendezvous.beyond_loopback);
  // A loopback address here is meant.
  EXPECT_FALSE(Detect({0, 2, std::nullopt, "localhost:7"}, master)->rendezvous.beyond_loopback);
  EXPECT_FALSE(Detect({}, kOpenMpi)->rendezvous.beyond_loopback);
}

TEST(Launch, AnIPv6AddressOfRankZeroMayHaveBrackets) {
  const Variables plain = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "29500"}};
  for (const char* address : {"[2001:db8::1]", "2001:db8::1"}) {
    EXPECT_EQ(Detect({}, With(plain, {{"MASTER_ADDR", address}}))->rendezvous.host, "2001:db8::1");
  }
}

TEST(Launch, RefusesWhatIsHalfSetOrWrong) {
  ExpectRefused(Detect({}, Without(kTorchrun, "WORLD_SIZE")), "RANK=5 is set, but WORLD_SIZE is not; set both");
  ExpectRefused(Detect({}, Without(kTorchrun, "RANK")), "WORLD_SIZE=8 is set, but RANK is not");
  ExpectRefused(Detect({}, Without(kTorchrun, "MASTER_PORT")), "MASTER_ADDR=n1 is set, but MASTER_PORT is not");
  ExpectRefused(Detect({}, Without(kTorchrun, "MASTER_ADDR")), "MASTER_PORT=29500 is set, but MASTER_ADDR is not");
  ExpectRefused(Detect({}, With(kTorchrun, {{"RANK", "x"}})), "RANK='x' is no whole number from 0 on");
  ExpectRefused(Detect({}, With(kTorchrun, {{"RANK", "-1"}})), "RANK='-1'");
  ExpectRefused(Detect({}, With(kTorchrun, {{"RANK", "8"}})), "RANK=8 with WORLD_SIZE=8: ranks are 0 to 7");
  ExpectRefused(Detect({}, With(kTorchrun, {{"WORLD_SIZE", "0"}})), "WORLD_SIZE='0' is no whole number from 1 on");
  ExpectRefused(Detect({}, With(kTorchrun, {{"WORLD_SIZE", "99999999999"}})), "WORLD_SIZE='99999999999'");
  ExpectRefused(Detect({}, With(kTorchrun, {{"LOCAL_RANK", "9"}})), "LOCAL_RANK=9 with WORLD_SIZE=8");
  ExpectRefused(Detect({}, With(kTorchrun, {{"MASTER_PORT", "70000"}})), "MASTER_PORT=70000 is no port");
  ExpectRefused(Detect({}, With(kTorchrun, {{"MASTER_PORT", ""}})), "MASTER_PORT='' is no whole number");
  ExpectRefused(Detect({}, With(kTorchrun, {{"MASTER_ADDR", ""}})), "MASTER_ADDR is empty");
  ExpectRefused(Detect({}, With(kTorchrun, {{"MASTER_ADDR", "n1:29500"}})), "MASTER_ADDR='n1:29500' has a port, which");
  ExpectRefused(Detect({}, With(kTorchrun, {{"MASTER_ADDR", "[::1]:29500"}})), "has a port, which");
  ExpectRefused(Detect({}, With(kTorchrun, {{"MASTER_ADDR", "tcp://n1"}})), "MASTER_ADDR='tcp://n1' is a URL");
  ExpectRefused(Detect({}, With(kTorchrun, {{"MASTER_ADDR", "n1,n2"}})), "MASTER_ADDR='n1,n2' names several hosts");
}

TEST(Launch, OpenMpi) {
  const absl::StatusOr<Launch> one = Detect({}, kOpenMpi);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->rank, 2);
  EXPECT_EQ(one->ranks, 4);
  EXPECT_EQ(one->rendezvous.host, "127.0.0.1");
  EXPECT_EQ(one->rendezvous.job, "mpirun 1234567");
  EXPECT_GE(one->rendezvous.port, 20000);
  EXPECT_LT(one->rendezvous.port + one->rendezvous.ports, 32768);
  // The next run meets elsewhere.
  EXPECT_NE(Detect({}, With(kOpenMpi, {{"PMIX_NAMESPACE", "1234568"}}))->rendezvous.port, one->rendezvous.port);
  const Variables two_machines = With(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  ExpectRefused(Detect({}, two_machines), "OMPI_COMM_WORLD_SIZE says that there are 4 ranks, but nothing says where");
  ExpectLaunch(Detect({}, With(two_machines, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}})), 2, 4, 2, "a:1");
  // Left over from another shell: all ranks would take themselves for rank 0.
  ExpectRefused(Detect({}, With(kOpenMpi, {{"RANK", "0"}, {"WORLD_SIZE", "4"}})),
                "RANK=0, but OMPI_COMM_WORLD_RANK=2, both with 4 ranks");
}

TEST(Launch, Pmi) {
  ExpectLaunch(Detect({.rendezvous = "file:x"}, {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}}), 1, 3,
               1, "file:x");
  ExpectRefused(Detect({}, {{"PMI_RANK", "1"}}), "PMI_RANK=1 is set, but PMI_SIZE is not");
}

TEST(Launch, Slurm) {
  const absl::StatusOr<Launch> launch = Detect({}, kSlurm);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->rank, 3);
  EXPECT_EQ(launch->ranks, 4);  // of the step, not of the job
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->rendezvous.host, "gpu03-ib");
  EXPECT_EQ(launch->rendezvous.job, "slurm 77.4.0");
  EXPECT_EQ(Detect({}, With(kSlurm, {{"SLURM_STEP_NODELIST", "x[1-2]"}}))->rendezvous.host, "x1");
  EXPECT_EQ(Detect({}, Without(kSlurm, "SLURM_STEP_NUM_TASKS"))->ranks, 8);
  ExpectLaunch(Detect({}, With(kSlurm, {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "9"}})), 3, 4, 1, "m:9");
  // A batch script.
  ExpectLaunch(Detect({}, Without(With(kSlurm, {{"SLURM_PROCID", "0"}}), "SLURM_STEP_ID")), 0, 1, 0, "");
  ExpectRefused(Detect({}, Without(kSlurm, "SLURM_JOB_NODELIST")), "nothing says where they meet");
}

TEST(Launch, FirstHostOfASlurmList) {
  EXPECT_EQ(FirstHostOf("a"), "a");
  EXPECT_EQ(FirstHostOf("a,b"), "a");
  EXPECT_EQ(FirstHostOf("a[007-010]"), "a007");
  EXPECT_EQ(FirstHostOf("a[7,9],b"), "a7");
  EXPECT_EQ(FirstHostOf("r[1-2]n[3,4]-x,b"), "r1n3-x");
  EXPECT_EQ(FirstHostOf("a[7"), "");
  EXPECT_EQ(FirstHostOf(""), "");
}

TEST(Rendezvous, IsReadFromText) {
  EXPECT_EQ(ParseRendezvous("host:29500")->host, "host");
  EXPECT_EQ(ParseRendezvous("host:29500")->port, 29500);
  EXPECT_EQ(ParseRendezvous("tcp://host:29500")->host, "host");
  EXPECT_EQ(ParseRendezvous("[fe80::1]:1")->host, "fe80::1");
  EXPECT_EQ(ParseRendezvous("file:/a:b")->file, "/a:b");
  for (const char* text : {"", "host", "host:", ":1", "host:0", "host:65536", "host:1x", "a:b:1", "[::1:1", "file:"}) {
    const absl::Status status = ParseRendezvous(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("or HOST:PORT of rank 0, such as node1:29500"));
  }
}

}  // namespace
}  // namespace bowline
