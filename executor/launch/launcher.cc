#include "executor/launch/launcher.h"

#include <array>
#include <charconv>
#include <string_view>

namespace shardwise::exec {
namespace {

struct Signs {
  Launcher::Kind kind = Launcher::Kind::alone;
  const char* rank = nullptr;
  const char* ranks = nullptr;
  const char* also = nullptr;  // must be set as well
};
constexpr std::array<Signs, 3> kSigns = {
    Signs{Launcher::Kind::torchrun, "RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    Signs{Launcher::Kind::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
    Signs{Launcher::Kind::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_RANK"}};

int number(std::string_view text) {
  int value = 0;
  const std::from_chars_result read =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? value : 0;
}

}  // namespace

Launcher find_launcher(const std::function<const char*(const char*)>& variable) {
  for (const Signs& signs : kSigns) {
    const char* const ranks = variable(signs.ranks);
    if (ranks == nullptr || variable(signs.rank) == nullptr || variable(signs.also) == nullptr) {
      continue;
    }
    if (number(ranks) >= 1) return {signs.kind, number(ranks)};
  }
  return {};
}

std::string name_of(Launcher::Kind kind) {
  switch (kind) {
    case Launcher::Kind::torchrun:
      return "torchrun";
    case Launcher::Kind::slurm:
      return "srun";
    case Launcher::Kind::open_mpi:
      return "mpirun";
    case Launcher::Kind::alone:
      break;
  }
  return "no launcher";
}

}  // namespace shardwise::exec
