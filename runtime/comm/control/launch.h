#ifndef BOWLINE_RUNTIME_COMM_CONTROL_LAUNCH_H_
#define BOWLINE_RUNTIME_COMM_CONTROL_LAUNCH_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "runtime/comm/control/rendezvous.h"

namespace bowline {

// The user's flags: --rank, --world-size, --local-rank, --rendezvous.
struct LaunchFlags {
  std::optional<int> rank = {}, world_size = {}, local_rank = {};
  std::optional<std::string> rendezvous = {};
};

// The rank of this process, the number of ranks, and the place where they meet.
struct Launch {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;     // the rank among those of this machine; 0 if nothing says it
  bool all_here = false;  // the launcher says that all ranks are on this machine
  // The sources of the rank and of the number of ranks: "--rank" and "--world-size", "RANK" and "WORLD_SIZE", ...;
  // empty for one rank by default.
  std::string source, size_source;
  Rendezvous rendezvous;  // set if there is more than one rank
};

// The value of an environment variable; nothing when it is not set.
using Environment = absl::FunctionRef<std::optional<std::string>(const char* name)>;

// Finds the rank and the rendezvous, each from the first line of its list that says something:
//   rank          --rank and --world-size
//                 RANK, WORLD_SIZE, LOCAL_RANK                                 torchrun, Kubeflow, by hand
//                 OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK                     mpirun of Open MPI
//                 PMI_RANK, PMI_SIZE, MPI_LOCALRANKID                          mpirun of MPICH and its kin
//                 SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS, SLURM_LOCALID   srun; a batch script, which has
//                                                                              no SLURM_STEP_ID, is one rank
//   rendezvous    --rendezvous
//                 MASTER_ADDR and MASTER_PORT
//                 Slurm: the first host of the step and a port from the ids of job and step
//                 Open MPI, all ranks on one machine: that machine and a port from the job's name
// Where torchrun's agent itself listens at MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True), and where a port is
// derived, 16 ports are tried; runs are told apart by their job id (TORCHELASTIC_RUN_ID and restart count, Slurm's,
// Open MPI's). Some launchers give rank 0 "localhost" for its own host, and other ranks its name: rank 0 of
// MASTER_ADDR listens beyond loopback addresses unless LOCAL_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_SIZE, MPI_LOCALNRANKS
// or SLURM_STEP_NUM_NODES says that all ranks are on its machine.
//
// Returns kInvalidArgument, naming the variable, its value and the remedy, for half of a pair, a bad number, a rank
// beyond the size, two launchers that disagree about the rank, and a missing rendezvous.
absl::StatusOr<Launch> DetectLaunch(const LaunchFlags& flags, Environment environment);

// An environment variable of this process; nothing if it is not set.
std::optional<std::string> ProcessEnvironment(const char* name);

// "gpu[03-05,9]-a,gpu7" -> "gpu03-a". Empty when it is no list of hosts.
std::string FirstHostOf(absl::string_view slurm_node_list);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_CONTROL_LAUNCH_H_
