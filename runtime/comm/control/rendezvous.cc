#include "runtime/comm/control/rendezvous.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/atomic_file.h"

namespace bowline {
namespace {

// The first line of the file that rank 0 writes; the next lines are address, port and token. Other versions of it begin
// alike.
constexpr absl::string_view kFileHeader = "bowline rendezvous 2\n", kAnyFileHeader = "bowline rendezvous ";
constexpr std::chrono::milliseconds kFirstPause{2}, kLongestPause{200};
// The time that one candidate has to say that it is the hub; the shorter one holds where there may be many candidates.
constexpr auto kAttempt = std::chrono::seconds(5);
constexpr auto kAttemptAmongMany = std::chrono::seconds(1);
// The time that the hub has to notice that the process died in whose place this one was started.
constexpr auto kSuccession = std::chrono::seconds(1);

std::string FirstAddressOfThisMachine() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "127.0.0.1";
  std::string found = "127.0.0.1";
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    if ((i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
    found = NumericAddress(i->ifa_addr, sizeof(sockaddr_in));
    break;
  }
  ::freeifaddrs(list);
  return found;
}

// Another run's hub may later have the address that a file names, but not the file's token.
std::string NewToken() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

struct Candidate {
  std::string host;
  int port = 0;
  std::string token;
};

// The candidate of a file that a rank 0 wrote; nothing where there is no file, an empty one, or one of a rank 0 that
// says no address. kInvalidArgument for any other file, which belongs to another program.
absl::StatusOr<std::optional<Candidate>> ReadFile(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) {
    if (errno == ENOENT) return std::nullopt;
    return ErrnoToStatus(errno, absl::StrCat("cannot open '", path, "'"));
  }
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("cannot examine '", path, "'"));
  std::string text(4096, '\0');
  const ssize_t count = S_ISREG(info.st_mode) ? ::read(file.get(), text.data(), text.size()) : 0;
  if (count < 0) return ErrnoToStatus(errno, absl::StrCat("cannot read '", path, "'"));
  text.resize(static_cast<size_t>(count));
  absl::string_view rest = text;
  if (!S_ISREG(info.st_mode) || (!text.empty() && !absl::StartsWith(text, kAnyFileHeader))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path, "' ", S_ISDIR(info.st_mode) ? "is a directory" : "exists and is no file of a rendezvous",
        ", and it stays as it is; name a file that does not exist, which rank 0 makes"));
  }
  if (!absl::ConsumePrefix(&rest, kFileHeader)) return std::nullopt;
  const std::vector<std::string> lines = absl::StrSplit(rest, '\n');
  int port = 0;
  if (lines.size() != 4 || !absl::SimpleAtoi(lines[1], &port) || port < 1 || port > 65535) return std::nullopt;
  return Candidate{lines[0], port, lines[2]};
}

absl::StatusOr<std::vector<Candidate>> CandidatesOf(const Rendezvous& rendezvous) {
  std::vector<Candidate> candidates;
  if (!rendezvous.file.empty()) {
    BOWLINE_ASSIGN_OR_RETURN(std::optional<Candidate> written, ReadFile(rendezvous.file));
    if (written.has_value()) candidates.push_back(std::move(*written));
    return candidates;
  }
  for (int i = 0; i < rendezvous.ports; ++i) candidates.push_back({rendezvous.host, rendezvous.port + i, ""});
  return candidates;
}

// Removes a file of a rank 0 if its contents are still `known`; another that took its place meanwhile stays.
absl::Status RemoveFile(const std::string& path, const std::optional<Candidate>& known) {
  const std::string aside = TemporarySiblingOf(path);
  if (::rename(path.c_str(), aside.c_str()) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ErrnoToStatus(errno, path);
  }
  const absl::StatusOr<std::optional<Candidate>> found = ReadFile(aside);
  const bool is_known = found.ok() && (!found->has_value() || (known.has_value() && (**found).token == known->token));
  if (!is_known && ::link(aside.c_str(), path.c_str()) != 0 && !found.ok()) {
    return absl::InternalError(absl::StrCat("'", path, "' was moved to '", aside,
                                            "' while another rank 0 took its place; move it where it belongs"));
  }
  ::unlink(aside.c_str());
  return found.status();
}

// The result of asking a candidate whether it is the hub.
struct Attempt {
  Connection connection;  // open when it is the hub and has accepted
  absl::Status failure;
  std::optional<RejectReason> rejected;
};

