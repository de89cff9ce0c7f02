#ifndef BOWLINE_TEST_UNIT_SERVE_HTTP_CLIENT_H_
#define BOWLINE_TEST_UNIT_SERVE_HTTP_CLIENT_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace bowline::serve {

// A connection to a server of this machine, with the transferred bytes as text.
class HttpClient {
 public:
  explicit HttpClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~HttpClient() { Close(); }

  void Close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  // Whether the server takes all; it may have closed the connection.
  bool Send(const std::string& text) {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Until the server has closed the connection.
  void SendUntilClosed() {
    while (::send(socket_, "x", 1, MSG_NOSIGNAL) == 1) std::this_thread::yield();
  }
  void SendPost(const std::string& path, const std::string& body, const std::string& headers = "") {
    Send(absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(), "\r\n", headers, "\r\n",
                      body));
  }
  void SendGet(const std::string& path, const std::string& headers = "") {
    Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n", headers, "\r\n"));
  }

  // All up to and with `end`, or to the end of the connection.
  std::string ReadTo(const std::string& end) {
    std::string text;
    while (text.size() < end.size() || text.compare(text.size() - end.size(), end.size(), end) != 0) {
      char byte;
      if (::recv(socket_, &byte, 1, 0) != 1) break;
      text.push_back(byte);
    }
    return text;
  }
  std::string ReadAll() { return ReadTo(std::string(1, '\0')); }
  // A reply that says its length.
  std::string ReadReply() {
    std::string text = ReadTo("\r\n\r\n");
    const size_t at = text.find("Content-Length: ");
    if (at == std::string::npos) return text;
    for (size_t left = std::stoul(text.substr(at + 16)); left > 0; --left) {
      char byte;
      if (::recv(socket_, &byte, 1, 0) != 1) break;
      text.push_back(byte);
    }
    return text;
  }

 private:
  int socket_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_TEST_UNIT_SERVE_HTTP_CLIENT_H_
