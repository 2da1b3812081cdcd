#include "executor/comm/control_line.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <span>

namespace shardwise::exec {
namespace {

/// Read at a time, so that an end that sends without pause does not keep this one.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 18;

}  // namespace

void ControlLine::say(const Notice& notice) {
  if (!is_open() || !send_rest()) return;
  rest_ = bytes_of(notice);
  const std::size_t all = rest_.size();
  // A buffer that holds none of it is one of a process that reads nothing.
  if (!send_rest() && rest_.size() == all) rest_.clear();
}

/// \returns whether nothing is left
bool ControlLine::send_rest() {
  while (!rest_.empty()) {
    const ssize_t sent =
        ::send(socket_.number(), rest_.data(), rest_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    rest_.erase(rest_.begin(), rest_.begin() + sent);
  }
  return true;
}

std::vector<Notice> ControlLine::hear() {
  std::array<std::byte, 4096> some;  // NOLINT(*member-init*): read into
  std::vector<Notice> notices;
  send_rest();
  bool ended = false;
  for (std::size_t heard = 0; !ended && heard < kMostAtOnce;) {
    const ssize_t count = ::recv(socket_.number(), some.data(), some.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) break;
    const auto got = static_cast<std::size_t>(count > 0 ? count : 0);
    heard += got;
    ended = count <= 0 || !reader_.take(std::span(some).first(got), notices);
  }
  if (ended) socket_.close();
  return notices;
}

}  // namespace shardwise::exec
