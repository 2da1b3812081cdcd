#include "executor/launch/launcher.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace shardwise::exec {
namespace {

Launcher found(const std::map<std::string, std::string>& environment) {
  return find_launcher([&](const char* name) -> const char* {
    const auto at = environment.find(name);
    return at == environment.end() ? nullptr : at->second.c_str();
  });
}

TEST(FindLauncher, KnowsWhoStartedTheProcess) {
  EXPECT_EQ(found({}).kind, Launcher::Kind::alone);
  const Launcher mpi = found({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  EXPECT_EQ(mpi.kind, Launcher::Kind::open_mpi);
  EXPECT_EQ(mpi.ranks, 4);
  const Launcher torch =
      found({{"RANK", "0"}, {"WORLD_SIZE", "8"}, {"TORCHELASTIC_RUN_ID", "none"}});
  EXPECT_EQ(torch.kind, Launcher::Kind::torchrun);
  EXPECT_EQ(torch.ranks, 8);
  const Launcher slurm =
      found({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(slurm.kind, Launcher::Kind::slurm);
}

// mpirun inside a batch job sees the job's variables, but not those of a step; RANK and WORLD_SIZE
// are everybody's names.
TEST(FindLauncher, IsNotMisledByVariablesOfOthers) {
  EXPECT_EQ(found({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).kind, Launcher::Kind::alone);
  EXPECT_EQ(found({{"RANK", "0"}, {"WORLD_SIZE", "8"}}).kind, Launcher::Kind::alone);
  EXPECT_EQ(found({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "many"}}).kind,
            Launcher::Kind::alone);
}

TEST(FindLauncher, PrefersTorchrunToSlurmToMpi) {
  std::map<std::string, std::string> all = {{"RANK", "0"},
                                            {"WORLD_SIZE", "2"},
                                            {"TORCHELASTIC_RUN_ID", "x"},
                                            {"SLURM_PROCID", "0"},
                                            {"SLURM_STEP_NUM_TASKS", "3"},
                                            {"SLURM_STEP_ID", "0"},
                                            {"OMPI_COMM_WORLD_RANK", "0"},
                                            {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(found(all).ranks, 2);
  all.erase("TORCHELASTIC_RUN_ID");
  EXPECT_EQ(found(all).ranks, 3);
  all.erase("SLURM_STEP_ID");
  EXPECT_EQ(found(all).ranks, 4);
}

}  // namespace
}  // namespace shardwise::exec
