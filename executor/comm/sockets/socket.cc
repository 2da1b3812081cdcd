#include "executor/comm/sockets/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <utility>

namespace shardwise::exec {
namespace {

constexpr int kFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;

template <class Address>
const sockaddr* general(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

/// Small messages at once: they are what others wait for.
void without_delay(const FileDescriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/// Whether the socket can be read or written by then.
bool ready(const FileDescriptor& socket, short events, Deadline until) {
  for (;;) {
    pollfd waited = {socket.number(), events, 0};
    if (::poll(&waited, 1, left_ms(until)) > 0) return true;
    if (Deadline::clock::now() >= until) return false;
  }
}

/// What a name stands for.
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
/// \param error  is what getaddrinfo(3) gives
Addresses resolve(const std::string& host, const std::string& port, int& error, int flags = 0) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  error = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found);
  if (error != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

std::optional<FileDescriptor> listen_on(const sockaddr* address, socklen_t length) {
  FileDescriptor socket(::socket(address->sa_family, SOCK_STREAM | kFlags, 0));
  const int on = 1;
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  ::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (!socket.is_open() || ::bind(socket.number(), address, length) != 0 ||
      ::listen(socket.number(), SOMAXCONN) != 0) {
    return std::nullopt;
  }
  return socket;
}

std::string in_numbers(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  const int error =
      ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

/// One end of a connection, as getsockname(2) or getpeername(2) gives it.
template <class Get>
std::string end_of(const FileDescriptor& line, const Get& get) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (get(line.number(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  return in_numbers(general(address), length);
}

struct LocalAddress {
  sockaddr_un address{};
  socklen_t length = 0;
};
LocalAddress address_of_name(const std::string& name) {
  LocalAddress local;
  local.address.sun_family = AF_UNIX;
  const std::size_t count = std::min(name.size(), sizeof(local.address.sun_path) - 1);
  std::copy_n(name.data(), count, &local.address.sun_path[1]);
  local.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  return local;
}

}  // namespace

Deadline in_seconds(double seconds) {
  return Deadline::clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                      std::chrono::duration<double>(std::min(seconds, 1e9)));
}

int left_ms(Deadline until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Deadline::clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 100));
}

std::optional<FileDescriptor> listen_tcp(const std::string& address, int port) {
  int error = 0;
  const Addresses found = resolve(address, std::to_string(port), error, AI_NUMERICHOST);
  return found ? listen_on(found->ai_addr, found->ai_addrlen) : std::nullopt;
}

bool is_own_address(const std::string& address) { return listen_tcp(address, 0).has_value(); }

bool is_loopback(const std::string& address) {
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24U == 127;
  return ::inet_pton(AF_INET6, address.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

std::vector<std::string> addresses_of(const std::string& host) {
  int error = 0;
  const Addresses found = resolve(host, "0", error);
  std::vector<std::string> all;
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    all.push_back(in_numbers(each->ai_addr, each->ai_addrlen));
  }
  return all;
}

std::string local_address(const FileDescriptor& line) { return end_of(line, ::getsockname); }
std::string other_address(const FileDescriptor& line) { return end_of(line, ::getpeername); }

int port_of(const FileDescriptor& listening) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  ::getsockname(listening.number(), reinterpret_cast<sockaddr*>(&address), &length);
  // Both kinds have the port at one place.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::optional<FileDescriptor> listen_local(const std::string& name) {
  const LocalAddress local = address_of_name(name);
  return listen_on(general(local.address), local.length);
}

std::optional<FileDescriptor> connect_local(const std::string& name) {
  const LocalAddress local = address_of_name(name);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | kFlags, 0));
  const bool connected =
      socket.is_open() && ::connect(socket.number(), general(local.address), local.length) == 0;
  return connected ? std::optional(std::move(socket)) : std::nullopt;
}

std::string unresolved(const std::string& host) {
  int error = 0;
  const Addresses addresses = resolve(host, "0", error);
  return error != 0 ? ::gai_strerror(error) : "";
}

std::optional<FileDescriptor> connect_tcp(const std::string& host, int port, Deadline until) {
  int error = 0;
  const Addresses addresses = resolve(host, std::to_string(port), error);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    FileDescriptor socket(::socket(each->ai_family, SOCK_STREAM | kFlags, 0));
    if (!socket.is_open()) continue;
    const bool begun =
        ::connect(socket.number(), each->ai_addr, each->ai_addrlen) == 0 || errno == EINPROGRESS;
    if (!begun || !ready(socket, POLLOUT, until)) continue;
    socklen_t length = sizeof(error);
    ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) continue;
    without_delay(socket);
    return socket;
  }
  return std::nullopt;
}

std::optional<FileDescriptor> accept_now(const FileDescriptor& listening) {
  FileDescriptor socket(::accept4(listening.number(), nullptr, nullptr, kFlags));
  if (!socket.is_open()) return std::nullopt;
  without_delay(socket);
  return socket;
}

Peer peer_of(const FileDescriptor& line) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  const int got = ::getsockopt(line.number(), SOL_SOCKET, SO_PEERCRED, &peer, &length);
  return got == 0 ? Peer{peer.pid, peer.uid} : Peer{};
}

bool is_of_this_user(const FileDescriptor& line) {
  const Peer peer = peer_of(line);
  return peer.process > 0 && peer.user == ::geteuid();
}

FileDescriptor process_at(const FileDescriptor& line) {
  // TCP has no peer, and a process of another name space no number here.
  if (!is_of_this_user(line)) return {};
  FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, peer_of(line).process, 0)));
  // A number may go to another process once its own has ended, whose connection is closed then.
  pollfd ended = {line.number(), POLLRDHUP, 0};
  ::poll(&ended, 1, 0);
  if ((ended.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0) return {};
  return process;
}

void end_process(const FileDescriptor& process) {
  ::syscall(SYS_pidfd_send_signal, process.number(), SIGKILL, nullptr, 0);
}

void end_unless_closed(const FileDescriptor& line, Deadline until) {
  const FileDescriptor process = process_at(line);
  const bool own = peer_of(line).process == ::getpid();
  if (own || !process.is_open() || ready(line, POLLRDHUP, until)) return;
  end_process(process);
}

bool send_all(const FileDescriptor& to, std::span<const std::byte> bytes, Deadline until) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(to.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (count < 0 && !ready(to, POLLOUT, until)) return false;
  }
  return true;
}

bool receive_all(const FileDescriptor& from, std::span<std::byte> bytes, Deadline until) {
  while (!bytes.empty()) {
    const ssize_t count = ::recv(from.number(), bytes.data(), bytes.size(), 0);
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (count < 0 && !ready(from, POLLIN, until)) return false;
  }
  return true;
}

std::vector<std::string> own_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  std::vector<std::string> found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
      if ((each->ifa_flags & IFF_LOOPBACK) != 0 || (each->ifa_flags & IFF_UP) == 0) continue;
      const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      const std::string text = in_numbers(each->ifa_addr, length);
      if (!text.empty()) found.push_back(text);
    }
  }
  return found;
}

}  // namespace shardwise::exec
