#include "executor/comm/sockets/socket_hub.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "executor/kernels/start_thread.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

constexpr double kConnect = 2;  // seconds for an address to answer, and to prove the key
constexpr std::chrono::milliseconds kConnectAgain{20};
constexpr std::chrono::milliseconds kArrivalLook{100};

/// Local sockets have the same names where kernel and network are the same.
std::string this_machine() {
  std::string where;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> where;
  std::array<char, 64> name{};
  if (::readlink("/proc/self/ns/net", name.data(), name.size() - 1) > 0) where += name.data();
  return where;
}

std::string local_name(const Member& member) {
  return fmt::format("shardwise-{:016x}{:016x}", member.name[0], member.name[1]);
}

/// FNV-1a. Source: http://www.isthe.com/chongo/tech/comp/fnv/.
std::uint64_t hash_of(const std::vector<std::int64_t>& ranks) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::int64_t rank : ranks) {
    for (const std::byte each : std::as_bytes(std::span(&rank, 1))) {
      hash = (hash ^ std::to_integer<std::uint64_t>(each)) * 1099511628211U;
    }
  }
  return hash;
}

}  // namespace

SocketHub::SocketHub() {
  const Digest drawn = draw_digest();
  std::memcpy(own_.name.data(), drawn.data(), sizeof(own_.name));
  copy_text(this_machine(), own_.machine);
  ::gethostname(own_.host.data(), own_.host.size() - 1);
  own_.process = ::getpid();
  std::optional<FileDescriptor> local = listen_local(local_name(own_));
  if (!local) throw IoError("this process can listen on no local socket");
  listening_.push_back(*std::move(local));
}

SocketHub::~SocketHub() {
  closing_ = true;
  // Ends the wait for those that come.
  for (const FileDescriptor& each : listening_) ::shutdown(each.number(), SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
}

void SocketHub::listen_on(const std::vector<std::string>& addresses) {
  if (addresses.empty() || own_.port != 0) return;
  std::size_t ways = 0;
  for (const std::string& address : addresses) {
    if (ways == own_.addresses.size()) break;
    std::optional<FileDescriptor> tcp = listen_tcp(address, own_.port);
    if (!tcp) continue;
    own_.port = port_of(*tcp);
    listening_.push_back(*std::move(tcp));
    copy_text(address, own_.addresses[ways++]);
  }
  if (ways == 0)
    throw IoError(fmt::format("this process can listen on no port of {}", addresses[0]));
}

void SocketHub::know(int rank, std::vector<Member> members, const Digest& key) {
  members_ = std::move(members);
  key_ = key;
  const Door::Rules rules = {Purpose::group, rank, static_cast<int>(members_.size()), key};
  thread_ = start_thread("the thread that takes connections",
                         [this, &rules] { return std::thread([this, rules] { serve(rules); }); });
}

void SocketHub::serve(const Door::Rules& rules) {
  Door door(rules);
  while (!closing_) {
    std::vector<Door::Guest> guests = door.admit(listening_, in_seconds(1));
    if (guests.empty()) continue;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (Door::Guest& each : guests) {
        const Key key = {each.hello.group, each.hello.channel, each.hello.from};
        came_.insert_or_assign(key, std::move(each.line));
      }
    }
    arrived_.notify_all();
  }
}

std::optional<FileDescriptor> SocketHub::try_to_reach(const Hello& hello,
                                                      const Member& other) const {
  const auto greeted = [&](std::optional<FileDescriptor> line) {
    const bool proved = line && greet(*line, hello, key_, in_seconds(kConnect));
    return proved ? std::move(line) : std::nullopt;
  };
  if (own_.same_machine(other)) return greeted(connect_local(local_name(other)));
  for (const std::array<char, 64>& address : other.addresses) {
    if (address.front() == '\0') continue;
    auto line = greeted(connect_tcp(address.data(), other.port, in_seconds(kConnect)));
    if (line) return line;
  }
  return std::nullopt;
}

FileDescriptor SocketHub::reach(Hello hello, const Patience& patience) const {
  const Member& other = members_[static_cast<std::size_t>(hello.to)];
  const Deadline until = in_seconds(patience.seconds);
  for (;;) {
    hello.nonce = draw_digest();
    std::optional<FileDescriptor> line = try_to_reach(hello, other);
    if (line) return *std::move(line);
    patience.abort->check();
    if (Deadline::clock::now() > until) {
      patience.abort->raise_hung(fmt::format("rank {} could not reach rank {} on {} for {} s",
                                             patience.rank, hello.to, other.host.data(),
                                             patience.seconds));
    }
    std::this_thread::sleep_for(kConnectAgain);
  }
}

FileDescriptor SocketHub::await(const Key& from, const Patience& patience) {
  const Deadline until = in_seconds(patience.seconds);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    const auto found = came_.find(from);
    if (found != came_.end()) {
      FileDescriptor line = std::move(found->second);
      came_.erase(found);
      return line;
    }
    arrived_.wait_for(lock, kArrivalLook);
    patience.abort->check();
    if (Deadline::clock::now() > until) {
      patience.abort->raise_hung(fmt::format("rank {} waited {} s for rank {} to join a group",
                                             patience.rank, patience.seconds, std::get<2>(from)));
    }
  }
}

std::vector<FileDescriptor> SocketHub::join(const std::vector<std::int64_t>& ranks, Channel channel,
                                            const Patience& patience) {
  Hello hello;
  hello.purpose = Purpose::group;
  hello.from = patience.rank;
  hello.size = static_cast<std::int32_t>(members_.size());
  hello.channel = channel.number();
  hello.group = hash_of(ranks);
  std::vector<FileDescriptor> lines(ranks.size());
  // Who connects need not wait for who joins, so all connect first.
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    hello.to = static_cast<std::int32_t>(ranks[i]);
    if (hello.to < patience.rank) lines[i] = reach(hello, patience);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(ranks[i]);
    if (rank > patience.rank) lines[i] = await({hello.group, hello.channel, rank}, patience);
  }
  return lines;
}

void SocketHub::end_silent(int rank) const {
  Hello hello;
  hello.purpose = Purpose::group;
  hello.from = rank;
  hello.size = static_cast<std::int32_t>(members_.size());
  for (hello.to = 0; hello.to < hello.size; ++hello.to) {
    const Member& other = members_[static_cast<std::size_t>(hello.to)];
    if (hello.to == rank || !own_.same_machine(other)) continue;
    // The kernel takes the connection in the place of a process that is stopped.
    const std::optional<FileDescriptor> line = connect_local(local_name(other));
    hello.nonce = draw_digest();
    if (!line || answers(*line, hello, key_, in_seconds(kConnect))) continue;
    end_unless_closed(*line, in_seconds(0));
  }
}

}  // namespace shardwise::exec
