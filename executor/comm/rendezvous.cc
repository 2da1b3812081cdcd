#include "executor/comm/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "planner/spec/error.h"

namespace shardwise::exec {
namespace {

constexpr double kAnswer = 2;  // seconds that who listens there has to say who it is
constexpr std::chrono::milliseconds kAgain{50};
constexpr std::chrono::seconds kHostFirst{2};  // who waits for all knows whom

/// What both ends of a connection say first.
struct Greeting {
  std::array<char, 24> protocol{"shardwise rendezvous/1"};
  std::array<char, 104> job{};
  std::int32_t rank = 0;
  std::int32_t size = 0;
  Member member;

  bool same_job(const Greeting& other) const {
    return protocol == other.protocol && job == other.job && size == other.size;
  }
};

std::span<const std::byte> bytes_of(const Greeting& greeting) {
  return std::as_bytes(std::span(&greeting, 1));
}
std::optional<Greeting> greeting_from(const FileDescriptor& line) {
  Greeting said;
  const bool came =
      receive_all(line, std::as_writable_bytes(std::span(&said, 1)), in_seconds(kAnswer));
  return came ? std::optional(said) : std::nullopt;
}

bool is_gone(const FileDescriptor& line) {
  std::byte next{};
  return ::recv(line.number(), &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/// Rank 0's part: waits for the others and tells everybody about all.
class Host {
 public:
  Host(const Rendezvous& at, const Greeting& own)
      : own_(own), lines_(static_cast<std::size_t>(own_.size)), members_(lines_.size()) {
    members_.front() = own_.member;
    for (int i = 0; i < at.ports && listening_.empty(); ++i) {
      auto socket = listen_tcp(at.first_port + i, at.this_host_only());
      if (socket) listening_.push_back(*std::move(socket));
    }
    if (listening_.empty()) {
      throw IoError(fmt::format("ports {} to {} of this host are taken", at.first_port,
                                at.first_port + at.ports - 1));
    }
  }

  std::vector<Member> wait(double patience_s) {
    const Deadline until = in_seconds(patience_s);
    try {
      while (!missing().empty()) {
        take(accept_any(listening_, until));
        if (Deadline::clock::now() > until) {
          throw IoError(fmt::format("rank 0 waited {} s for rank {}", patience_s,
                                    fmt::join(missing(), ", ")));
        }
      }
    } catch (const IoError&) {
      tell(0);
      throw;
    }
    tell(own_.size);
    return members_;
  }

 private:
  std::vector<std::size_t> missing() const {
    std::vector<std::size_t> found;
    for (std::size_t r = 1; r < lines_.size(); ++r) {
      if (!lines_[r].is_open()) found.push_back(r);
    }
    return found;
  }

  void take(std::optional<FileDescriptor> line) {
    for (std::size_t r = 1; r < lines_.size(); ++r) {
      if (lines_[r].is_open() && is_gone(lines_[r])) {
        throw IoError(fmt::format("rank {} is gone: its process {} on {} ended", r,
                                  members_[r].process, members_[r].host.data()));
      }
    }
    if (!line) return;
    const std::optional<Greeting> said = greeting_from(*line);
    if (!said || !said->same_job(own_) || said->rank < 1 || said->rank >= own_.size) return;
    const auto rank = static_cast<std::size_t>(said->rank);
    if (lines_[rank].is_open()) {
      throw IoError(fmt::format("two processes say that they are rank {}: {} on {} and {} on {}",
                                rank, members_[rank].process, members_[rank].host.data(),
                                said->member.process, said->member.host.data()));
    }
    if (!send_all(*line, bytes_of(own_), in_seconds(kAnswer))) return;
    lines_[rank] = *std::move(line);
    members_[rank] = said->member;
  }

  /// How many there are, and who; none when the run has failed.
  void tell(std::int32_t count) const {
    for (const FileDescriptor& line : lines_) {
      if (!line.is_open()) continue;
      send_all(line, std::as_bytes(std::span(&count, 1)), in_seconds(kAnswer));
      if (count > 0) send_all(line, std::as_bytes(std::span(members_)), in_seconds(kAnswer));
    }
  }

  Greeting own_;
  std::vector<FileDescriptor> lines_;
  std::vector<Member> members_;
  std::vector<FileDescriptor> listening_;
};

/// A connection to rank 0, wherever it listens.
std::optional<FileDescriptor> find_host(const Rendezvous& at, const Greeting& own) {
  for (int i = 0; i < at.ports; ++i) {
    auto line = connect_tcp(at.host, at.first_port + i, in_seconds(kAnswer));
    if (!line || !send_all(*line, bytes_of(own), in_seconds(kAnswer))) continue;
    const std::optional<Greeting> said = greeting_from(*line);
    if (said && said->same_job(own)) return line;
  }
  return std::nullopt;
}

std::vector<Member> visit(const Rendezvous& at, const Greeting& own, double patience_s) {
  const Deadline until = in_seconds(patience_s);
  std::optional<FileDescriptor> line = find_host(at, own);
  for (; !line; line = find_host(at, own)) {
    if (Deadline::clock::now() > until) {
      throw IoError(fmt::format("rank {} found no rank 0 on {}, ports {} to {}, for {} s", own.rank,
                                at.host, at.first_port, at.first_port + at.ports - 1, patience_s));
    }
    std::this_thread::sleep_for(kAgain);
  }
  std::vector<Member> members(static_cast<std::size_t>(own.size));
  std::int32_t count = 0;
  const bool told =
      receive_all(*line, std::as_writable_bytes(std::span(&count, 1)), until + kHostFirst);
  if (told && count == 0) throw Aborted("rank 0 has said why");
  if (!told || !receive_all(*line, std::as_writable_bytes(std::span(members)), until)) {
    throw IoError(fmt::format("rank {} was told nothing by rank 0 on {}", own.rank, at.host));
  }
  // What led to rank 0 leads to it again.
  std::array<std::array<char, 64>, 4>& ways = members.front().addresses;
  std::rotate(ways.begin(), std::prev(ways.end()), ways.end());
  ways.front() = {};
  std::copy_n(at.host.data(), std::min(at.host.size(), ways.front().size() - 1),
              ways.front().data());
  return members;
}

}  // namespace

std::vector<Member> meet(const Rendezvous& rendezvous, int rank, int size, const Member& own,
                         double patience_s) {
  Greeting greeting;
  greeting.rank = rank;
  greeting.size = size;
  greeting.member = own;
  std::copy_n(rendezvous.job.data(), std::min(rendezvous.job.size(), greeting.job.size() - 1),
              greeting.job.data());
  return rank == 0 ? Host(rendezvous, greeting).wait(patience_s)
                   : visit(rendezvous, greeting, patience_s);
}

}  // namespace shardwise::exec
