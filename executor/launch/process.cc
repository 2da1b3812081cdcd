#include "executor/launch/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "executor/comm/failure_line.h"
#include "executor/comm/sockets/process_watch.h"
#include "executor/comm/sockets/socket.h"
#include "executor/comm/sockets/socket_world.h"
#include "executor/comm/watchdog.h"
#include "executor/launch/command.h"
#include "executor/launch/job_secret.h"
#include "executor/storage/bad_input.h"
#include "planner/spec/text/error.h"
#ifdef SHARDWISE_WITH_MPI
#include "executor/comm/mpi_world.h"
#endif

namespace shardwise::exec {
namespace {

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
  return wrong(" is not an address of this host, where rank 0 runs");
}

/// The launcher with the job's secret, or what is wrong with its network.
Result<Launcher> with_network(Launcher launcher) {
  if (launcher.rendezvous) {
    launcher.rendezvous->note = [](const std::string& note) {
      fmt::print(stderr, "{}\n", note);
      std::fflush(stderr);
    };
  }
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
  auto job = std::make_unique<MpiJob>(timeout_s, launcher.rank);
  if (job->size() == launcher.ranks) return job;
  if (launcher.rank != 0) throw Aborted("rank 0 reports why");
  throw IoError(fmt::format("MPI joined {} of the {} processes that {} started", job->size(),
                            launcher.ranks, name_of(launcher.kind)));
#else
  return nullptr;
#endif
}

/// The job's number, which all its processes know.
std::string name_of(ProcessJob& job) {
  return fmt::format("{:016x}", job.hub().members().front().name.front());
}

/// Runs a rank whose failures others learn of. \returns the exit code
int run_rank(ProcessJob& job, double timeout_s, const JobFacts& facts, const RankMain& rank_main) {
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
  const LiveJob live(name_of(job), job.rank(), facts, [&watch] { return watch->statuses(); });
  std::string why;
  try {
    return rank_main(*world, abort);
  } catch (const Aborted& other) {  // who failed has said why, or will
    why = fmt::format("rank {} gave up, and no rank says why: {}", job.rank(), other.what());
  } catch (const BadInput& problem) {
    abort.raise(Failure{Failure::Kind::bad_input, problem.what()});
  } catch (const std::exception& broken) {
    abort.raise(failure_of(job.rank(), "", broken));
  }
  watch->stay(why);
}

}  // namespace

int refuse_alone(const Launcher& launcher, const Diagnostics& problems) {
  const bool speaks = launcher.rank == 0 || launcher.kind == Launcher::Kind::torchrun;
  return speaks ? refuse(problems) : kBadInput;
}

int run_process(const Launcher& launched, double timeout_s, const JobFacts& asked,
                const RankMain& rank_main) {
  const Result<Launcher> joined = with_network(launched);
  if (!joined) return refuse_alone(launched, joined.problems());
  const Launcher& launcher = *joined;
  warn_of_strangers(launcher);
  JobFacts facts = asked;
  if (launcher.kind == Launcher::Kind::local) facts.launcher = ::getppid();
  try {
    const std::unique_ptr<ProcessJob> job = join(launcher, timeout_s);
    if (job) return run_rank(*job, timeout_s, facts, rank_main);
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

}  // namespace shardwise::exec
