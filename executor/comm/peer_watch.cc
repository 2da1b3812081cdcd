#include "executor/comm/peer_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "planner/spec/error.h"

namespace shardwise::exec {
namespace {

constexpr int kPeers = 104;  // number of the group that exchanges them
constexpr std::chrono::milliseconds kLauncherFirst{1000};
constexpr std::chrono::milliseconds kTurn{200};

/// A rank's process. Numbers of processes mean the same where kernel and name space are the same.
struct Process {
  std::array<char, 128> where{};
  pid_t number = 0;
};

Process own_process() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", space.data(), space.size() - 1);
  const std::string where =
      boot + " " + std::string(space.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  Process own;
  std::copy_n(where.data(), std::min(where.size(), own.where.size()), own.where.data());
  own.number = ::getpid();
  return own;
}

std::vector<Process> all_processes(World& world, const Process& own) {
  std::vector<Process> all(static_cast<std::size_t>(world.size()));
  std::vector<std::int64_t> ranks(all.size());
  std::iota(ranks.begin(), ranks.end(), std::int64_t{0});
  world.group(ranks, kPeers)
      ->exchange(std::as_bytes(std::span<const Process>(&own, 1)),
                 std::as_writable_bytes(std::span<Process>(all)));
  return all;
}

}  // namespace

PeerWatch::PeerWatch(World& world, AbortSignal& abort) : rank_(world.rank()), abort_(abort) {
  const Process own = own_process();
  const std::vector<Process> all = all_processes(world, own);
  for (int rank = 0; rank < world.size(); ++rank) {
    const Process& each = all[static_cast<std::size_t>(rank)];
    if (rank == rank_ || each.where != own.where) continue;
    FileDescriptor ends(static_cast<int>(::syscall(SYS_pidfd_open, each.number, 0)));
    if (ends.is_open()) peers_.push_back({rank, each.number, std::move(ends)});
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw IoError("no pipe can be made");
  closed_ = FileDescriptor(ends[0]);
  closing_ = FileDescriptor(ends[1]);
  thread_ = std::thread([this] { watch(); });
}

PeerWatch::~PeerWatch() {
  closing_.close();
  thread_.join();
}

void PeerWatch::watch() {
  std::vector<pollfd> waited = {{closed_.number(), POLLIN, 0}};
  for (const Peer& peer : peers_) waited.push_back({peer.ends.number(), POLLIN, 0});
  while (::poll(waited.data(), waited.size(), -1) < 0) {
  }
  if (waited.front().revents != 0) return;
  const auto gone = std::find_if(waited.begin() + 1, waited.end(),
                                 [](const pollfd& each) { return each.revents != 0; });
  const Peer& peer = peers_[static_cast<std::size_t>(gone - waited.begin() - 1)];
  // A launcher that notices ends this process meanwhile. Else the lowest rank that is left says so
  // and ends the others; who comes after it waits its turn.
  const auto before = std::ranges::count_if(
      peers_, [&](const Peer& each) { return each.rank < rank_ && each.rank != peer.rank; });
  const auto turn = kLauncherFirst + kTurn * std::min<std::ptrdiff_t>(before, 5);
  waited.resize(1);
  if (::poll(waited.data(), 1, static_cast<int>(turn.count())) > 0) return;
  abort_.raise(fmt::format("rank {} is gone: its process {} ended", peer.rank, peer.process));
}

}  // namespace shardwise::exec
