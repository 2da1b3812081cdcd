#include "executor/comm/control_line.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

namespace shardwise::exec {
namespace {

constexpr std::uint32_t kMostText = 1 << 16;

struct Header {
  Notice::Word word = Notice::Word::over;
  Failure::Kind kind = Failure::Kind::broken;
  std::uint32_t text = 0;  // bytes that follow
};

}  // namespace

void ControlLine::say(const Notice& notice) const {
  if (!is_open()) return;
  const std::string text = notice.text.substr(0, kMostText);
  const Header header = {notice.word, notice.kind, static_cast<std::uint32_t>(text.size())};
  std::vector<std::byte> bytes(sizeof(header) + text.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), text.data(), text.size());
  // A buffer that holds none of it is one of a process that reads nothing.
  [[maybe_unused]] const ssize_t sent =
      ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::vector<Notice> ControlLine::hear() {
  std::array<std::byte, 4096> some;  // NOLINT(*member-init*): read into
  ssize_t count = 0;
  while ((count = ::recv(socket_.number(), some.data(), some.size(), MSG_DONTWAIT)) > 0) {
    heard_.insert(heard_.end(), some.begin(), some.begin() + count);
  }
  const bool ended = count == 0 || (errno != EAGAIN && errno != EINTR);
  std::vector<Notice> notices;
  Header header;
  std::span<const std::byte> left = heard_;
  while (left.size() >= sizeof(header)) {
    std::memcpy(&header, left.data(), sizeof(header));
    if (header.text > kMostText || left.size() < sizeof(header) + header.text) break;
    const auto* const text = reinterpret_cast<const char*>(left.data() + sizeof(header));
    notices.push_back({header.word, header.kind, std::string(text, header.text)});
    left = left.subspan(sizeof(header) + header.text);
  }
  heard_.erase(heard_.begin(), heard_.end() - static_cast<std::ptrdiff_t>(left.size()));
  if (ended) socket_.close();
  return notices;
}

}  // namespace shardwise::exec
