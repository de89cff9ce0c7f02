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
  kAccepted,   // down: you are one of us; wait for the others
  kRejected,   // down: u8 RejectReason, status
  kWelcome,    // down: all ranks are there; text address of the hub's host (may be empty), text where rank 0 is
  kBeat,       // both: I am alive
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

// A TCP connection that carries messages and never blocks. Nothing that the other side sends does harm: a message
// longer than the limit, or bytes that are no message, are an error.
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

  // Reads some of the available bytes; kUnavailable when the other side closed.
  absl::Status Fill();
  // The next complete message, if any.
  absl::StatusOr<std::optional<Message>> Next();

 private:
  FileDescriptor socket_;
  size_t limit_ = kMaxStrangerMessage;
  std::string input_, output_;
  size_t consumed_ = 0;  // bytes of input_ that Next has returned
};

// The address of a socket's own end, numeric and without the port; empty when there is none.
std::string LocalAddressOf(int socket);
std::string NumericAddress(const sockaddr* address, socklen_t size);
bool IsLoopbackAddress(absl::string_view address);
// Returns whether a host's name or address means, on every machine, that machine itself.
bool MeansLoopback(const std::string& host);

// Listens at a host's address, or at all addresses of this machine where the host's is not one of them (or is a name
// for a loopback address that others would not reach). `port` 0 takes a free one. kUnavailable when the port is taken.
absl::StatusOr<FileDescriptor> Listen(const std::string& host, int port);
// The same at all addresses of this machine.
absl::StatusOr<FileDescriptor> ListenEverywhere(int port);
absl::StatusOr<int> PortOf(int socket);

// Tries a host's addresses one after the other.
absl::StatusOr<FileDescriptor> ConnectTo(const std::string& host, int port,
                                         std::chrono::steady_clock::time_point deadline);

// Waits until the descriptor can be read (or written, when asked for) or the deadline has come; false for the latter.
bool WaitForSocket(int socket, bool to_write, std::chrono::steady_clock::time_point deadline);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_CONTROL_CONNECTION_H_
