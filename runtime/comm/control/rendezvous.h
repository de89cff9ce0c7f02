#ifndef BOWLINE_RUNTIME_COMM_CONTROL_RENDEZVOUS_H_
#define BOWLINE_RUNTIME_COMM_CONTROL_RENDEZVOUS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/status.h"
#include "runtime/comm/control/hub.h"

namespace bowline {

// Where rank 0 waits for the others: a file that all see, in which rank 0 writes its address and which stays as long as
// the run does, or an address. Exactly one of `file` and `host` is set.
struct Rendezvous {
  std::string file;
  std::string host;
  int port = 0;
  // Rank 0 takes the first free port of [port, port + ports), the others look for it in all of them: for a port that
  // was derived and not given, and may be somebody else's.
  int ports = 1;
  // All ranks of a run have the same; another run at the same address has another.
  std::string job;

  std::string ToString() const;
};

// "file:PATH", "HOST:PORT" or "[IPV6]:PORT". kInvalidArgument saying what is allowed.
absl::StatusOr<Rendezvous> ParseRendezvous(absl::string_view text);

// For rank 0: starts listening, and sets the token of `hello` if there is a file. `address` is one of this machine's,
// which goes into the file; empty takes that of the first interface that is no loopback. kInvalidArgument when rank 0
// of a run that lives meets the others at this file; a file that nobody answers for is replaced.
absl::StatusOr<FileDescriptor> ListenForRanks(const Rendezvous& rendezvous, const std::string& address, Hello& hello);

// For every rank: a connection to the hub, which has accepted it. kInvalidArgument when another process is this rank,
// or the numbers of ranks differ; kDeadlineExceeded saying where nobody was.
absl::StatusOr<Connection> ConnectToHub(const Rendezvous& rendezvous, Hello hello, Clock::time_point deadline);

// For rank 0, when its hub is no longer there: removes the file if it is still that of `token`.
void RemoveRendezvousFile(const Rendezvous& rendezvous, const std::string& token);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_CONTROL_RENDEZVOUS_H_
