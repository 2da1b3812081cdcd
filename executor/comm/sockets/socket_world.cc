#include "executor/comm/sockets/socket_world.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "executor/comm/sockets/process_group.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

/// Can be read once the run has failed.
class AbortEvent {
 public:
  explicit AbortEvent(AbortSignal& abort)
      : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        watch_(abort.on_raise([this] { ::eventfd_write(event_.number(), 1); })) {}
  int number() const { return event_.number(); }

 private:
  FileDescriptor event_;
  std::shared_ptr<void> watch_;
};

using Lines = std::vector<FileDescriptor>;

class SocketPeers : public ProcessPeers {
 public:
  SocketPeers(std::shared_ptr<Lines> lines, const AbortEvent& raised,
              const std::vector<std::int64_t>& ranks, const Patience& patience)
      : ProcessPeers(ranks, patience), lines_(std::move(lines)), raised_(raised) {}

  void transfer(const char* what, const Transfers& transfers) override {
    Transfers left = transfers;
    const Deadline until = in_seconds(patience().seconds);
    while (move_some(left)) {
      patience().abort->check();
      if (wait(left, until) || Deadline::clock::now() < until) continue;
      give_up(what, unfinished(left));
    }
  }

 private:
  /// What the kernel takes and has. \returns whether anything is left to do
  bool move_some(Transfers& left) {
    bool busy = false;
    for (std::size_t r = 0; r < lines_->size(); ++r) {
      const int line = (*lines_)[r].number();
      std::span<const std::byte>& out = left.sent[r];
      while (!out.empty()) {
        const ssize_t count = ::send(line, out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (!moved(count)) break;
        out = out.subspan(static_cast<std::size_t>(count));
      }
      std::span<std::byte>& in = left.received[r];
      while (!in.empty()) {
        const ssize_t count = ::recv(line, in.data(), in.size(), MSG_DONTWAIT);
        if (count == 0) other_ended();
        if (!moved(count)) break;
        in = in.subspan(static_cast<std::size_t>(count));
      }
      busy = busy || !out.empty() || !in.empty();
    }
    return busy;
  }
  bool moved(ssize_t count) const {
    if (count < 0 && errno != EAGAIN && errno != EINTR) other_ended();
    return count > 0;
  }
  /// Who looks after the processes knows more of it than that a connection is closed.
  [[noreturn]] void other_ended() const { throw Aborted("another rank ended"); }

  /// \returns whether something can be moved, or the run has failed
  bool wait(const Transfers& left, Deadline until) {
    waited_.assign(1, {raised_.number(), POLLIN, 0});
    for (std::size_t r = 0; r < lines_->size(); ++r) {
      const int events =
          (left.sent[r].empty() ? 0 : POLLOUT) | (left.received[r].empty() ? 0 : POLLIN);
      if (events != 0) waited_.push_back({(*lines_)[r].number(), static_cast<short>(events), 0});
    }
    return ::poll(waited_.data(), waited_.size(), left_ms(until)) > 0;
  }

  static std::vector<std::size_t> unfinished(const Transfers& left) {
    std::vector<std::size_t> found;
    for (std::size_t r = 0; r < left.sent.size(); ++r) {
      if (!left.sent[r].empty() || !left.received[r].empty()) found.push_back(r);
    }
    return found;
  }

  std::shared_ptr<Lines> lines_;
  const AbortEvent& raised_;
  std::vector<pollfd> waited_;
};

class SocketWorld : public World {
 public:
  SocketWorld(SocketHub& hub, const Patience& patience)
      : hub_(hub), patience_(patience), raised_(*patience.abort) {}
  int rank() const override { return patience_.rank; }
  int size() const override { return static_cast<int>(hub_.members().size()); }
  CommunicatorTraits traits() const override { return kAllTraits; }

  std::unique_ptr<ControlGroup> control_group(const std::vector<std::int64_t>& ranks,
                                              Control control) override {
    return std::make_unique<ProcessControlGroup>(peers(ranks, control));
  }
  std::unique_ptr<Communicator> communicator(const std::vector<std::int64_t>& ranks,
                                             Stream stream) override {
    return std::make_unique<ProcessCommunicator>(peers(ranks, stream));
  }

 private:
  std::unique_ptr<SocketPeers> peers(const std::vector<std::int64_t>& ranks, Channel channel) {
    std::shared_ptr<Lines>& lines = lines_[{ranks, channel}];
    if (!lines) lines = std::make_shared<Lines>(hub_.join(ranks, channel, patience_));
    return std::make_unique<SocketPeers>(lines, raised_, ranks, patience_);
  }

  SocketHub& hub_;
  Patience patience_;
  AbortEvent raised_;
  std::map<std::pair<std::vector<std::int64_t>, Channel>, std::shared_ptr<Lines>> lines_;
};

}  // namespace

SocketJob::SocketJob(const Rendezvous& rendezvous, int rank, int size, double patience_s)
    : rank_(rank) {
  Met met = meet(rendezvous, rank, size, hub_, patience_s);
  hub_.know(rank, std::move(met.members), met.key);
}

std::unique_ptr<World> SocketJob::world(AbortSignal& abort, double patience_s) {
  return std::make_unique<SocketWorld>(hub_, Patience{&abort, patience_s, rank_});
}

void SocketJob::end(int exit_code) { std::_Exit(exit_code); }

}  // namespace shardwise::exec
