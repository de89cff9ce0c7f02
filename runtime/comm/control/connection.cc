#include "runtime/comm/control/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

constexpr size_t kHeader = 5;  // u32 length of the rest, u8 type
constexpr size_t kMostAtOnce = size_t{4} << 20;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat("host '", host, "' has no address: ", ::gai_strerror(error)));
  }
  return Addresses(list);
}

void NoDelay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

absl::Status ErrnoStatus(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// `error` is the errno of a failure.
absl::StatusOr<FileDescriptor> ListenAt(int family, const sockaddr* address, socklen_t size, int& error) {
  const auto failed = [&](absl::string_view what) {
    error = errno;
    return ErrnoStatus(what);
  };
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return failed("socket");
  const int on = 1, off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (::bind(socket.get(), address, size) != 0) return failed("bind");
  if (::listen(socket.get(), SOMAXCONN) != 0) return failed("listen");
  return socket;
}

// A socket that connects to a port of this machine where no process listens may be given that very port.
bool IsConnectedToItself(int socket) {
  sockaddr_storage own = {}, other = {};
  socklen_t own_size = sizeof(own), other_size = sizeof(other);
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&other), &other_size) == 0 && own_size == other_size &&
         std::memcmp(&own, &other, own_size) == 0;
}

}  // namespace

Connection::Connection(FileDescriptor socket) : socket_(std::move(socket)) { NoDelay(socket_.get()); }

void Connection::Queue(MessageType type, absl::string_view payload) {
  const auto size = static_cast<uint32_t>(payload.size() + 1);
  for (int i = 0; i < 4; ++i) output_.push_back(static_cast<char>(size >> (8 * i) & 0xff));
  output_.push_back(static_cast<char>(type));
  output_.append(payload.data(), payload.size());
}

absl::Status Connection::Flush() {
  size_t sent = 0;
  absl::Status status;
  while (sent < output_.size()) {
    const ssize_t now = ::send(socket_.get(), output_.data() + sent, output_.size() - sent, MSG_NOSIGNAL);
    if (now >= 0) {
      sent += static_cast<size_t>(now);
    } else if (errno != EINTR) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) status = ErrnoStatus("send");
      break;
    }
  }
  output_.erase(0, sent);
  return status;
}

absl::Status Connection::Fill() {
  char buffer[16384];
  input_.erase(0, std::exchange(consumed_, 0));
  // Takes little at a time, so that a flood of one side keeps neither others nor deadlines waiting.
  for (size_t taken = 0; taken < kMostAtOnce;) {
    const ssize_t now = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
    if (now == 0) return absl::UnavailableError("the connection was closed");
    if (now < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return absl::OkStatus();
      return ErrnoStatus("receive");
    }
    input_.append(buffer, static_cast<size_t>(now));
    taken += static_cast<size_t>(now);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Message>> Connection::Next() {
  const absl::string_view rest = absl::string_view(input_).substr(consumed_);
  if (rest.size() < 4) return std::nullopt;
  uint32_t size = 0;
  for (int i = 0; i < 4; ++i) size |= static_cast<uint32_t>(static_cast<uint8_t>(rest[i])) << (8 * i);
  if (size == 0 || size > limit_) return absl::InvalidArgumentError("bytes that are no message");
  if (rest.size() < 4 + static_cast<size_t>(size)) return std::nullopt;
  consumed_ += 4 + static_cast<size_t>(size);
  return Message{static_cast<MessageType>(rest[4]), std::string(rest.substr(kHeader, size - 1))};
}

std::string NumericAddress(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  if (::getnameinfo(address, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

std::string LocalAddressOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  std::string text = NumericAddress(reinterpret_cast<sockaddr*>(&address), size);
  // An IPv4 connection to a socket for both.
  if (absl::StartsWith(text, "::ffff:")) text = text.substr(7);
  return text;
}

bool IsLoopbackAddress(absl::string_view address) { return absl::StartsWith(address, "127.") || address == "::1"; }

bool MeansLoopback(const std::string& host) { return host == "localhost" || IsLoopbackAddress(host); }

absl::StatusOr<FileDescriptor> ListenEverywhere(int port) {
  sockaddr_in6 six = {};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_any;
  six.sin6_port = htons(static_cast<uint16_t>(port));
  int error = 0;
  absl::StatusOr<FileDescriptor> socket = ListenAt(AF_INET6, reinterpret_cast<sockaddr*>(&six), sizeof(six), error);
  if (socket.ok() || (error != EAFNOSUPPORT && error != EADDRNOTAVAIL)) return socket;
  sockaddr_in four = {};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_ANY);
  four.sin_port = six.sin6_port;
  return ListenAt(AF_INET, reinterpret_cast<sockaddr*>(&four), sizeof(four), error);
}

absl::StatusOr<FileDescriptor> Listen(const std::string& host, int port) {
  BOWLINE_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(host, port));
  const bool means_loopback = MeansLoopback(host);
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    // Many a machine resolves its own name to 127.0.1.1.
    if (!means_loopback && IsLoopbackAddress(NumericAddress(a->ai_addr, a->ai_addrlen))) continue;
    int error = 0;
    absl::StatusOr<FileDescriptor> socket = ListenAt(a->ai_family, a->ai_addr, a->ai_addrlen, error);
    if (socket.ok() || (error != EADDRNOTAVAIL && error != EAFNOSUPPORT)) return socket;
  }
  if (means_loopback) return absl::UnavailableError(absl::StrCat("'", host, "' is no address of this machine"));
  return ListenEverywhere(port);
}

absl::StatusOr<int> PortOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return ErrnoStatus("getsockname");
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

absl::StatusOr<FileDescriptor> ConnectTo(const std::string& host, int port,
                                         std::chrono::steady_clock::time_point deadline) {
  BOWLINE_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(host, port));
  absl::Status failure = absl::UnavailableError("no address");
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    FileDescriptor socket(::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.valid()) {
      failure = ErrnoStatus("socket");
      continue;
    }
    int error = ::connect(socket.get(), a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR) {
      if (!WaitForSocket(socket.get(), true, deadline)) {
        failure = absl::DeadlineExceededError("no answer");
        continue;
      }
      socklen_t size = sizeof(error);
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0 && IsConnectedToItself(socket.get())) error = ECONNREFUSED;
    if (error == 0) return socket;
    errno = error;
    failure = ErrnoStatus("connect");
  }
  return failure;
}

bool WaitForSocket(int socket, bool to_write, std::chrono::steady_clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd descriptor = {socket, static_cast<short>(to_write ? POLLOUT : POLLIN), 0};
    const int wait = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
    const int ready = ::poll(&descriptor, 1, wait);
    if (ready > 0) return true;
    if (ready == 0 && left.count() <= wait) return false;
  }
}

}  // namespace bowline
