#include "executor/comm/sockets/rendezvous.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "executor/comm/rank_list.h"
#include "executor/comm/sockets/arrivals.h"
#include "executor/comm/sockets/door.h"
#include "executor/comm/sockets/handshake.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

constexpr double kAnswerSeconds = 2;  // seconds for an address to answer
constexpr double kChallenge = 10;     // and for a process that listens to challenge
constexpr double kEnds = 2;           // and for a process that is told that the job has failed
constexpr double kSoon = 5;           // seconds to find rank 0 among processes of other jobs
constexpr std::chrono::milliseconds kSearchAgain{50};
constexpr std::chrono::seconds kHostFirst{2};  // who waits for all knows whom
/// Names of local sockets that rank 0 tries, of which the others usually ask the first sixteen. A
/// process of another user may have taken those: without a secret their names can be foreseen.
constexpr int kLocalPlaces = 4096;
constexpr int kAllPlacesEvery = 20;  // searches

std::string gone_text(std::size_t rank, const Member& member) {
  return fmt::format("rank {} is gone: its process {} on {} ended", rank, member.process,
                     member.host.data());
}

bool is_gone(const FileDescriptor& line) {
  std::byte next{};
  return ::recv(line.number(), &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

Digest hub_key(const Rendezvous& at, const Digest& session) {
  return hmac_sha256(at.secret, "shardwise groups" + std::string(as_key(session)));
}

/// Without a secret it is the user that processes of a job have in common.
bool asks_for_user(const Rendezvous& at) { return at.this_host_only && at.secret.empty(); }

/// Where a process listens that reaches rank 0 from this address. A name of this host may stand for
/// a loopback address here, which the other hosts do not reach.
std::vector<std::string> interfaces(const Rendezvous& at, const std::string& address) {
  if (at.this_host_only) return {};
  const bool reachable = !names_this_host(address) || names_this_host(at.host);
  return reachable ? std::vector{address} : own_addresses();
}

/// Where rank 0 listens: the addresses that its host's name stands for.
std::vector<std::string> host_addresses(const Rendezvous& at) {
  std::vector<std::string> found;
  for (const std::string& address : addresses_of(at.host)) {
    if (!is_own_address(address)) continue;
    found.push_back(address);
    for (const std::string& each : interfaces(at, address)) {
      if (std::ranges::find(found, each) == found.end()) found.push_back(each);
    }
  }
  return found;
}

std::vector<FileDescriptor> listen_at(const Rendezvous& at, const Digest& key, int place,
                                      const std::vector<std::string>& addresses) {
  std::vector<FileDescriptor> listening;
  if (at.this_host_only) {
    auto socket = listen_local(local_place(at, key, place));
    if (socket) listening.push_back(*std::move(socket));
    return listening;
  }
  for (const std::string& address : addresses) {
    auto socket = listen_tcp(address, at.first_port + place);
    // A port counts as taken where another program has it on one of the addresses.
    if (!socket) return {};
    listening.push_back(*std::move(socket));
  }
  return listening;
}

/// Rank 0's part: waits for the others and tells everybody about all.
class Host {
 public:
  Host(const Rendezvous& at, int size, SocketHub& hub, double patience_s)
      : patience_s_(patience_s),
        door_({Purpose::rendezvous, 0, size, at.key(size), kMemberBytes, asks_for_user(at)}),
        lines_(static_cast<std::size_t>(size)),
        members_(lines_.size()) {
    const std::vector<std::string> addresses =
        at.this_host_only ? std::vector<std::string>() : host_addresses(at);
    const int places = at.this_host_only ? kLocalPlaces : at.ports;
    for (int i = 0; i < places && listening_.empty(); ++i) {
      listening_ = listen_at(at, at.key(size), i, addresses);
    }
    if (listening_.empty() && at.this_host_only) {
      throw IoError(fmt::format(
          "the {} local sockets of the job are in use{}", kLocalPlaces,
          at.secret.empty() ? "; with SHARDWISE_SECRET nobody foresees their names" : ""));
    }
    if (listening_.empty() && addresses.empty()) {
      throw IoError(fmt::format("{} is not an address of this host, where rank 0 runs", at.host));
    }
    if (listening_.empty()) {
      throw IoError(fmt::format("ports {} to {} of this host are in use", at.first_port,
                                at.first_port + at.ports - 1));
    }
    hub.listen_on(addresses);
    members_.front() = hub.own();
  }

  Met wait(const Rendezvous& at) {
    const Deadline until = in_seconds(patience_s_);
    try {
      while (!missing().empty()) {
        find_gone();
        for (Door::Guest& each : door_.admit(listening_, until)) take(std::move(each));
        tell_of_no_descriptor(at);
        if (Deadline::clock::now() > until) throw IoError(waited_text());
      }
    } catch (const IoError&) {
      tell(0, {});
      const Deadline ended = in_seconds(kEnds);
      for (const FileDescriptor& line : lines_) end_unless_closed(line, ended);
      throw;
    }
    const Digest session = draw_digest();
    tell(static_cast<std::int32_t>(members_.size()), session);
    return {members_, hub_key(at, session)};
  }

 private:
  std::vector<std::size_t> missing() const {
    std::vector<std::size_t> found;
    for (std::size_t r = 1; r < lines_.size(); ++r) {
      if (!lines_[r].is_open()) found.push_back(r);
    }
    return found;
  }

  void tell_of_no_descriptor(const Rendezvous& at) {
    if (!door_.ran_out() || told_ || !at.note) return;
    at.note(kNoDescriptor);
    told_ = true;
  }

  std::string waited_text() const {
    std::string text =
        fmt::format("rank 0 waited {} s for rank {}", patience_s_, rank_list(missing()));
    if (door_.turned_away() > 0) {
      text += fmt::format("; {} connections did not prove the job's secret", door_.turned_away());
    }
    if (door_.ran_out()) text += fmt::format("; {}", kNoDescriptor);
    return text;
  }

  void find_gone() const {
    for (std::size_t r = 1; r < lines_.size(); ++r) {
      if (lines_[r].is_open() && is_gone(lines_[r])) throw IoError(gone_text(r, members_[r]));
    }
  }

  void take(Door::Guest guest) {
    const auto rank = static_cast<std::size_t>(guest.hello.from);
    const Member member = parse_member(guest.said);
    if (lines_[rank].is_open()) {
      throw IoError(fmt::format("two processes claim rank {}: {} on {} and {} on {}", rank,
                                members_[rank].process, members_[rank].host.data(), member.process,
                                member.host.data()));
    }
    if (!send_all(guest.line, bytes_of(members_.front()), in_seconds(kAnswerSeconds))) return;
    lines_[rank] = std::move(guest.line);
    members_[rank] = member;
    name_speaker(guest.hello.from);
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
      send_all(lines_[r], std::as_bytes(std::span(&said, 1)), in_seconds(kAnswerSeconds));
    }
  }

  /// How many there are, who, and what their connections show; 0 when the run has failed.
  void tell(std::int32_t count, const Digest& session) const {
    for (const FileDescriptor& line : lines_) {
      if (!line.is_open()) continue;
      send_all(line, std::as_bytes(std::span(&count, 1)), in_seconds(kAnswerSeconds));
      if (count == 0) continue;
      send_all(line, std::as_bytes(std::span(members_)), in_seconds(kAnswerSeconds));
      send_all(line, session, in_seconds(kAnswerSeconds));
    }
  }

  static constexpr const char* kNoDescriptor =
      "rank 0 had no file descriptor left for connections (see ulimit -n)";

  double patience_s_;
  Door door_;
  bool told_ = false;
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

/// Another rank's search: asks each of the places until one of them proves to be rank 0.
class Search {
 public:
  Search(const Rendezvous& at, int rank, int size, SocketHub& hub, double patience_s)
      : at_(at), key_(at.key(size)), hub_(hub), patience_s_(patience_s) {
    hello_.from = rank;
    hello_.size = size;
  }

  Found find() {
    const Deadline until = in_seconds(patience_s_);
    const Deadline soon = in_seconds(std::min(kSoon, patience_s_ / 2));
    while (Deadline::clock::now() < until) {
      tell_of_other_secret(soon);
      const bool all = at_.this_host_only && ++searches_ % kAllPlacesEvery == 0;
      for (int place = 0; place < (all ? kLocalPlaces : at_.ports); ++place) {
        if (!answers_.has(place)) ask(place);
      }
      const Deadline again = std::min(until, Deadline::clock::now() + kSearchAgain);
      while (Deadline::clock::now() < again) {
        for (Arrivals::Arrival& each : answers_.hear({}, 0, 0, again)) {
          if (each.before.empty()) return {std::move(each.line), parse_member(each.said)};
          prove(std::move(each));
        }
      }
    }
    throw IoError(fmt::format("rank {} found no rank 0 on {} for {} s{}", hello_.from, where(),
                              patience_s_, other_secret_ ? kOther : ""));
  }

 private:
  static constexpr const char* kOther = "; a process there is of another job or has another secret";

  std::string where() const {
    if (at_.this_host_only) return "this host";
    return fmt::format("{}, ports {} to {},", at_.host, at_.first_port,
                       at_.first_port + at_.ports - 1);
  }
  void tell_of_other_secret(Deadline soon) {
    if (!other_secret_ || told_ || !at_.note || Deadline::clock::now() < soon) return;
    at_.note(fmt::format("rank {} looks for rank 0 on {} for up to {} s{}", hello_.from, where(),
                         patience_s_, kOther));
    told_ = true;
  }
  void ask(int place) {
    auto line = at_.this_host_only
                    ? connect_local(local_place(at_, key_, place))
                    : connect_tcp(at_.host, at_.first_port + place, in_seconds(kAnswerSeconds));
    if (!line || (asks_for_user(at_) && !is_of_this_user(*line))) return;
    hello_.nonce = draw_digest();
    const HelloBytes hello = bytes_of(hello_);
    if (!send_all(*line, hello, in_seconds(kAnswerSeconds))) return;
    answers_.add(*std::move(line), place, kChallengeBytes, kChallenge,
                 {hello.begin(), hello.end()});
  }

  /// A challenge has come: says who this process is, where it was one of the job's.
  void prove(Arrivals::Arrival arrival) {
    if (!proves_key(arrival.said, arrival.before, key_)) {
      other_secret_ = true;
      return;
    }
    hub_.listen_on(interfaces(at_, local_address(arrival.line)));
    const std::vector<std::byte> proof =
        proof_and(bytes_of(hub_.own()), arrival.before, arrival.said, key_);
    if (!send_all(arrival.line, proof, in_seconds(kAnswerSeconds))) return;
    answers_.add(std::move(arrival.line), arrival.key, kMemberBytes, patience_s_);
  }

  const Rendezvous& at_;
  Digest key_;
  SocketHub& hub_;
  double patience_s_;
  Hello hello_;
  Arrivals answers_;
  bool other_secret_ = false;
  bool told_ = false;
  int searches_ = 0;
};

Met visit(const Rendezvous& at, int rank, int size, SocketHub& hub, double patience_s) {
  const Deadline until = in_seconds(patience_s);
  const Found found = Search(at, rank, size, hub, patience_s).find();
  std::vector<std::byte> said(static_cast<std::size_t>(size) * kMemberBytes);
  Digest session{};
  std::int32_t speaker = rank;
  std::int32_t count = -rank;  // negative: the rank that speaks; else what Host::tell() says
  bool told = true;
  while (told && count < 0) {
    speaker = -count;
    told =
        receive_all(found.line, std::as_writable_bytes(std::span(&count, 1)), until + kHostFirst);
  }
  if (told && count == 0) throw Aborted("rank 0 reports why");
  if (!told || !receive_all(found.line, said, until) || !receive_all(found.line, session, until)) {
    const bool gone = is_gone(found.line);
    // Rank 0 ends where one of the others leaves, unless it is stopped.
    ::shutdown(found.line.number(), SHUT_WR);
    end_unless_closed(found.line, in_seconds(kEnds));
    // All that have found rank 0 see that; one of them says so.
    if (rank != speaker) throw Aborted(fmt::format("rank {} reports why", speaker));
    throw IoError(gone ? gone_text(0, found.host)
                       : fmt::format("rank 0 on {} did not answer for {} s", at.host, patience_s));
  }
  Met met{{}, hub_key(at, session)};
  for (std::size_t begin = 0; begin < said.size(); begin += kMemberBytes) {
    met.members.push_back(parse_member(std::span(said).subspan(begin, kMemberBytes)));
  }
  if (at.this_host_only) return met;
  // What led to rank 0 leads to it again.
  std::array<std::array<char, 64>, 4>& ways = met.members.front().addresses;
  std::rotate(ways.begin(), std::prev(ways.end()), ways.end());
  copy_text(other_address(found.line), ways.front());
  return met;
}

}  // namespace

Digest Rendezvous::key(int size) const {
  return hmac_sha256(secret, fmt::format("shardwise job/2 {} ranks {}", size, job));
}

std::string local_place(const Rendezvous& at, const Digest& key, int place) {
  // Processes of several users may be of one job where they have a secret.
  const std::string user = at.secret.empty() ? fmt::format(" of user {}", ::geteuid()) : "";
  const Digest name = hmac_sha256(as_key(key), fmt::format("shardwise place {}{}", place, user));
  std::string text = "shardwise-";
  for (std::size_t i = 0; i < 16; ++i) text += fmt::format("{:02x}", name[i]);
  return text;
}

bool names_this_host(const std::string& host) { return host == "localhost" || is_loopback(host); }

Met meet(const Rendezvous& rendezvous, int rank, int size, SocketHub& hub, double patience_s) {
  return rank == 0 ? Host(rendezvous, size, hub, patience_s).wait(rendezvous)
                   : visit(rendezvous, rank, size, hub, patience_s);
}

}  // namespace shardwise::exec
