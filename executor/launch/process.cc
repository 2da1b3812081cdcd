#include "executor/launch/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/comm/process_watch.h"
#include "executor/comm/socket.h"
#include "executor/comm/socket_world.h"
#include "executor/comm/watchdog.h"
#include "executor/launch/command.h"
#include "executor/launch/job_secret.h"
#include "executor/storage/bad_input.h"
#include "planner/spec/error.h"
#ifdef SHARDWISE_WITH_MPI
#include "executor/comm/mpi_world.h"
#endif

namespace shardwise::exec {
namespace {

constexpr int kProblems = 103;  // number of the group that shows them
/// Longer than processes need to end one another.
constexpr std::chrono::seconds kGrace{9};

/// Whether the host of a rendezvous is one, and this one where rank 0 runs.
Diagnostics problems_of_host(const Launcher& launcher) {
  if (!launcher.rendezvous || launcher.rendezvous->this_host_only) return {};
  const std::string& host = launcher.rendezvous->host;
  const auto wrong = [&](const std::string& what) {
    return Diagnostics{{"environment", 0, 0, launcher.host_variable, host + what,
                        "a name or address of the host of rank 0"}};
  };
  const std::string problem = unresolved(host);
  if (!problem.empty()) return wrong(" does not resolve: " + problem);
  if (launcher.rank != 0 || std::ranges::any_of(addresses_of(host), is_own_address)) return {};
  return wrong(" is no address of this host, where rank 0 runs");
}

/// The launcher with the job's secret, or what is wrong with its network.
Result<Launcher> with_network(Launcher launcher) {
  LauncherVariables variables = own_variables();
  Diagnostics problems = problems_of_host(launcher);
  for (const Diagnostic& each : find_secret(variables, launcher)) problems.push_back(each);
  if (!problems.empty()) return problems;
  return launcher;
}

void warn_of_strangers(const Launcher& launcher) {
  if (!launcher.rendezvous || launcher.rank != 0) return;
  const Rendezvous& at = *launcher.rendezvous;
  if (at.this_host_only || !at.secret.empty()) return;
  fmt::print(stderr,
             "SHARDWISE_INSECURE=1: there is no secret, and any process that reaches {}, ports {} "
             "to {}, can join this job\n",
             at.host, at.first_port, at.first_port + at.ports - 1);
}

std::unique_ptr<ProcessJob> join(const Launcher& launcher, double timeout_s) {
  if (launcher.rendezvous) {
    return std::make_unique<SocketJob>(*launcher.rendezvous, launcher.rank, launcher.ranks,
                                       timeout_s);
  }
#ifdef SHARDWISE_WITH_MPI
  auto job = std::make_unique<MpiJob>();
  if (job->size() == launcher.ranks) return job;
  if (launcher.rank != 0) throw Aborted("rank 0 says why");
  throw IoError(fmt::format("MPI joined {} of the {} processes that {} started", job->size(),
                            launcher.ranks, name_of(launcher.kind)));
#else
  return nullptr;
#endif
}

// A problem on its way: its parts, each ended by what none of them has.
constexpr char kEnd = '\0';

std::string packed(const Diagnostics& problems) {
  std::string text;
  for (const Diagnostic& each : problems) {
    for (const std::string& part :
         {each.file, std::to_string(each.line), std::to_string(each.column), each.path,
          each.message, each.hint}) {
      text += part.substr(0, part.find(kEnd)) + kEnd;
    }
  }
  return text;
}

Diagnostics unpacked(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size(); at = text.find(kEnd, at) + 1) {
    parts.push_back(text.substr(at, text.find(kEnd, at) - at));
  }
  Diagnostics problems;
  for (std::size_t i = 0; i + 6 <= parts.size(); i += 6) {
    problems.push_back({parts[i], std::atoi(parts[i + 1].c_str()), std::atoi(parts[i + 2].c_str()),
                        parts[i + 3], parts[i + 4], parts[i + 5]});
  }
  return problems;
}

/// Runs a rank whose failures others learn of. \returns the exit code
int run_rank(ProcessJob& job, double timeout_s, const RankMain& rank_main) {
  AbortSignal abort;
  const std::unique_ptr<World> world = job.world(abort, timeout_s);
  std::optional<ProcessWatch> watch;
  try {
    watch.emplace(job, abort, timeout_s, say);
  } catch (const Aborted&) {
    throw IoError(abort.message());
  }
  const Watchdog watchdog(
      abort, std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * timeout_s)),
      [&job](const std::string& message) {
        say({Failure::Kind::broken, message});
        job.end(kWorldBroke);
      },
      kGrace);
  try {
    return rank_main(*world, abort);
  } catch (const Aborted&) {  // NOLINT(bugprone-empty-catch): who failed has said why
  } catch (const BadInput& problem) {
    abort.raise(Failure{Failure::Kind::bad_input, problem.what()});
  } catch (const std::exception& broken) {
    abort.raise(fmt::format("rank {}: {}", job.rank(), broken.what()));
  }
  watch->stay();
}

}  // namespace

int refuse_alone(const Launcher& launcher, const Diagnostics& problems) {
  const bool speaks = launcher.rank == 0 || launcher.kind == Launcher::Kind::torchrun;
  return speaks ? refuse(problems) : kBadInput;
}

int run_process(const Launcher& launched, double timeout_s, const RankMain& rank_main) {
  const Result<Launcher> joined = with_network(launched);
  if (!joined) return refuse_alone(launched, joined.problems());
  const Launcher& launcher = *joined;
  warn_of_strangers(launcher);
  try {
    const std::unique_ptr<ProcessJob> job = join(launcher, timeout_s);
    if (job) return run_rank(*job, timeout_s, rank_main);
  } catch (const Aborted&) {
    return kWorldBroke;
  }
  const Diagnostic problem = {"command line",
                              0,
                              0,
                              name_of(launcher.kind),
                              "this shardwise-run was built without MPI",
                              "install libopenmpi-dev and build again, or use torchrun or --ranks"};
  return launcher.rank == 0 ? refuse({problem}) : kBadInput;
}

bool refuse_together(World& world, const Diagnostics& problems) {
  std::vector<std::int64_t> everyone(static_cast<std::size_t>(world.size()));
  std::iota(everyone.begin(), everyone.end(), std::int64_t{0});
  const std::vector<std::string> said =
      exchange_texts(*world.group(everyone, kProblems), packed(problems));
  if (std::ranges::all_of(said, &std::string::empty)) return false;
  if (world.rank() != 0) return true;
  std::vector<std::string> known;
  Diagnostics all;
  for (const std::string& text : said) {
    for (const Diagnostic& each : unpacked(text)) {
      if (std::ranges::find(known, to_string(each)) != known.end()) continue;
      known.push_back(to_string(each));
      all.push_back(each);
    }
  }
  refuse(all);
  return true;
}

}  // namespace shardwise::exec
