#include "runtime/comm/control/launch.h"

#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/comm/hash.h"

namespace bowline {
namespace {

// The number of ports that are tried where another program may have the first one.
constexpr int kPorts = 16;
// The range of derived ports, which lies below the ports that Linux gives to outgoing connections.
constexpr int kFirstDerivedPort = 20000, kDerivedPorts = 10000;

using Text = std::optional<std::string>;

// The variables of a launcher.
struct Family {
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Family kTorchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Family kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                             "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Family kPmi = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

absl::StatusOr<int> Number(const char* name, const std::string& text, int smallest) {
  int value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= smallest) return value;
  return absl::InvalidArgumentError(absl::StrCat("environment variable ", name, "='", text,
                                                 "' is no whole number from ", smallest,
                                                 " on; set it right, or unset it"));
}

absl::Status OutOfRange(const std::string& rank_name, int rank, const std::string& size_name, int size) {
  return absl::InvalidArgumentError(absl::StrCat(rank_name, "=", rank, " with ", size_name, "=", size,
                                                 ": ranks are 0 to ", size - 1, "; correct one of them"));
}

absl::Status HalfSet(const std::string& set, const std::string& value, const std::string& unset) {
  return absl::InvalidArgumentError(
      absl::StrCat(set, "=", value, " is set, but ", unset, " is not; set both, or neither"));
}

// Returns nullopt when none of the family's variables is set.
absl::StatusOr<std::optional<Launch>> From(const Family& family, Environment environment) {
  const Text rank = environment(family.rank), size = environment(family.size);
  if (!rank.has_value() && !size.has_value()) return std::nullopt;
  if (!rank.has_value()) return HalfSet(family.size, *size, family.rank);
  if (!size.has_value()) return HalfSet(family.rank, *rank, family.size);
  Launch launch;
  launch.source = family.rank;
  launch.size_source = family.size;
  BOWLINE_ASSIGN_OR_RETURN(launch.rank, Number(family.rank, *rank, 0));
  BOWLINE_ASSIGN_OR_RETURN(launch.ranks, Number(family.size, *size, 1));
  if (launch.rank >= launch.ranks) return OutOfRange(family.rank, launch.rank, family.size, launch.ranks);
  if (const Text local = environment(family.local_rank); local.has_value()) {
    BOWLINE_ASSIGN_OR_RETURN(launch.local_rank, Number(family.local_rank, *local, 0));
    if (launch.local_rank >= launch.ranks) {
      return OutOfRange(family.local_rank, launch.local_rank, family.size, launch.ranks);
    }
  }
  launch.all_here = family.local_size != nullptr && environment(family.local_size) == size;
  return launch;
}

absl::StatusOr<std::optional<Launch>> FromSlurm(Environment environment) {
  const Text rank = environment("SLURM_PROCID");
  if (!rank.has_value()) return std::nullopt;
  // The shell of a batch script calls itself task 0 of as many as srun would start.
  if (!environment("SLURM_STEP_ID").has_value() && *rank == "0") return std::nullopt;
  const char* const size = environment("SLURM_STEP_NUM_TASKS").has_value() ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  // It has no number of the tasks of a node that is the same in all its releases.
  BOWLINE_ASSIGN_OR_RETURN(std::optional<Launch> launch,
                           From({"SLURM_PROCID", size, "SLURM_LOCALID", nullptr}, environment));
  if (launch.has_value()) launch->all_here = environment("SLURM_STEP_NUM_NODES") == "1";
  return launch;
}

absl::StatusOr<std::optional<Launch>> FromFlags(const LaunchFlags& flags) {
  if (!flags.rank.has_value() && !flags.world_size.has_value()) return std::nullopt;
  if (!flags.rank.has_value()) return HalfSet("--world-size", absl::StrCat(*flags.world_size), "--rank");
  if (!flags.world_size.has_value()) return HalfSet("--rank", absl::StrCat(*flags.rank), "--world-size");
  Launch launch;
  launch.source = "--rank";
  launch.size_source = "--world-size";
  launch.rank = *flags.rank;
  launch.ranks = *flags.world_size;
  if (launch.ranks < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--world-size=", launch.ranks, "; it must be at least 1"));
  }
  if (launch.rank < 0 || launch.rank >= launch.ranks) {
    return OutOfRange("--rank", launch.rank, "--world-size", launch.ranks);
  }
  return launch;
}

// Finds the launcher of this process in the environment. Two launchers may both be right when one started the other
// (torchrun on each node, by srun), but not when they differ in the rank for the same number of ranks.
absl::StatusOr<std::optional<Launch>> FromEnvironment(Environment environment) {
  std::optional<Launch> first;
  const auto consider = [&](absl::StatusOr<std::optional<Launch>> found) -> absl::Status {
    if (!found.ok()) return first.has_value() ? absl::OkStatus() : found.status();
    if (!found->has_value()) return absl::OkStatus();
    if (!first.has_value()) {
      first = std::move(*found);
    } else if (first->ranks == (**found).ranks && first->rank != (**found).rank &&
               !environment("TORCHELASTIC_RUN_ID").has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(first->source, "=", first->rank, ", but ", (**found).source, "=", (**found).rank, ", both with ",
                       first->ranks, " ranks; unset the variable of the launcher that did not start this process, or ",
                       "give --rank and --world-size"));
    }
    return absl::OkStatus();
  };
  BOWLINE_RETURN_IF_ERROR(consider(From(kTorchrun, environment)));
  BOWLINE_RETURN_IF_ERROR(consider(From(kOpenMpi, environment)));
  BOWLINE_RETURN_IF_ERROR(consider(From(kPmi, environment)));
  BOWLINE_RETURN_IF_ERROR(consider(FromSlurm(environment)));
  return first;
}

Rendezvous Derived(std::string host, std::string job) {
  Rendezvous rendezvous;
  rendezvous.host = std::move(host);
  rendezvous.port = kFirstDerivedPort + static_cast<int>(HashOf(job) % kDerivedPorts);
  rendezvous.ports = kPorts;
  rendezvous.job = std::move(job);
  return rendezvous;
}

// The host that MASTER_ADDR names; an IPv6 address may have brackets.
absl::StatusOr<std::string> MasterHost(absl::string_view address) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("environment variable MASTER_ADDR='", address, "' ", why, "; set it to the host of rank 0 alone"));
  };
  if (address.empty()) {
    return absl::InvalidArgumentError("environment variable MASTER_ADDR is empty; set it to the host of rank 0");
  }
  if (absl::StrContains(address, "://")) return refuse("is a URL");
  if (address.find_first_of(", ;") != absl::string_view::npos) return refuse("names several hosts");
  if (absl::StartsWith(address, "[") && absl::EndsWith(address, "]")) {
    return std::string(address.substr(1, address.size() - 2));
  }
  const size_t colon = address.find(':');
  const bool has_port =
      colon != absl::string_view::npos && (colon == address.rfind(':') || absl::StrContains(address, "]:"));
  if (has_port) return refuse("has a port, which belongs into MASTER_PORT");
  return std::string(address);
}

