#ifndef BOWLINE_RUNTIME_COMM_CONTROL_RENDEZVOUS_H_
#define BOWLINE_RUNTIME_COMM_CONTROL_RENDEZVOUS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/status.h"
#include "runtime/comm/control/hub.h"

namespace bowline {

// The place where rank 0 waits for the others: a file that all see, in which rank 0 writes its address and which stays
// as long as the run does, or an address. Exactly one of `file` and `host` is set.
struct Rendezvous {
  std::string file;
  std::string host;
  int port = 0;
  // Rank 0 takes the first free port of [port, port + ports), and the others look for rank 0 at all of them. It is more
  // than 1 if another program may have the port, such as one that was derived and not given.
  int ports = 1;
  // Whether rank 0 listens at all addresses of its machine where `host` is one that only processes of it reach, such as
  // localhost: others may know the machine by another name.
  bool beyond_loopback = false;
  // All ranks of a run have the same; another run at the same address has another.
  std::string job;

  std::string ToString() const;
};

// Parses "file:PATH", "HOST:PORT" or "[IPV6]:PORT", the latter two also with "tcp://" before them. For other texts
// returns kInvalidArgument, naming the allowed forms.
absl::StatusOr<Rendezvous> ParseRendezvous(absl::string_view text);

// Rank 0 calls this to start listening; it sets the token of `hello` if there is a file. `address`, one of this
// machine's, goes into the file; if it is empty, the address of the first interface that is no loopback does.
// kInvalidArgument when rank 0 of a run that lives meets the others at this file, or when the file is none that a rank
// 0 wrote, which stays; an empty file, and one for which no hub answers, is replaced.
absl::StatusOr<FileDescriptor> ListenForRanks(const Rendezvous& rendezvous, const std::string& address, Hello& hello);

// Every rank calls this; it returns a connection that the hub has accepted. kInvalidArgument when another process is
// this rank, the numbers of ranks differ, or the file is none that a rank 0 wrote; kDeadlineExceeded, naming the place,
// when no hub was there.
absl::StatusOr<Connection> ConnectToHub(const Rendezvous& rendezvous, Hello hello, Clock::time_point deadline);

// Rank 0 calls this when its hub is no longer there; it removes the file if its token is still `token`.
void RemoveRendezvousFile(const Rendezvous& rendezvous, const std::string& token);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_CONTROL_RENDEZVOUS_H_
