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
  const Launcher torch = found(
      {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "first"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(torch.kind, Launcher::Kind::torchrun);
  EXPECT_EQ(torch.rank, 3);
  EXPECT_EQ(torch.ranks, 8);
  ASSERT_TRUE(torch.rendezvous);
  EXPECT_EQ(torch.rendezvous->host, "first");
  EXPECT_EQ(torch.rendezvous->first_port, 29501);
  const Launcher slurm =
      found({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(slurm.kind, Launcher::Kind::slurm);
}

// Without PMIx, MPI would start a job of one process in each of them.
TEST(FindLauncher, HasProcessesOfSlurmMeetOnTheFirstHostWhereTheyHaveNoMpi) {
  std::map<std::string, std::string> step = {{"SLURM_PROCID", "1"},
                                             {"SLURM_STEP_NUM_TASKS", "2"},
                                             {"SLURM_JOB_ID", "701"},
                                             {"SLURM_STEP_ID", "2"},
                                             {"SLURM_STEP_NODELIST", "node[07-12],login"}};
  const Launcher plain = found(step);
  ASSERT_TRUE(plain.rendezvous);
  EXPECT_EQ(plain.rendezvous->host, "node07");
  EXPECT_EQ(plain.rendezvous->first_port, 20'000 + 3 * 16);
  EXPECT_EQ(plain.rendezvous->job, "slurm 701.2");
  step["PMIX_NAMESPACE"] = "slurm.pmix.701.2";
  EXPECT_FALSE(found(step).rendezvous);
}

TEST(FirstHost, IsThatOfSlurmsList) {
  EXPECT_EQ(first_host("alone"), "alone");
  EXPECT_EQ(first_host("one,two"), "one");
  EXPECT_EQ(first_host("node[1,3-4]"), "node1");
  EXPECT_EQ(first_host("rack[01-02]-blade,x"), "rack01-blade");
}

// mpirun inside a batch job sees the job's variables, but not those of a step; RANK and WORLD_SIZE
// are everybody's names.
TEST(FindLauncher, IsNotMisledByVariablesOfOthers) {
  EXPECT_EQ(found({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).kind, Launcher::Kind::alone);
  EXPECT_EQ(found({{"RANK", "0"}, {"WORLD_SIZE", "8"}}).kind, Launcher::Kind::alone);
  EXPECT_EQ(
      found({{"RANK", "8"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "x"}, {"MASTER_PORT", "1"}}).kind,
      Launcher::Kind::alone);
  EXPECT_EQ(found({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "many"}}).kind,
            Launcher::Kind::alone);
}

// mpirun may have srun start its own processes, which hand on what a step of theirs is told.
TEST(FindLauncher, PrefersTorchrunToMpiToSlurm) {
  std::map<std::string, std::string> all = {{"RANK", "0"},
                                            {"WORLD_SIZE", "2"},
                                            {"MASTER_ADDR", "x"},
                                            {"MASTER_PORT", "29500"},
                                            {"SLURM_PROCID", "0"},
                                            {"SLURM_STEP_NUM_TASKS", "3"},
                                            {"SLURM_STEP_ID", "0"},
                                            {"OMPI_COMM_WORLD_RANK", "0"},
                                            {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(found(all).ranks, 2);
  all.erase("MASTER_PORT");
  EXPECT_EQ(found(all).ranks, 4);
  all.erase("OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(found(all).ranks, 3);
}

}  // namespace
}  // namespace shardwise::exec
