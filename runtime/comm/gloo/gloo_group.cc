#include "runtime/comm/gloo/gloo_group.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/comm/gloo/gloo_endpoint.h"

namespace bowline {
namespace {

constexpr absl::string_view kGaveUp = " gave up";

std::string WhereThisIs() {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  return absl::StrCat("host ", host, ", pid ", ::getpid());
}

// Leaves handlers as they are. Gloo expects an error of a write to a closed connection, not the end of the process.
void IgnoreBrokenPipes() {
  struct sigaction action = {};
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
    action.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &action, nullptr);
  }
}

absl::Status CheckOptions(const GlooOptions& options) {
  if (options.ranks < 1 || options.ranks > GlooGroup::kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group of ", options.ranks, " ranks; it takes 1 to ", GlooGroup::kMaxRanks));
  }
  if (options.rank < 0 || options.rank >= options.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", options.rank, " of ", options.ranks, "; ranks are 0 to ", options.ranks - 1));
  }
  const std::pair<const char*, std::chrono::nanoseconds> times[] = {
      {"timeout", options.timeout}, {"timeout of the rendezvous", options.rendezvous_timeout}};
  const auto seconds = [](std::chrono::nanoseconds t) { return std::chrono::duration<double>(t).count(); };
  for (const auto& [what, time] : times) {
    if (time < GlooGroup::kMinTimeout || time > std::chrono::hours(24 * 365)) {
      return absl::InvalidArgumentError(absl::StrCat("a ", what, " of ", seconds(time), " s; it must be from ",
                                                     seconds(GlooGroup::kMinTimeout), " s to a year"));
    }
  }
  if (options.ranks > 1 && options.rendezvous.file.empty() == options.rendezvous.host.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.ranks, " ranks need either a file or an address to meet at"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GlooGroup>> GlooGroup::Create(const GlooOptions& options) {
  BOWLINE_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<GlooGroup> group(new GlooGroup(options));
  if (options.ranks > 1) BOWLINE_RETURN_IF_ERROR(group->Meet());
  return group;
}

absl::Status GlooGroup::Meet() {
  IgnoreBrokenPipes();
  const ControlTiming timing = {options_.timeout};
  const Clock::time_point deadline = Clock::now() + options_.rendezvous_timeout;
  Hello hello;
  hello.rank = options_.rank;
  hello.ranks = options_.ranks;
  hello.where = WhereThisIs();
  if (options_.rank == 0) {
    FileDescriptor listener(options_.listener);
    if (!listener.valid()) {
      BOWLINE_ASSIGN_OR_RETURN(listener, ListenForRanks(options_.rendezvous, options_.address, hello));
    }
    token_ = hello.token;
    BOWLINE_ASSIGN_OR_RETURN(hub_, Hub::Start(std::move(listener), {options_.ranks, options_.rendezvous.job, token_,
                                                                    timing, options_.rendezvous_timeout}));
  }
  BOWLINE_ASSIGN_OR_RETURN(Connection connection, ConnectToHub(options_.rendezvous, hello, deadline));
  BOWLINE_ASSIGN_OR_RETURN(client_, ControlClient::Join(std::move(connection), hello, timing, deadline));
  client_->Start(this);
  absl::StatusOr<std::shared_ptr<gloo::transport::Device>> device =
      CreateGlooDevice(options_.address.empty() ? client_->address() : options_.address);
  if (!device.ok()) {
    Abort(device.status());
    return device.status();
  }
  device_ = std::move(*device);
  return absl::OkStatus();
}

GlooGroup::~GlooGroup() {
  if (client_ != nullptr && client_->status().ok()) client_->Leave().IgnoreError();
  // Its thread looks at the channels.
  client_.reset();
  // Only the rank that wrote the rendezvous file has a token.
  if (!token_.empty()) RemoveRendezvousFile(options_.rendezvous, token_);
}

absl::StatusOr<std::unique_ptr<hal::Exchange>> GlooGroup::CreateExchange(absl::string_view name,
                                                                         absl::Span<const int> members,
                                                                         const LinkOptions& link) {
  BOWLINE_RETURN_IF_ERROR(CheckMembers(options_.rank, options_.ranks, name, members));
  BOWLINE_RETURN_IF_ERROR(status());
  const auto self = static_cast<int>(std::find(members.begin(), members.end(), options_.rank) - members.begin());
  auto channel = std::make_shared<GlooChannel>(static_cast<GlooOwner&>(*this), std::string(name),
                                               std::vector<int>(members.begin(), members.end()), self, link);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& other : channels_) {
      if (other->name() != name) continue;
      return absl::InvalidArgumentError(absl::StrCat("rank ", options_.rank, " has communicator '", name, "' already"));
    }
    channels_.push_back(channel);
  }
  // Without a break the others would wait for this rank.
  if (absl::Status status = channel->Connect(device_); !status.ok()) return Break(status);
  return std::make_unique<GlooEndpoint>(std::move(channel));
}

absl::Status GlooGroup::status() const {
  if (client_ != nullptr) return client_->status();
  const std::lock_guard<std::mutex> lock(mutex_);
  return broken_;
}

void GlooGroup::Abort(absl::Status why) {
  if (why.ok()) return;
  if (client_ != nullptr) why = Annotate(why, absl::StrCat("rank ", options_.rank, kGaveUp));
  Break(why).IgnoreError();
}

absl::Status GlooGroup::Break(const absl::Status& why) {
  if (client_ != nullptr) return client_->Break(why);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (broken_.ok()) broken_ = why;
  return broken_;
}

absl::Status GlooGroup::Fail(const Complaint& complaint) {
  // With one rank, no other rank can be the cause.
  return client_ == nullptr ? Break(absl::UnavailableError(complaint.failure)) : client_->Fail(complaint);
}

Clock::time_point GlooGroup::Now() const { return client_ == nullptr ? Clock::now() : client_->Now(); }

void GlooGroup::Put(const std::string& key, const std::string& value) { client_->Put(key, value); }

std::optional<std::string> GlooGroup::Take(const std::string& key) { return client_->Take(key); }

std::vector<Activity> GlooGroup::Activities() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Activity> activities;
  for (const auto& channel : channels_) activities.push_back(channel->Describe());
  return activities;
}

std::optional<Complaint> GlooGroup::Overdue(Clock::time_point now) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& channel : channels_) {
    if (channel->Elapsed(now) < options_.timeout) continue;
    Complaint complaint;
    complaint.activity = channel->Describe();
    complaint.waited_seconds = std::chrono::duration<double>(options_.timeout).count();
    if (!complaint.activity.idle()) return complaint;
  }
  return std::nullopt;
}

void GlooGroup::BreakOff() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& channel : channels_) channel->Interrupt();
}

bool RankGaveUp(const absl::Status& status) {
  absl::string_view text = status.message();
  if (!absl::ConsumePrefix(&text, "rank ")) return false;
  text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
  return absl::StartsWith(text, kGaveUp);
}

}  // namespace bowline
