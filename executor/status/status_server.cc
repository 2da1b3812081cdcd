#include "executor/status/status_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "executor/kernels/start_thread.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

using std::chrono::milliseconds;

constexpr double kServed = 5;               // seconds for a client to take its text
constexpr milliseconds kFresh{200};         // a text is sent to those that come later
constexpr int kMostAccepted = 16;           // at once
constexpr milliseconds kBetweenFloods{50};  // where more came
constexpr int kClientLook = 50;             // ms

}  // namespace

StatusServer::StatusServer(const std::string& name, std::function<std::string()> answer)
    : answer_(std::move(answer)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  std::optional<FileDescriptor> listening = listen_local(name);
  if (!listening) throw IoError(fmt::format("this process cannot listen as {}", name));
  listening_ = *std::move(listening);
  thread_ = start_thread("the thread that answers shardwise-run status",
                         [this] { return std::thread([this] { serve(); }); });
}

StatusServer::~StatusServer() {
  closing_ = true;
  ::eventfd_write(wake_.number(), 1);
  thread_.join();
}

void StatusServer::serve() {
  while (!closing_) {
    std::vector<pollfd> waited = {{wake_.number(), POLLIN, 0}};
    const bool room = clients_.size() < kMostClients;
    waited.push_back({room ? listening_.number() : -1, POLLIN, 0});
    for (const Client& each : clients_) waited.push_back({each.line.number(), POLLOUT, 0});
    ::poll(waited.data(), waited.size(), clients_.empty() ? -1 : kClientLook);
    if (closing_) return;
    const bool flooded = room && accept_some();
    make_text();
    std::erase_if(clients_, [](Client& each) { return !send_some(each); });
    if (!flooded) continue;
    pollfd end = {wake_.number(), POLLIN, 0};
    ::poll(&end, 1, static_cast<int>(kBetweenFloods.count()));
  }
}

/// \returns whether there may be more
bool StatusServer::accept_some() {
  for (int i = 0; i < kMostAccepted; ++i) {
    std::optional<FileDescriptor> line = accept_now(listening_);
    // Without a file descriptor the connection stays, and poll(2) would name it again at once.
    if (!line) return errno == EMFILE || errno == ENFILE;
    const Peer peer = peer_of(*line);
    if (peer.process <= 0 || (peer.user != ::geteuid() && peer.user != 0)) continue;
    clients_.push_back({*std::move(line), in_seconds(kServed), nullptr, 0});
    if (clients_.size() == kMostClients) return true;  // others wait to be taken
  }
  return true;
}

void StatusServer::make_text() {
  for (Client& each : clients_) {
    if (each.text) continue;
    if (!text_ || Clock::now() - made_at_ >= kFresh) {
      text_ = std::make_shared<const std::string>(answer_());
      made_at_ = Clock::now();
    }
    each.text = text_;
  }
}

/// \returns whether anything is left to send
bool StatusServer::send_some(Client& client) {
  while (client.sent < client.text->size()) {
    const std::string_view left = std::string_view(*client.text).substr(client.sent);
    const ssize_t count =
        ::send(client.line.number(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) client.sent += static_cast<std::size_t>(count);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return Deadline::clock::now() < client.until;
    if (count <= 0) return false;
  }
  return false;
}

}  // namespace shardwise::exec
