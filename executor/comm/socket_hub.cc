#include "executor/comm/socket_hub.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "planner/spec/error.h"

namespace shardwise::exec {
namespace {

constexpr double kConnect = 2;  // seconds for an address to answer
constexpr std::chrono::milliseconds kAgain{20};

template <std::size_t kSize>
void copy_text(const std::string& text, std::array<char, kSize>& to) {
  std::copy_n(text.data(), std::min(text.size(), kSize - 1), to.data());
}

/// Names of processes and sockets mean the same where kernel and name spaces are the same.
std::string this_machine() {
  std::string where;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> where;
  for (const char* const space : {"/proc/self/ns/net", "/proc/self/ns/pid"}) {
    std::array<char, 64> name{};
    if (::readlink(space, name.data(), name.size() - 1) > 0) where += name.data();
  }
  return where;
}

std::string local_name(const Member& member) {
  return fmt::format("shardwise-{:016x}{:016x}", member.token[0], member.token[1]);
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

SocketHub::SocketHub(bool this_host_only) {
  std::random_device random;
  for (std::uint64_t& each : own_.token) each = (std::uint64_t{random()} << 32) | random();
  copy_text(this_machine(), own_.machine);
  ::gethostname(own_.host.data(), own_.host.size() - 1);
  own_.process = ::getpid();
  std::optional<FileDescriptor> local = listen_local(local_name(own_));
  std::optional<FileDescriptor> tcp = listen_tcp(0, this_host_only);
  if (!local || !tcp) throw IoError("this process can listen on no socket");
  own_.port = port_of(*tcp);
  listening_.push_back(*std::move(local));
  listening_.push_back(*std::move(tcp));
  const std::vector<std::string> addresses = own_addresses();
  for (std::size_t i = 0; i < std::min(addresses.size(), own_.addresses.size()); ++i) {
    copy_text(addresses[i], own_.addresses[i]);
  }
}

std::optional<FileDescriptor> SocketHub::try_to_reach(const Hello& hello,
                                                      const Member& other) const {
  const auto greeted = [&](std::optional<FileDescriptor> line) {
    const bool sent =
        line && send_all(*line, std::as_bytes(std::span(&hello, 1)), in_seconds(kConnect));
    return sent ? std::move(line) : std::nullopt;
  };
  if (own_.same_machine(other)) return greeted(connect_local(local_name(other)));
  for (const std::array<char, 64>& address : other.addresses) {
    if (address.front() == '\0') continue;
    auto line = greeted(connect_tcp(address.data(), other.port, in_seconds(kConnect)));
    if (line) return line;
  }
  return std::nullopt;
}

FileDescriptor SocketHub::reach(const Hello& hello, int rank, const Patience& patience) const {
  const Member& other = members_[static_cast<std::size_t>(rank)];
  const Deadline until = in_seconds(patience.seconds);
  for (;;) {
    std::optional<FileDescriptor> line = try_to_reach(hello, other);
    if (line) return *std::move(line);
    patience.abort->check();
    if (Deadline::clock::now() > until) {
      patience.abort->raise_hung(fmt::format("rank {} could not reach rank {} on {} for {} s",
                                             patience.rank, rank, other.host.data(),
                                             patience.seconds));
    }
    std::this_thread::sleep_for(kAgain);
  }
}

FileDescriptor SocketHub::await(const Hello& from, const Patience& patience) {
  const Deadline until = in_seconds(patience.seconds);
  for (;;) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = came_.find(from.key());
    if (found != came_.end()) {
      FileDescriptor line = std::move(found->second);
      came_.erase(found);
      return line;
    }
    for (Arrivals::Arrival& each : arrivals_.hear(listening_, until)) {
      Hello hello;
      std::memcpy(&hello, each.said.data(), sizeof hello);
      if (hello.token == from.token) came_.insert_or_assign(hello.key(), std::move(each.line));
    }
    patience.abort->check();
    if (Deadline::clock::now() > until) {
      patience.abort->raise_hung(fmt::format("rank {} waited {} s for rank {} to join a group",
                                             patience.rank, patience.seconds, from.rank));
    }
  }
}

std::vector<FileDescriptor> SocketHub::join(const std::vector<std::int64_t>& ranks, int number,
                                            const Patience& patience) {
  Hello hello = {members_.front().token, hash_of(ranks), number, patience.rank};
  std::vector<FileDescriptor> lines(ranks.size());
  // Who connects need not wait for who accepts, so all connect first.
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = static_cast<int>(ranks[i]);
    if (rank < patience.rank) lines[i] = reach(hello, rank, patience);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    hello.rank = static_cast<std::int32_t>(ranks[i]);
    if (hello.rank > patience.rank) lines[i] = await(hello, patience);
  }
  return lines;
}

}  // namespace shardwise::exec
