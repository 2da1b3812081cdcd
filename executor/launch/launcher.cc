#include "executor/launch/launcher.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace shardwise::exec {
namespace {

using Variable = std::function<const char*(const char*)>;

struct Signs {
  Launcher::Kind kind = Launcher::Kind::alone;
  const char* rank = nullptr;
  const char* ranks = nullptr;
  const char* also = nullptr;  // must be set as well
};
constexpr std::array<Signs, 3> kSigns = {
    Signs{Launcher::Kind::torchrun, "RANK", "WORLD_SIZE", "MASTER_PORT"},
    Signs{Launcher::Kind::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_RANK"},
    Signs{Launcher::Kind::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"}};

std::string text_of(const Variable& variable, const char* name) {
  const char* const text = variable(name);
  return text != nullptr ? text : "";
}

std::optional<std::int64_t> number_of(const Variable& variable, const char* name) {
  const std::string text = text_of(variable, name);
  std::int64_t value = 0;
  const std::from_chars_result read =
      std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

/// Slurm's own ports and those that systems give away by themselves (from 32768 on) are elsewhere.
constexpr int kSlurmFirstPort = 20'000;
constexpr std::int64_t kSlurmJobs = 700;

Rendezvous of_slurm(const Variable& variable) {
  const std::int64_t job = number_of(variable, "SLURM_JOB_ID").value_or(0);
  const std::int64_t step = number_of(variable, "SLURM_STEP_ID").value_or(0);
  Rendezvous at;
  at.host = text_of(variable, "MASTER_ADDR");
  if (at.host.empty()) at.host = first_host(text_of(variable, "SLURM_STEP_NODELIST"));
  const auto port = number_of(variable, "MASTER_PORT");
  at.first_port = port ? static_cast<int>(*port) + 1
                       : kSlurmFirstPort + at.ports * static_cast<int>((job + step) % kSlurmJobs);
  at.job = fmt::format("slurm {}.{}", job, step);
  return at;
}

Rendezvous of_torchrun(const Variable& variable) {
  Rendezvous at;
  at.host = text_of(variable, "MASTER_ADDR");
  at.first_port = static_cast<int>(number_of(variable, "MASTER_PORT").value_or(0)) + 1;
  at.job = fmt::format("torchrun {} {} {}", text_of(variable, "TORCHELASTIC_RUN_ID"),
                       text_of(variable, "TORCHELASTIC_RESTART_COUNT"), at.first_port);
  return at;
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

Launcher find_launcher(const Variable& variable) {
  for (const Signs& signs : kSigns) {
    const auto rank = number_of(variable, signs.rank);
    const auto ranks = number_of(variable, signs.ranks);
    if (!rank || !ranks || variable(signs.also) == nullptr) continue;
    if (*ranks < 1 || *rank < 0 || *rank >= *ranks) continue;
    Launcher found = {signs.kind, static_cast<int>(*rank), static_cast<int>(*ranks), std::nullopt};
    if (signs.kind == Launcher::Kind::torchrun) {
      if (variable("MASTER_ADDR") == nullptr) continue;
      found.rendezvous = of_torchrun(variable);
    } else if (signs.kind == Launcher::Kind::slurm && variable("PMIX_NAMESPACE") == nullptr) {
      found.rendezvous = of_slurm(variable);
    }
    return found;
  }
  return {};
}

Launcher find_launcher() {
  return find_launcher([](const char* name) { return std::getenv(name); });
}

std::string name_of(Launcher::Kind kind) {
  switch (kind) {
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
