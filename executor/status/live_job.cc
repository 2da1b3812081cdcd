#include "executor/status/live_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "executor/comm/sockets/hmac.h"
#include "executor/status/find_jobs.h"
#include "planner/files/program.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

std::string drawn_job() {
  std::uint64_t number = 0;
  const Digest drawn = draw_digest();
  std::memcpy(&number, drawn.data(), sizeof(number));
  return fmt::format("{:016x}", number);
}

JobStatus without_ranks(const std::string& job, const JobFacts& facts) {
  std::error_code none;
  std::string folder = facts.folder;
  if (!folder.empty()) folder = std::filesystem::absolute(folder, none).lexically_normal().string();
  JobStatus status;
  status.job = job;
  status.user = ::geteuid();
  status.process = ::getpid();
  status.verb = facts.verb;
  status.plan = facts.plan;
  status.folder = folder;
  status.launcher = facts.launcher;
  return status;
}

}  // namespace

LiveJob::LiveJob(const std::string& job, int rank, const JobFacts& facts,
                 std::function<std::vector<RankStatus>()> ranks)
    : job_(without_ranks(job, facts)), began_(std::chrono::steady_clock::now()) {
  listen(rank, std::move(ranks));
}

LiveJob::LiveJob(const JobFacts& facts, const AbortSignal& abort)
    : job_(without_ranks(drawn_job(), facts)), began_(std::chrono::steady_clock::now()) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  listen(0, [&abort, name = std::string(host.data())] {
    std::vector<RankStatus> ranks = abort.statuses();
    for (RankStatus& each : ranks) {
      each.host = name;
      each.process = ::getpid();
    }
    return ranks;
  });
}

void LiveJob::listen(int rank, std::function<std::vector<RankStatus>()> ranks) {
  const auto answer = [this, ranks = std::move(ranks)] {
    JobStatus now = job_;
    now.age_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    now.ranks = ranks();
    return json_of(now);
  };
  try {
    server_.emplace(status_name(job_.job, rank), answer);
  } catch (const IoError& problem) {
    print_error(fmt::format("shardwise-run: {}; shardwise-run status does not find this job",
                            problem.what()));
  }
}

}  // namespace shardwise::exec
