#ifndef BOWLINE_RUNTIME_COMM_CONTROL_CONNECTION_H_
#define BOWLINE_RUNTIME_COMM_CONTROL_CONNECTION_H_

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/status.h"

namespace bowline {

// The messages that ranks exchange beside their data. "Up" goes from a rank to the hub, "down" from the hub to a rank.
enum class MessageType : uint8_t {
  kHello = 1,  // up: the description of the rank (Hello)
  kAccepted,   // down: the rank belongs to the run, and waits for the others
  kRejected,   // down: u8 RejectReason, status
  kWelcome,    // down: all ranks are there; text address of the hub's host (may be empty), text place of rank 0
  kBeat,       // both: a sign of life
  kPut,        // up: text key, text value
  kGet,        // up: text key
  kValue,      // down: text key, text value
  kLate,       // up: an operation takes too long (Complaint)
  kFailed,     // up: a connection to another rank failed (Complaint)
  kBreak,      // up: status that shall end everything
  kBroken,     // down: status that ended everything
  kAsk,        // down: report your activities
  kAnswer,     // up: activities
  kLeave,      // up: this rank is done
  kDone,       // down: all ranks are done
  kProbe,      // up: identify rank 0 of this address (Hello; answered by kRejected)
};

struct Message {
  MessageType type;
  std::string payload;
};

// A TCP connection that carries messages and never blocks. The other side is not trusted: a message longer than the
// limit, or bytes that are no message, are an error.
class Connection {
 public:
  static constexpr size_t kMaxMessage = size_t{16} << 20;
  // The longest message, in bytes, of a connection whose other side has not identified itself.
  static constexpr size_t kMaxStrangerMessage = 1024;

  Connection() = default;
  explicit Connection(FileDescriptor socket);

  bool open() const { return socket_.valid(); }
  int descriptor() const { return socket_.get(); }
  void Close() { socket_.Close(); }
  void set_limit(size_t limit) { limit_ = limit; }

  // Appends a message to those that Flush sends.
  void Queue(MessageType type, absl::string_view payload = {});
  bool has_output() const { return !output_.empty(); }
  absl::Status Flush();

  // Reads some of the available bytes. Returns kUnavailable if the other side closed the connection.
  absl::Status Fill();
  // Returns the next complete message, if there is one.
  absl::StatusOr<std::optional<Message>> Next();

 private:
  FileDescriptor socket_;
  size_t limit_ = kMaxStrangerMessage;
  std::string input_, output_;
  size_t consumed_ = 0;  // bytes of input_ that Next has returned
};

// Returns the address of a socket's own end, numeric and without the port; empty if there is none.
std::string LocalAddressOf(int socket);
std::string NumericAddress(const sockaddr* address, socklen_t size);
bool IsLoopbackAddress(absl::string_view address);
// Returns whether a host's name or address means, on every machine, that machine itself.
bool MeansLoopback(const std::string& host);

// Listens at a host's address. Listens at all addresses of this machine if the host's is not one of them, or if it is a
// loopback address that others cannot reach. `port` 0 takes a free port. Returns kUnavailable if the port is taken.
absl::StatusOr<FileDescriptor> Listen(const std::string& host, int port);
// Listens at all addresses of this machine.
absl::StatusOr<FileDescriptor> ListenEverywhere(int port);
absl::StatusOr<int> PortOf(int socket);

// Tries a host's addresses one after the other.
absl::StatusOr<FileDescriptor> ConnectTo(const std::string& host, int port,
                                         std::chrono::steady_clock::time_point deadline);

// Waits until the socket can be read, or with `to_write` written. Returns false if the deadline came first.
bool WaitForSocket(int socket, bool to_write, std::chrono::steady_clock::time_point deadline);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_CONTROL_CONNECTION_H_