Attempt Try(const Candidate& candidate, MessageType type, Hello hello, Clock::time_point deadline) {
  Attempt attempt;
  hello.token = candidate.token;
  absl::StatusOr<FileDescriptor> socket = ConnectTo(candidate.host, candidate.port, deadline);
  if (!socket.ok()) {
    attempt.failure = socket.status();
    return attempt;
  }
  Connection connection(std::move(*socket));
  connection.Queue(type, hello.Encode());
  connection.set_limit(Connection::kMaxMessage);
  while (true) {
    if (attempt.failure = connection.Flush(); !attempt.failure.ok()) return attempt;
    const absl::Status filled = connection.Fill();
    absl::StatusOr<std::optional<Message>> message = connection.Next();
    if (!message.ok()) {
      attempt.failure = absl::UnavailableError("somebody else than rank 0 listens there");
      return attempt;
    }
    if (message->has_value() && (**message).type == MessageType::kAccepted) {
      attempt.connection = std::move(connection);
      return attempt;
    }
    if (message->has_value() && (**message).type == MessageType::kRejected) {
      WireReader reader((**message).payload);
      attempt.rejected = static_cast<RejectReason>(reader.U8());
      attempt.failure = reader.Status();
      return attempt;
    }
    if (!filled.ok()) {
      attempt.failure = filled;
      return attempt;
    }
    if (std::chrono::steady_clock::now() > deadline ||
        !WaitForSocket(connection.descriptor(), connection.has_output(), deadline)) {
      attempt.failure = absl::UnavailableError("the process that listens there does not answer as rank 0 would");
      return attempt;
    }
  }
}

absl::Status Refusal(const Rendezvous& rendezvous, const absl::Status& why) {
  return absl::Status(why.code(), absl::StrCat("rendezvous at ", rendezvous.ToString(), ": ", why.message(),
                                               rendezvous.file.empty() ? "" : ", and each run a file of its own"));
}

}  // namespace

std::string Rendezvous::ToString() const {
  if (!file.empty()) return absl::StrCat("file:", file);
  const bool is_ipv6 = host.find(':') != std::string::npos;
  const std::string address = absl::StrCat(is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", ":", port);
  return ports == 1 ? address : absl::StrCat(address, " to ", port + ports - 1);
}

absl::StatusOr<Rendezvous> ParseRendezvous(absl::string_view text) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("rendezvous '", text, "': ", why,
                                                   "; write file:PATH of a file that all ranks see, or HOST:PORT of "
                                                   "rank 0, such as node1:29500"));
  };
  Rendezvous rendezvous;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "file:")) {
    if (rest.empty()) return refuse("there is no path");
    rendezvous.file = std::string(rest);
    return rendezvous;
  }
  // As others write it.
  absl::ConsumePrefix(&rest, "tcp://");
  if (absl::StrContains(rest, "://")) return refuse("there is no such protocol");
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) return refuse("there is no port");
  absl::string_view host = rest.substr(0, colon);
  const bool bracketed = absl::ConsumePrefix(&host, "[");
  if (bracketed != absl::ConsumeSuffix(&host, "]")) return refuse("a bracket is not closed");
  if (host.empty()) return refuse("there is no host");
  if (!bracketed && host.find(':') != absl::string_view::npos) return refuse("an IPv6 address needs brackets");
  if (!absl::SimpleAtoi(rest.substr(colon + 1), &rendezvous.port) || rendezvous.port < 1 || rendezvous.port > 65535) {
    return refuse(absl::StrCat("'", rest.substr(colon + 1), "' is no port from 1 to 65535"));
  }
  rendezvous.host = std::string(host);
  return rendezvous;
}