absl::StatusOr<Rendezvous> FromMaster(const std::string& address, const std::string& port, Environment environment) {
  Rendezvous rendezvous;
  BOWLINE_ASSIGN_OR_RETURN(rendezvous.port, Number("MASTER_PORT", port, 1));
  if (rendezvous.port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("environment variable MASTER_PORT=", port,
                                                   " is no port; the "
                                                   "largest is 65535"));
  }
  BOWLINE_ASSIGN_OR_RETURN(rendezvous.host, MasterHost(address));
  if (const Text id = environment("TORCHELASTIC_RUN_ID"); id.has_value()) {
    rendezvous.job = absl::StrCat("torchrun ", *id, ".", environment("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  }
  if (environment("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    const bool above = rendezvous.port + kPorts <= 65535;
    rendezvous.port = above ? rendezvous.port + 1 : rendezvous.port - kPorts;
    rendezvous.ports = kPorts;
  }
  return rendezvous;
}

absl::StatusOr<Rendezvous> FindRendezvous(const LaunchFlags& flags, const Launch& launch, Environment environment) {
  if (flags.rendezvous.has_value()) return ParseRendezvous(*flags.rendezvous);
  const Text address = environment("MASTER_ADDR"), port = environment("MASTER_PORT");
  if (address.has_value() && !port.has_value()) return HalfSet("MASTER_ADDR", *address, "MASTER_PORT");
  if (port.has_value() && !address.has_value()) return HalfSet("MASTER_PORT", *port, "MASTER_ADDR");
  if (address.has_value()) {
    BOWLINE_ASSIGN_OR_RETURN(Rendezvous rendezvous, FromMaster(*address, *port, environment));
    rendezvous.beyond_loopback = !launch.all_here;
    return rendezvous;
  }

  if (const Text job = environment("SLURM_JOB_ID"); launch.source == "SLURM_PROCID" && job.has_value()) {
    Text nodes = environment("SLURM_STEP_NODELIST");
    if (!nodes.has_value()) nodes = environment("SLURM_JOB_NODELIST");
    const std::string host = FirstHostOf(nodes.value_or(""));
    if (!host.empty()) {
      return Derived(host, absl::StrCat("slurm ", *job, ".", environment("SLURM_STEP_ID").value_or("0"), ".",
                                        environment("SLURM_RESTART_COUNT").value_or("0")));
    }
  }
  if (const Text job = environment("PMIX_NAMESPACE"); launch.source == kOpenMpi.rank && job.has_value()) {
    if (launch.all_here) {
      return Derived("127.0.0.1", absl::StrCat("mpirun ", *job));
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(launch.size_source, " says that there are ", launch.ranks,
                   " ranks, but nothing says where they meet; say --rendezvous HOST:PORT with the host of rank 0, or "
                   "--rendezvous file:PATH with a file that all see, or set MASTER_ADDR and MASTER_PORT"));
}

}  // namespace

absl::StatusOr<Launch> DetectLaunch(const LaunchFlags& flags, Environment environment) {
  BOWLINE_ASSIGN_OR_RETURN(std::optional<Launch> found, FromFlags(flags));
  if (!found.has_value()) {
    BOWLINE_ASSIGN_OR_RETURN(found, FromEnvironment(environment));
  }
  Launch launch = std::move(found).value_or(Launch());
  if (flags.local_rank.has_value()) {
    launch.local_rank = *flags.local_rank;
    if (launch.local_rank < 0 || launch.local_rank >= launch.ranks) {
      return OutOfRange("--local-rank", launch.local_rank, "the number of ranks", launch.ranks);
    }
  }
  if (launch.ranks == 1) {
    if (flags.rendezvous.has_value() && launch.source.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--rendezvous=", *flags.rendezvous,
                                                     " without a number of ranks; say --rank and --world-size, or "
                                                     "start with torchrun, mpirun or srun"));
    }
    return launch;
  }
  BOWLINE_ASSIGN_OR_RETURN(launch.rendezvous, FindRendezvous(flags, launch, environment));
  return launch;
}

std::optional<std::string> ProcessEnvironment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

std::string FirstHostOf(absl::string_view list) {
  std::string host;
  for (size_t i = 0; i < list.size() && list[i] != ',';) {
    if (list[i] != '[') {
      host.push_back(list[i++]);
      continue;
    }
    const size_t end = list.find(']', i);
    if (end == absl::string_view::npos) return "";
    const absl::string_view numbers = list.substr(i + 1, end - i - 1);
    absl::StrAppend(&host, numbers.substr(0, numbers.find_first_of(",-")));
    i = end + 1;
  }
  return host;
}

}  // namespace bowline
