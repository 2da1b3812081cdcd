#include "executor/launch/launcher.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace shardwise::exec {
namespace {

using Environment = std::map<std::string, std::string>;

Result<Launcher> read(const Environment& environment) {
  return find_launcher([&](const char* name) -> const char* {
    const auto at = environment.find(name);
    return at == environment.end() ? nullptr : at->second.c_str();
  });
}

Launcher found(const Environment& environment) {
  const Result<Launcher> launcher = read(environment);
  if (launcher) return *launcher;
  ADD_FAILURE() << to_string(launcher.problems());
  return {};
}

/// The problem of the variable that is the only wrong one.
std::string refused(const Environment& environment) {
  const Result<Launcher> launcher = read(environment);
  if (launcher) return "believed";
  EXPECT_EQ(launcher.problems().size(), 1) << to_string(launcher.problems());
  return to_string(launcher.problems().front()) + "\n";
}

Environment torchrun() {
  return {
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
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
  const Launcher slurm = found({{"SLURM_PROCID", "1"},
                                {"SLURM_STEP_NUM_TASKS", "2"},
                                {"SLURM_STEP_ID", "0"},
                                {"SLURM_STEP_NODELIST", "one"}});
  EXPECT_EQ(slurm.kind, Launcher::Kind::slurm);
}

// shardwise-run that torchrun or a batch script started alone may have started its own ranks.
TEST(FindLauncher, BelievesShardwiseRunBeforeAnyOther) {
  Environment environment = torchrun();
  environment["WORLD_SIZE"] = "1";
  environment["SHARDWISE_RANK"] = "1";
  environment["SHARDWISE_RANKS"] = "3";
  const Launcher local = found(environment);
  EXPECT_EQ(local.kind, Launcher::Kind::local);
  EXPECT_EQ(local.rank, 1);
  EXPECT_EQ(local.ranks, 3);
  EXPECT_STREQ(local.communicator(), "sockets");
  ASSERT_TRUE(local.rendezvous);
  EXPECT_TRUE(local.rendezvous->this_host_only);
  EXPECT_NE(refused({{"SHARDWISE_RANK", "0"}}).find("SHARDWISE_RANKS: is not set"),
            std::string::npos);
  EXPECT_NE(refused({{"SHARDWISE_RANK", "2"}, {"SHARDWISE_RANKS", "2"}}).find("SHARDWISE_RANK"),
            std::string::npos);
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

// mpirun inside a batch job sees the job's variables, but not those of a step.
TEST(FindLauncher, IsNotMisledByVariablesOfOthers) {
  EXPECT_EQ(found({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).kind, Launcher::Kind::alone);
  EXPECT_EQ(found({{"MASTER_ADDR", "x"}, {"MASTER_PORT", "many"}}).kind, Launcher::Kind::alone);
}

struct Wrong {
  const char* name;
  const char* value;
  const char* message;
};

// (D6, D16): each of these once trained the whole job alone, or could never meet.
TEST(FindLauncher, RefusesAValueThatCannotBeUsedByItsName) {
  constexpr const char* kPort = " is not a whole number from 1 to 65519\n";
  constexpr const char* kRanks = " is not a whole number from 1 to 65536\n";
  const std::vector<Wrong> all = {
      {"RANK", "2", " is not a whole number from 0 to 1\n"},
      {"RANK", "-1", " is not a whole number from 0 to 1\n"},
      {"RANK", "x", " is not a whole number from 0 to 1\n"},
      {"RANK", "0x1", " is not a whole number from 0 to 1\n"},
      {"RANK", "1 ", " is not a whole number from 0 to 1\n"},
      {"LOCAL_RANK", "x", " is not a whole number from 0 to 1\n"},
      {"LOCAL_RANK", "2", " is not a whole number from 0 to 1\n"},
      {"LOCAL_WORLD_SIZE", "3", " is not a whole number from 1 to 2\n"},
      {"WORLD_SIZE", "0", kRanks},
      {"WORLD_SIZE", "-2", kRanks},
      {"WORLD_SIZE", "1000000", kRanks},
      {"WORLD_SIZE", "1000000000", kRanks},
      {"WORLD_SIZE", "2147483648", kRanks},
      {"WORLD_SIZE", "99999999999999999999", kRanks},
      {"MASTER_PORT", "abc", kPort},
      {"MASTER_PORT", "-5", kPort},
      {"MASTER_PORT", "0", kPort},
      {"MASTER_PORT", "99999", kPort},
      {"MASTER_PORT", "65535", kPort},
      {"MASTER_PORT", "65520", kPort},
  };
  for (const Wrong& each : all) {
    Environment environment = torchrun();
    environment[each.name] = each.value;
    EXPECT_EQ(refused(environment),
              std::string("environment: ") + each.name + ": " + each.value + each.message);
  }
  Environment last = torchrun();
  last["MASTER_PORT"] = "65519";
  EXPECT_EQ(found(last).rendezvous->first_port + found(last).rendezvous->ports - 1, 65535);
}

TEST(FindLauncher, RefusesAnEmptyValue) {
  for (const char* const name : {"RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR"}) {
    Environment environment = torchrun();
    environment[name] = "";
    EXPECT_NE(refused(environment).find(" empty"), std::string::npos) << name;
  }
}

// (D6): with RANK and WORLD_SIZE alone each process once trained the whole job.
TEST(FindLauncher, RefusesASetOfWhichAPartIsMissing) {
  for (const char* const name : {"RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR"}) {
    Environment environment = torchrun();
    environment.erase(name);
    EXPECT_EQ(refused(environment),
              std::string("environment: ") + name +
                  ": is not set, and other variables of torchrun are\n    start with torchrun, or "
                  "unset its variables to run alone\n");
  }
  EXPECT_EQ(refused({{"OMPI_COMM_WORLD_RANK", "0"}}).substr(0, 48),
            "environment: OMPI_COMM_WORLD_SIZE: is not set, a");
  EXPECT_EQ(refused({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "0"}}).substr(0, 40),
            "environment: SLURM_PROCID: is not set, a");
}

TEST(FindLauncher, RefusesBrokenVariablesOfMpirunAndSrun) {
  EXPECT_EQ(refused({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "many"}}),
            "environment: OMPI_COMM_WORLD_SIZE: many is not a whole number from 1 to 65536\n");
  const Environment step = {{"SLURM_PROCID", "1"},
                            {"SLURM_STEP_NUM_TASKS", "2"},
                            {"SLURM_STEP_ID", "0"},
                            {"SLURM_STEP_NODELIST", "one"}};
  EXPECT_EQ(found(step).ranks, 2);
  const std::vector<Wrong> all = {
      {"SLURM_PROCID", "2", " is not a whole number from 0 to 1\n"},
      {"SLURM_STEP_NUM_TASKS", "0", " is not a whole number from 1 to 65536\n"},
      {"SLURM_STEP_ID", "first", " is not a whole number from 0 to 4294967296\n"},
      {"SLURM_JOB_ID", "9e3", " is not a whole number from 0 to 4294967296\n"},
      {"MASTER_PORT", "65535", " is not a whole number from 1 to 65519\n"},
  };
  for (const Wrong& each : all) {
    Environment environment = step;
    environment[each.name] = each.value;
    EXPECT_EQ(refused(environment),
              std::string("environment: ") + each.name + ": " + each.value + each.message);
  }
}

// Processes of MPICH's mpirun, for one, would each have been alone.
TEST(FindLauncher, RefusesLaunchersThatItDoesNotKnow) {
  EXPECT_NE(refused({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}), "believed");
  EXPECT_NE(refused({{"PMIX_RANK", "1"}}), "believed");
  EXPECT_NE(refused({{"LOCAL_RANK", "1"}}), "believed");
  EXPECT_EQ(refused({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}), "believed");
}

// Each of these once trained the whole job alone, with exit code 0.
TEST(FindLauncher, RefusesAnyRankThatItsOwnLaunchersDidNotGive) {
  struct Set {
    const char* rank;
    const char* ranks;
  };
  const Set all[] = {{"PMI_RANK", "PMI_SIZE"},
                     {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                     {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
                     {"MPI_RANK", "MPI_SIZE"},
                     {"MPI_RANKID", "MPI_NRANKS"},
                     {"MPIRUN_RANK", "MPIRUN_NPROCS"},
                     {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
                     {"HOROVOD_RANK", "HOROVOD_SIZE"},
                     {"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
                     {"PMIX_RANK", nullptr},
                     {"PALS_RANKID", nullptr},
                     {"ALPS_APP_PE", nullptr}};
  for (const Set& each : all) {
    const auto names = [](const Environment& environment, const char* name) {
      const std::string said = refused(environment);
      EXPECT_EQ(said.rfind(std::string("environment: ") + name + ": ", 0), 0U) << said;
    };
    names({{each.rank, "0"}}, each.rank);
    names({{each.rank, "1"}}, each.rank);
    if (each.ranks == nullptr) continue;
    names({{each.ranks, "2"}}, each.ranks);
    names({{each.ranks, ""}}, each.ranks);
    names({{each.rank, "1"}, {each.ranks, "2"}}, each.ranks);
    names({{each.rank, "1"}, {each.ranks, "1"}}, each.rank);
    EXPECT_EQ(found({{each.rank, "0"}, {each.ranks, "1"}}).kind, Launcher::Kind::alone);
  }
}

// A batch script is one process before srun starts tasks; a task's number needs its step.
TEST(FindLauncher, KnowsABatchScriptOfSlurmFromATask) {
  Environment batch = {{"SLURM_JOB_ID", "3"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}};
  EXPECT_EQ(found(batch).kind, Launcher::Kind::alone);
  for (const char* const tasks : {"1", "2"}) {
    batch["SLURM_NTASKS"] = tasks;
    EXPECT_EQ(found(batch).kind, Launcher::Kind::alone) << tasks;
  }
  for (const char* const rank : {"1", "", "x"}) {
    batch["SLURM_PROCID"] = rank;
    EXPECT_EQ(refused(batch).rfind("environment: SLURM_PROCID: ", 0), 0U) << rank;
  }
}

// Then they meet at a local socket, and no network is listened to.
TEST(FindLauncher, KnowsWhereAllRanksAreOfOneHost) {
  Environment environment = torchrun();
  for (const char* const host : {"127.0.0.1", "127.0.1.1", "localhost", "::1"}) {
    environment["MASTER_ADDR"] = host;
    EXPECT_TRUE(found(environment).rendezvous->this_host_only) << host;
  }
  for (const char* const host : {"node7", "10.0.0.1", "127.example.org", "0.0.0.0"}) {
    environment["MASTER_ADDR"] = host;
    EXPECT_FALSE(found(environment).rendezvous->this_host_only) << host;
  }
  environment["LOCAL_WORLD_SIZE"] = "1";
  EXPECT_FALSE(found(environment).rendezvous->this_host_only);
  environment["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_TRUE(found(environment).rendezvous->this_host_only);
  Environment step = {{"SLURM_PROCID", "1"},
                      {"SLURM_STEP_NUM_TASKS", "2"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_STEP_NODELIST", "one"},
                      {"SLURM_STEP_NUM_NODES", "2"}};
  EXPECT_FALSE(found(step).rendezvous->this_host_only);
  step["SLURM_STEP_NUM_NODES"] = "1";
  EXPECT_TRUE(found(step).rendezvous->this_host_only);
}

// Batch scripts set WORLD_SIZE for programs that read it beside SLURM_PROCID.
TEST(FindLauncher, WantsRankAndWorldSizeToAgreeWithTheLauncherBesideThem) {
  Environment mpi = {
      {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"WORLD_SIZE", "4"}};
  EXPECT_EQ(found(mpi).rank, 1);
  mpi["WORLD_SIZE"] = "2";
  EXPECT_EQ(
      refused(mpi),
      "environment: WORLD_SIZE: 2 contradicts mpirun, which gives 4\n    unset WORLD_SIZE, or "
      "set it to 4\n");
  mpi["WORLD_SIZE"] = "4";
  mpi["RANK"] = "zero";
  EXPECT_NE(refused(mpi), "believed");
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
                                            {"SLURM_STEP_NODELIST", "one"},
                                            {"OMPI_COMM_WORLD_RANK", "0"},
                                            {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(found(all).ranks, 2);
  all.erase("MASTER_PORT");
  all.erase("RANK");
  all.erase("WORLD_SIZE");
  EXPECT_EQ(found(all).ranks, 4);
  all.erase("OMPI_COMM_WORLD_RANK");
  all.erase("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(found(all).ranks, 3);
}

}  // namespace
}  // namespace shardwise::exec
