#include "executor/launch/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace shardwise::exec {
namespace {

/// Every process has a connection to every other one, and a host has fewer ports than twice this.
constexpr std::int64_t kMostRanks = 65'536;
constexpr std::int64_t kMostPorts = 65'535;
constexpr std::int64_t kMostSlurmId = std::int64_t{1} << 32;
constexpr std::int64_t kMostRestarts = 1000000;

/// Slurm's own ports and those that systems give away by themselves (from 32768 on) are elsewhere.
constexpr int kSlurmFirstPort = 20'000;
constexpr std::int64_t kSlurmJobs = 700;

constexpr std::array kLocal = {kRankVariable, kRanksVariable};
constexpr std::array kTorchrun = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
constexpr std::array kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
constexpr std::array kSlurm = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"};

/// Variables by which other launchers number their processes; processes of theirs cannot find one
/// another here. Sources: the manuals of MPICH, Intel MPI, MVAPICH2, Flux (flux-environment(7)),
/// HPE PALS (palsd(8)), IBM Spectrum MPI and jsrun, Cray ALPS (aprun(1)), IBM Platform MPI and POE,
/// Horovod, torchrun.
struct OtherLauncher {
  const char* rank;
  const char* ranks;  // nullptr: it gives none
};
constexpr OtherLauncher kOthers[] = {{"PMI_RANK", "PMI_SIZE"},
                                     {"PMI_ID", nullptr},
                                     {"PMIX_RANK", nullptr},
                                     {"MPI_RANK", "MPI_SIZE"},
                                     {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
                                     {"MPI_RANKID", "MPI_NRANKS"},
                                     {"MPIRUN_RANK", "MPIRUN_NPROCS"},
                                     {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                                     {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
                                     {"PALS_RANKID", nullptr},
                                     {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
                                     {"ALPS_APP_PE", nullptr},
                                     {"MP_CHILD", "MP_PROCS"},
                                     {"HOROVOD_RANK", "HOROVOD_SIZE"},
                                     {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}};

template <std::size_t kCount>
bool all_set(const LauncherVariables& from, const std::array<const char*, kCount>& names) {
  return std::ranges::all_of(names, [&](const char* name) { return from.is_set(name); });
}

/// \returns whether any is missing
template <std::size_t kCount>
bool name_missing(LauncherVariables& from, const std::array<const char*, kCount>& names,
                  const std::string& launcher) {
  for (const char* const name : names) {
    if (from.is_set(name)) continue;
    from.refuse(name, fmt::format("is not set, and other variables of {} are", launcher),
                fmt::format("start with {}, or unset its variables to run alone", launcher));
  }
  return !from.problems().empty();
}

/// Rank and number of ranks, 0 of 1 after a problem.
Launcher read_ranks(LauncherVariables& from, Launcher::Kind kind, const char* rank,
                    const char* ranks) {
  Launcher found;
  found.kind = kind;
  found.ranks = static_cast<int>(from.required_number(ranks, 1, kMostRanks).value_or(1));
  const std::int64_t most = from.problems().empty() ? found.ranks - 1 : kMostRanks - 1;
  found.rank = static_cast<int>(from.required_number(rank, 0, most).value_or(0));
  return found;
}

/// The first port of a rendezvous behind MASTER_PORT: all of its ports must exist.
std::optional<int> ports_behind(LauncherVariables& from, int ports) {
  const std::optional<std::int64_t> port = from.number("MASTER_PORT", 1, kMostPorts - ports);
  return port ? std::optional(static_cast<int>(*port) + 1) : std::nullopt;
}

Launcher of_local(LauncherVariables& from) {
  Launcher found = read_ranks(from, Launcher::Kind::local, kRankVariable, kRanksVariable);
  Rendezvous at;
  at.host = "localhost";
  at.this_host_only = true;
  at.job = "shardwise-run";
  found.rendezvous = at;
  return found;
}

Launcher of_torchrun(LauncherVariables& from) {
  Launcher found = read_ranks(from, Launcher::Kind::torchrun, "RANK", "WORLD_SIZE");
  from.number("LOCAL_RANK", 0, found.ranks - 1);
  const auto local_ranks = from.number("LOCAL_WORLD_SIZE", 1, found.ranks);
  Rendezvous at;
  at.host = from.required_text("MASTER_ADDR", "a name or address of the host of rank 0");
  at.this_host_only = names_this_host(at.host) || local_ranks == found.ranks;
  at.first_port = ports_behind(from, at.ports).value_or(1);
  found.restart = from.number("TORCHELASTIC_RESTART_COUNT", 0, kMostRestarts).value_or(0);
  at.job = fmt::format("torchrun {} {} {}", from.text("TORCHELASTIC_RUN_ID"), found.restart,
                       at.first_port);
  found.rendezvous = at;
  return found;
}

Launcher of_slurm(LauncherVariables& from) {
  Launcher found = read_ranks(from, Launcher::Kind::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  found.restart = from.number("SLURM_RESTART_COUNT", 0, kMostRestarts).value_or(0);
  if (from.is_set("PMIX_NAMESPACE") || found.ranks == 1) return found;
  const std::int64_t job = from.number("SLURM_JOB_ID", 0, kMostSlurmId).value_or(0);
  const std::int64_t step = from.required_number("SLURM_STEP_ID", 0, kMostSlurmId).value_or(0);
  Rendezvous at;
  if (from.is_set("MASTER_ADDR")) {
    at.host = from.required_text("MASTER_ADDR", "a name or address of the host of rank 0");
  } else {
    found.host_variable = "SLURM_STEP_NODELIST";
    at.host = first_host(
        from.required_text("SLURM_STEP_NODELIST", "set MASTER_ADDR to the host of rank 0"));
  }
  const auto nodes = from.number("SLURM_STEP_NUM_NODES", 1, found.ranks);
  at.this_host_only = names_this_host(at.host) || nodes == 1;
  at.first_port =
      ports_behind(from, at.ports)
          .value_or(kSlurmFirstPort + at.ports * static_cast<int>((job + step) % kSlurmJobs));
  at.job = fmt::format("slurm {}.{}", job, step);
  found.rendezvous = at;
  return found;
}

/// Variables of launchers that are unknown here and would start every process alone. A job of one
/// process is alone.
void refuse_unknown(LauncherVariables& from) {
  const std::string hint = "start with Open MPI's mpirun, torchrun or srun, or unset it";
  for (const OtherLauncher& other : kOthers) {
    const bool counted = other.ranks != nullptr && from.is_set(other.ranks);
    const bool numbered = from.is_set(other.rank);
    if (!counted && !numbered) continue;
    if (!counted) {
      from.refuse(other.rank, "is set, but no variable gives the number of ranks", hint);
    } else if (from.text(other.ranks) != "1") {
      from.refuse(other.ranks, "processes of this launcher cannot find each other here", hint);
    } else if (numbered && from.text(other.rank) != "0") {
      from.refuse(other.rank, fmt::format("{}, but {} is 1", from.text(other.rank), other.ranks),
                  hint);
    }
  }
}

/// SLURM_PROCID without a step: 0 in a batch script, which is one process whatever SLURM_NTASKS
/// says, as srun has started none of its tasks yet.
void check_batch_script(LauncherVariables& from) {
  const bool step = from.is_set("SLURM_STEP_NUM_TASKS") || from.is_set("SLURM_STEP_ID");
  if (step || !from.is_set("SLURM_PROCID") || from.text("SLURM_PROCID") == "0") return;
  from.refuse("SLURM_PROCID",
              from.text("SLURM_PROCID") +
                  " is a task of srun, and SLURM_STEP_ID and "
                  "SLURM_STEP_NUM_TASKS are not set",
              "hand on all variables of srun, or unset SLURM_PROCID to run alone");
}

Launcher find(LauncherVariables& from) {
  if (from.is_set(kRankVariable) || from.is_set(kRanksVariable)) {
    return name_missing(from, kLocal, "shardwise-run") ? Launcher() : of_local(from);
  }
  if (all_set(from, kTorchrun)) return of_torchrun(from);
  const bool torchrun = from.is_set("RANK") || from.is_set("WORLD_SIZE");
  const bool slurm = from.is_set("SLURM_STEP_NUM_TASKS") || from.is_set("SLURM_STEP_ID");
  Launcher found;
  if (from.is_set(kOpenMpi[0]) || from.is_set(kOpenMpi[1])) {
    if (!name_missing(from, kOpenMpi, "mpirun")) {
      found = read_ranks(from, Launcher::Kind::open_mpi, kOpenMpi[0], kOpenMpi[1]);
    }
  } else if (slurm) {
    if (!name_missing(from, kSlurm, "srun")) found = of_slurm(from);
  } else if (torchrun) {
    name_missing(from, kTorchrun, "torchrun");
  } else {
    refuse_unknown(from);
    check_batch_script(from);
  }
  if (!from.problems().empty() || found.kind == Launcher::Kind::alone) return found;
  from.expect("RANK", found.rank, name_of(found.kind));
  from.expect("WORLD_SIZE", found.ranks, name_of(found.kind));
  return found;
}

}  // namespace

const char* Launcher::communicator() const {
  if (ranks == 1) return "threads";
  return rendezvous ? "sockets" : "MPI";
}

std::string first_host(const std::string& list) {
  const std::size_t end = list.find_first_of("[,");
  if (end == std::string::npos || list[end] == ',') return list.substr(0, end);
  const std::size_t from = end + 1;
  const std::string number = list.substr(from, list.find_first_of("-,]", from) - from);
  const std::size_t close = list.find(']', from);
  const std::string rest = close == std::string::npos ? "" : list.substr(close + 1);
  return list.substr(0, end) + number + rest.substr(0, rest.find(','));
}

Result<Launcher> find_launcher(const LauncherVariables::Variable& variable) {
  LauncherVariables from(variable);
  Launcher found = find(from);
  if (!from.problems().empty()) return from.problems();
  return found;
}

Result<Launcher> find_launcher() {
  return find_launcher([](const char* name) { return std::getenv(name); });
}

LauncherVariables own_variables() {
  return LauncherVariables([](const char* name) { return std::getenv(name); });
}

std::string name_of(Launcher::Kind kind) {
  switch (kind) {
    case Launcher::Kind::local:
      return "shardwise-run";
    case Launcher::Kind::torchrun:
      return "torchrun";
    case Launcher::Kind::open_mpi:
      return "mpirun";
    case Launcher::Kind::slurm:
      return "srun";
    case Launcher::Kind::alone:
      break;
  }
  return "no launcher";
}

}  // namespace shardwise::exec
