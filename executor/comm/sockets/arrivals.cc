#include "executor/comm/sockets/arrivals.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace shardwise::exec {
namespace {

/// More strangers than this are not kept, nor more than a quarter of the files that a process may
/// have open: the rest is the job's own.
constexpr std::size_t kMost = 256;
constexpr std::size_t kFewest = 16;

std::size_t most_kept() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, kFewest, kMost);
}

}  // namespace

void Arrivals::add(FileDescriptor line, int key, std::size_t bytes, double seconds,
                   std::vector<std::byte> before) {
  while (pending_.size() >= most_kept()) drop_one();
  Pending pending;
  pending.arrival = {std::move(line), std::vector<std::byte>(bytes), key, std::move(before)};
  pending.until = in_seconds(seconds);
  pending_.push_back(std::move(pending));
}

/// Closes the oldest connection that has said nothing whole, else the oldest. \returns whether
/// there was one
bool Arrivals::drop_one() {
  if (pending_.empty()) return false;
  const auto silent = std::ranges::find_if(
      pending_, [](const Pending& each) { return each.arrival.before.empty(); });
  pending_.erase(silent == pending_.end() ? pending_.begin() : silent);
  return true;
}

std::optional<FileDescriptor> Arrivals::accept_from(const FileDescriptor& listening) {
  for (;;) {
    errno = 0;
    std::optional<FileDescriptor> line = accept_now(listening);
    const int error = errno;
    if (line || (error != EMFILE && error != ENFILE)) return line;
    ran_out_ = true;
    if (!drop_one()) return std::nullopt;
  }
}

bool Arrivals::has(int key) const {
  return std::ranges::any_of(pending_,
                             [key](const Pending& each) { return each.arrival.key == key; });
}

void Arrivals::Pending::hear() {
  const std::span<std::byte> left = std::span(arrival.said).subspan(heard);
  const ssize_t count = ::recv(arrival.line.number(), left.data(), left.size(), MSG_DONTWAIT);
  if (count > 0) heard += static_cast<std::size_t>(count);
  gone = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR) ||
         Deadline::clock::now() > until;
}

std::vector<Arrivals::Arrival> Arrivals::hear(std::span<const FileDescriptor> listening,
                                              std::size_t bytes, double seconds, Deadline until) {
  std::vector<pollfd> waited;
  for (const FileDescriptor& each : listening) waited.push_back({each.number(), POLLIN, 0});
  for (const Pending& each : pending_) waited.push_back({each.arrival.line.number(), POLLIN, 0});
  ::poll(waited.data(), waited.size(), left_ms(until));
  for (const FileDescriptor& each : listening) {
    std::optional<FileDescriptor> line = accept_from(each);
    if (line) add(*std::move(line), 0, bytes, seconds);
  }
  std::vector<Arrival> arrived;
  for (Pending& each : pending_) {
    each.hear();
    if (each.heard < each.arrival.said.size()) continue;
    arrived.push_back(std::move(each.arrival));
    each.gone = true;
  }
  std::erase_if(pending_, [](const Pending& each) { return each.gone; });
  return arrived;
}

}  // namespace shardwise::exec
