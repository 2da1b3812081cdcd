#include "executor/comm/rendezvous.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "executor/comm/arrivals.h"
#include "executor/comm/rank_list.h"
#include "planner/spec/error.h"

namespace shardwise::exec {
namespace {

constexpr double kAnswer = 2;  // seconds for an address to answer
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
Greeting greeting_of(const Arrivals::Arrival& arrival) {
  Greeting said;
  std::memcpy(&said, arrival.said.data(), sizeof said);
  return said;
}

std::string gone_text(std::size_t rank, const Member& member) {
  return fmt::format("rank {} is gone: its process {} on {} ended", rank, member.process,
                     member.host.data());
}

bool is_gone(const FileDescriptor& line) {
  std::byte next{};
  return ::recv(line.number(), &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/// Rank 0's part: waits for the others and tells everybody about all.
class Host {
 public:
  Host(const Rendezvous& at, const Greeting& own, double patience_s)
      : own_(own),
        patience_s_(patience_s),
        arrivals_(sizeof(Greeting), patience_s),
        lines_(static_cast<std::size_t>(own_.size)),
        members_(lines_.size()) {
    members_.front() = own_.member;
    for (int i = 0; i < at.ports && listening_.empty(); ++i) {
      auto socket = listen_tcp(at.first_port + i, at.this_host_only());
      if (socket) listening_.push_back(*std::move(socket));
    }
    if (listening_.empty() && at.this_host_only()) {
      auto socket = listen_local(at.local_name());
      if (socket) listening_.push_back(*std::move(socket));
    }
    if (listening_.empty()) {
      throw IoError(fmt::format("ports {} to {} of this host are taken", at.first_port,
                                at.first_port + at.ports - 1));
    }
  }

  std::vector<Member> wait() {
    const Deadline until = in_seconds(patience_s_);
    try {
      while (!missing().empty()) {
        find_gone();
        for (Arrivals::Arrival& each : arrivals_.hear(listening_, until)) {
          take(greeting_of(each), std::move(each.line));
        }
        if (Deadline::clock::now() > until) {
          throw IoError(
              fmt::format("rank 0 waited {} s for rank {}", patience_s_, rank_list(missing())));
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

  void find_gone() const {
    for (std::size_t r = 1; r < lines_.size(); ++r) {
      if (lines_[r].is_open() && is_gone(lines_[r])) throw IoError(gone_text(r, members_[r]));
    }
  }

  void take(const Greeting& said, FileDescriptor line) {
    if (!said.same_job(own_) || said.rank < 1 || said.rank >= own_.size) return;
    const auto rank = static_cast<std::size_t>(said.rank);
    if (lines_[rank].is_open()) {
      throw IoError(fmt::format("two processes say that they are rank {}: {} on {} and {} on {}",
                                rank, members_[rank].process, members_[rank].host.data(),
                                said.member.process, said.member.host.data()));
    }
    if (!send_all(line, bytes_of(own_), in_seconds(kAnswer))) return;
    lines_[rank] = std::move(line);
    members_[rank] = said.member;
    name_speaker(said.rank);
  }

  /// The lowest rank that has come says so should this process be gone. Until it is told of a lower
  /// one, a rank takes itself for that.
  void name_speaker(std::int32_t newcomer) {
    const bool lowest = speaker_ == 0 || newcomer < speaker_;
    if (lowest) speaker_ = newcomer;
    const std::int32_t said = -speaker_;
    for (std::size_t r = 1; r < lines_.size(); ++r) {
      const bool newest = static_cast<std::int32_t>(r) == newcomer;
      if (!lines_[r].is_open() || newest == lowest) continue;
      send_all(lines_[r], std::as_bytes(std::span(&said, 1)), in_seconds(kAnswer));
    }
  }

  /// How many there are, and who; 0 when the run has failed.
  void tell(std::int32_t count) const {
    for (const FileDescriptor& line : lines_) {
      if (!line.is_open()) continue;
      send_all(line, std::as_bytes(std::span(&count, 1)), in_seconds(kAnswer));
      if (count > 0) send_all(line, std::as_bytes(std::span(members_)), in_seconds(kAnswer));
    }
  }

  Greeting own_;
  double patience_s_;
  Arrivals arrivals_;
  std::vector<FileDescriptor> lines_;
  std::vector<Member> members_;
  std::vector<FileDescriptor> listening_;
  std::int32_t speaker_ = 0;  // of the others; 0: none has come
};

/// Rank 0 as one of the others has found it.
struct Found {
  FileDescriptor line;
  Member host;
};

/// Asks whoever listens at each of the places until one of them is rank 0.
Found find_host(const Rendezvous& at, const Greeting& own, double patience_s) {
  const Deadline until = in_seconds(patience_s);
  Arrivals answers(sizeof(Greeting), patience_s);
  const int places = at.ports + (at.this_host_only() ? 1 : 0);
  while (Deadline::clock::now() < until) {
    for (int i = 0; i < places; ++i) {
      if (answers.has(i)) continue;
      auto line = i == at.ports ? connect_local(at.local_name())
                                : connect_tcp(at.address(), at.first_port + i, in_seconds(kAnswer));
      if (line && send_all(*line, bytes_of(own), in_seconds(kAnswer))) {
        answers.add(*std::move(line), i);
      }
    }
    const Deadline again = std::min(until, Deadline::clock::now() + kAgain);
    while (Deadline::clock::now() < again) {
      for (Arrivals::Arrival& each : answers.hear({}, again)) {
        const Greeting said = greeting_of(each);
        if (said.same_job(own)) return {std::move(each.line), said.member};
      }
    }
  }
  throw IoError(fmt::format("rank {} found no rank 0 on {}, ports {} to {}, for {} s", own.rank,
                            at.host, at.first_port, at.first_port + at.ports - 1, patience_s));
}

std::vector<Member> visit(const Rendezvous& at, const Greeting& own, double patience_s) {
  const Deadline until = in_seconds(patience_s);
  const Found found = find_host(at, own, patience_s);
  std::vector<Member> members(static_cast<std::size_t>(own.size));
  std::int32_t speaker = own.rank;
  std::int32_t said = -own.rank;  // negative: the rank that speaks; else what Host::tell() says
  bool told = true;
  while (told && said < 0) {
    speaker = -said;
    told = receive_all(found.line, std::as_writable_bytes(std::span(&said, 1)), until + kHostFirst);
  }
  if (told && said == 0) throw Aborted("rank 0 has said why");
  if (!told || !receive_all(found.line, std::as_writable_bytes(std::span(members)), until)) {
    // All that have found rank 0 see that; one of them says so.
    if (own.rank != speaker) throw Aborted(fmt::format("rank {} says why", speaker));
    throw IoError(is_gone(found.line)
                      ? gone_text(0, found.host)
                      : fmt::format("rank 0 on {} said nothing for {} s", at.host, patience_s));
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
  return rank == 0 ? Host(rendezvous, greeting, patience_s).wait()
                   : visit(rendezvous, greeting, patience_s);
}

}  // namespace shardwise::exec
