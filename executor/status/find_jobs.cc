#include "executor/status/find_jobs.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "executor/comm/sockets/socket.h"

namespace shardwise::exec {
namespace {

constexpr std::string_view kPrefix = "shardwise-status-";
constexpr std::size_t kJobDigits = 16;
constexpr std::size_t kMostNames = 100'000;  // that are looked at
constexpr std::size_t kMostJobsOfUser = 64;  // that are asked
constexpr std::size_t kMostAnswer = std::size_t{64} << 20;
constexpr double kPatience = 3;  // seconds for a process to answer
constexpr std::size_t kMostRounds = 3;

/// A name of status_name().
struct Name {
  std::string text;
  std::string job;
  std::uint32_t user = 0;
  int rank = 0;
};

template <class T>
bool take_number(std::string_view& text, T& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || number > static_cast<T>(INT32_MAX)) return false;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return true;
}

std::optional<Name> parse_name(std::string_view text) {
  Name name;
  name.text = text;
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  if (!take_number(text, name.user) || !text.starts_with('-')) return std::nullopt;
  name.job = text.substr(1, kJobDigits);
  text.remove_prefix(std::min(text.size(), 1 + kJobDigits));
  const bool digits = name.job.size() == kJobDigits &&
                      name.job.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!digits || !text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  if (!take_number(text, name.rank) || !text.empty() || name.rank < 0) return std::nullopt;
  return name;
}

using JobKey = std::pair<std::uint32_t, std::string>;  // user, job

/// Who listens on this machine, or says so: any user may listen under any name that is free.
/// Source: proc_net_unix(5): number, protocol, flags and so on, and in the last column the name,
/// '@' in front of one that is no file's. Connections have the name as well.
std::map<JobKey, std::map<int, std::string>> names_by_rank(const std::string& only) {
  std::map<JobKey, std::map<int, std::string>> jobs;
  std::ifstream sockets("/proc/net/unix");
  const std::string begin = fmt::format("@{}", kPrefix);
  const std::uint32_t own = ::geteuid();
  std::size_t names = 0;
  for (std::string line; names < kMostNames && std::getline(sockets, line);) {
    const std::size_t at = line.find(begin);
    if (at == std::string::npos) continue;
    const std::optional<Name> name = parse_name(std::string_view(line).substr(at + 1));
    if (!name || (own != 0 && name->user != own) || !name->job.starts_with(only)) continue;
    if (jobs[{name->user, name->job}].emplace(name->rank, name->text).second) ++names;
  }
  return jobs;
}

/// A process that is asked.
struct Asked {
  std::size_t job = 0;  // its number among those that were found
  std::int32_t process = 0;
  FileDescriptor line;
  std::string text;
  bool over = false;

  /// Takes what has come.
  void hear() {
    std::array<char, 1 << 16> some;  // NOLINT(*member-init*): read into
    for (;;) {
      const ssize_t count = ::recv(line.number(), some.data(), some.size(), MSG_DONTWAIT);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count > 0) text.append(some.data(), static_cast<std::size_t>(count));
      if (count > 0 && text.size() <= kMostAnswer) continue;
      over = true;
      return;
    }
  }
};

/// Asks the lowest of the ranks in `names` that is to be believed, and takes it and those before it
/// out. \returns nothing where there is none
std::optional<Asked> ask_next(std::map<int, std::string>& names, std::uint32_t user,
                              std::size_t job) {
  while (!names.empty()) {
    std::optional<FileDescriptor> line = connect_local(names.begin()->second);
    names.erase(names.begin());
    if (!line) continue;
    const Peer peer = peer_of(*line);
    if (peer.user == user) return Asked{job, peer.process, *std::move(line), {}, false};
  }
  return std::nullopt;
}

void hear_all(std::vector<Asked>& asked) {
  const Deadline until = in_seconds(kPatience);
  const auto waits = [](const Asked& each) { return !each.over; };
  while (std::ranges::any_of(asked, waits) && Deadline::clock::now() < until) {
    std::vector<pollfd> lines;
    for (const Asked& each : asked) {
      lines.push_back({each.over ? -1 : each.line.number(), POLLIN, 0});
    }
    ::poll(lines.data(), lines.size(), left_ms(until));
    for (Asked& each : asked) {
      if (!each.over) each.hear();
    }
  }
}

}  // namespace

std::string status_name(std::string_view job, int rank) {
  return fmt::format("{}{}-{}-{}", kPrefix, ::geteuid(), job, rank);
}

std::vector<JobStatus> find_jobs(const std::string& only) {
  std::map<JobKey, std::map<int, std::string>> names = names_by_rank(only);
  std::map<std::uint32_t, std::size_t> jobs_of_user;
  std::vector<JobStatus> found;
  std::vector<Asked> asked;
  for (auto& [key, ranks] : names) {
    const auto& [user, job] = key;
    if (jobs_of_user[user] == kMostJobsOfUser) continue;
    std::optional<Asked> first = ask_next(ranks, user, found.size());
    if (!first) continue;
    ++jobs_of_user[user];
    JobStatus& one = found.emplace_back();
    one.job = job;
    one.answers = false;
    one.user = user;
    one.process = first->process;
    asked.push_back(*std::move(first));
  }
  for (std::size_t round = 0; round < kMostRounds && !asked.empty(); ++round) {
    hear_all(asked);
    std::vector<Asked> next;
    for (const Asked& each : asked) {
      JobStatus& job = found[each.job];
      const auto user = static_cast<std::uint32_t>(job.user);
      std::optional<JobStatus> status = read_job_status(each.text);
      if (each.over && status) {
        status->job = job.job;
        status->user = job.user;
        status->process = job.process;
        status->answers = true;
        job = *std::move(status);
      } else if (std::optional<Asked> other = ask_next(names.at({user, job.job}), user, each.job)) {
        next.push_back(*std::move(other));
      }
    }
    asked = std::move(next);
  }
  return found;
}

}  // namespace shardwise::exec