absl::StatusOr<FileDescriptor> ListenForRanks(const Rendezvous& rendezvous, const std::string& address, Hello& hello) {
  if (rendezvous.file.empty()) {
    absl::Status failure;
    for (int i = 0; i < rendezvous.ports; ++i) {
      const int port = rendezvous.port + i;
      const bool everywhere = rendezvous.beyond_loopback && MeansLoopback(rendezvous.host);
      absl::StatusOr<FileDescriptor> listener = everywhere ? ListenEverywhere(port) : Listen(rendezvous.host, port);
      if (listener.ok()) return listener;
      failure = listener.status();
    }
    return absl::UnavailableError(absl::StrCat("rendezvous: rank 0 cannot listen at ", rendezvous.ToString(), ": ",
                                               failure.message(),
                                               absl::StrContains(failure.message(), "has no address")
                                                   ? "; give the name or address of the machine of rank 0"
                                                   : "; is another run there? Take another port, or a file"));
  }
  const std::string own = address.empty() ? FirstAddressOfThisMachine() : address;
  BOWLINE_ASSIGN_OR_RETURN(FileDescriptor listener, Listen(own, 0));
  BOWLINE_ASSIGN_OR_RETURN(const int port, PortOf(listener.get()));
  hello.job = rendezvous.job;
  hello.token = NewToken();
  while (true) {
    const absl::StatusOr<std::optional<Candidate>> read = ReadFile(rendezvous.file);
    if (!read.ok()) return Annotate(read.status(), "--rendezvous");
    const std::optional<Candidate>& earlier = *read;
    if (earlier.has_value()) {
      const Attempt attempt = Try(*earlier, MessageType::kProbe, hello, Clock::now() + kAttemptAmongMany);
      if (attempt.rejected == RejectReason::kWrong) return Refusal(rendezvous, attempt.failure);
    }
    BOWLINE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(rendezvous.file));
    BOWLINE_RETURN_IF_ERROR(file.Append(absl::StrCat(kFileHeader, own, "\n", port, "\n", hello.token, "\n")));
    // It would send the others to the wrong place.
    BOWLINE_RETURN_IF_ERROR(RemoveFile(rendezvous.file, earlier));
    absl::Status written = file.CommitNewUnsynced();
    if (written.ok()) return listener;
    // Somebody else was rank 0 at the same moment.
    if (!absl::IsAlreadyExists(written)) return written;
  }
}

absl::StatusOr<Connection> ConnectToHub(const Rendezvous& rendezvous, Hello hello, Clock::time_point deadline) {
  hello.job = rendezvous.job;
  const Clock::time_point begin = Clock::now();
  std::optional<Clock::time_point> twice_since;
  const auto patience = rendezvous.ports > 1 ? kAttemptAmongMany : kAttempt;
  std::chrono::milliseconds pause = kFirstPause;
  std::string failure = "rank 0 has not written it";
  absl::string_view advice = "see whether rank 0 was started, and whether this machine reaches it";
  while (true) {
    const absl::StatusOr<std::vector<Candidate>> candidates = CandidatesOf(rendezvous);
    if (absl::IsInvalidArgument(candidates.status())) return Annotate(candidates.status(), "--rendezvous");
    // A network's file system may show the file later.
    if (!candidates.ok()) failure = std::string(candidates.status().message());
    for (const Candidate& candidate : candidates.value_or(std::vector<Candidate>())) {
      if (!hello.token.empty() && candidate.token != hello.token) {
        return Refusal(rendezvous, absl::InvalidArgumentError("another process that is rank 0 has replaced the file; "
                                                              "give each a rank of its own"));
      }
      const Clock::time_point now = Clock::now();
      hello.patience = static_cast<uint64_t>(std::max<int64_t>(0, std::chrono::nanoseconds(deadline - now).count()));
      Attempt attempt = Try(candidate, MessageType::kHello, hello, std::min(deadline, now + patience));
      if (attempt.connection.open()) return std::move(attempt.connection);
      // Rank 0 of this run may still replace the file of one that broke.
      const bool twice = attempt.rejected == RejectReason::kTwice;
      if (twice && !twice_since.has_value()) twice_since = now;
      if ((twice && now - *twice_since >= kSuccession) || attempt.rejected == RejectReason::kWrong ||
          (attempt.rejected == RejectReason::kBroken && rendezvous.file.empty())) {
        return Refusal(rendezvous, attempt.failure);
      }
      failure = std::string(attempt.failure.message());
      if (!rendezvous.file.empty()) {
        failure = absl::StrCat("it names ", candidate.host, ":", candidate.port, ": ", failure);
        advice =
            "if a run that crashed left the file, start rank 0, which replaces it; otherwise see whether this machine "
            "reaches that address";
      }
    }
    if (Clock::now() + pause >= deadline) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("rendezvous: rank ", hello.rank, " did not find rank 0 at ", rendezvous.ToString(), " within ",
                   absl::StrFormat("%.3g", std::chrono::duration<double>(deadline - begin).count()), " s (", failure,
                   "); ", advice));
}

void RemoveRendezvousFile(const Rendezvous& rendezvous, const std::string& token) {
  const absl::StatusOr<std::optional<Candidate>> written = ReadFile(rendezvous.file);
  if (!written.ok() || !written->has_value() || (**written).token != token) return;
  RemoveFile(rendezvous.file, *written).IgnoreError();
}

}  // namespace bowline
