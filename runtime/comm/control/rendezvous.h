#ifndef BOWLINE_RUNTIME_COMM_CONTROL_RENDEZVOUS_H_
#define BOWLINE_RUNTIME_COMM_CONTROL_RENDEZVOUS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/status.h"
#include "runtime/comm/control/hub.h"

namespace bowline {

// The place where rank 0 waits for the other ranks: an address, or a file that all ranks can read. Rank 0 writes its
// address into the file, which exists as long as the run. Exactly one of `file` and `host` is set.
struct Rendezvous {
  std::string file;
  std::string host;
  int port = 0;
  // Rank 0 takes the first free port of [port, port + ports), and the other ranks try all of these ports. The number is
  // above 1 if another program may have the port, because the port was derived instead of given.
  int ports = 1;
  // If true and only processes of its machine reach `host`, as with localhost, rank 0 listens at all addresses of the
  // machine, because other machines may know it by another name.
  bool beyond_loopback = false;
  // All ranks of a run have the same text; another run at the same address has another one.
  std::string job;

  std::string ToString() const;
};

// Parses "file:PATH", "HOST:PORT" or "[IPV6]:PORT", the latter two also with "tcp://" before them. For other texts
// returns kInvalidArgument, naming the allowed forms.
absl::StatusOr<Rendezvous> ParseRendezvous(absl::string_view text);

// Rank 0 calls this to start listening; it sets the token of `hello` if there is a file. `address`, one of this
// machine's, goes into the file; if it is empty, the address of the first interface that is no loopback does.
// Returns kInvalidArgument and keeps the file if another live run uses it, or if it is not one that a rank 0 wrote.
// Replaces an empty file, or a file whose hub does not answer.
absl::StatusOr<FileDescriptor> ListenForRanks(const Rendezvous& rendezvous, const std::string& address, Hello& hello);

// Every rank calls this; it returns a connection that the hub has accepted. Returns kInvalidArgument if another process
// is this rank, if the numbers of ranks differ, or if the file is not one that a rank 0 wrote. Returns
// kDeadlineExceeded, naming the place, if no hub was there.
absl::StatusOr<Connection> ConnectToHub(const Rendezvous& rendezvous, Hello hello, Clock::time_point deadline);

// Rank 0 calls this when its hub is no longer there; it removes the file if its token is still `token`.
void RemoveRendezvousFile(const Rendezvous& rendezvous, const std::string& token);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_CONTROL_RENDEZVOUS_H_
