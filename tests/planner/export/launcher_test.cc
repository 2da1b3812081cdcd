#include "planner/export/launch/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/export/configuration/configuration.h"

namespace shardwise {
namespace {

using testing::HasSubstr;

Launch launch_of(const std::string& script) {
  const Result<ShellCommand> command = read_shell(script, "run.sh");
  EXPECT_TRUE(command.ok()) << to_string(command.problems());
  return command.ok() ? read_launch(*command, "run.sh") : Launch();
}

std::int64_t ranks_of(const std::string& script) {
  const Launch launch = launch_of(script);
  EXPECT_TRUE(launch.problems.empty()) << to_string(launch.problems);
  return launch.ranks;
}

TEST(Launchers, StateTheRanksInEverySpelling) {
  EXPECT_EQ(ranks_of("torchrun --nproc-per-node 8 --nnodes 4 x.py --a"), 32);
  EXPECT_EQ(ranks_of("torchrun --nproc_per_node=8 --nnodes=4 x.py --a"), 32);
  EXPECT_EQ(ranks_of("torchrun --nproc_per_node 8 x.py --a"), 8);
  EXPECT_EQ(ranks_of("python -m torch.distributed.run --nproc-per-node=8 --nnodes 2 x.py --a"), 16);
  EXPECT_EQ(ranks_of("python3 -u -m torch.distributed.launch --nproc_per_node 4 x.py --a"), 4);
  EXPECT_EQ(ranks_of("accelerate launch --num_processes 16 --num_machines 2 x.py --a"), 16);
  EXPECT_EQ(ranks_of("deepspeed --num_gpus 8 --num_nodes 3 x.py --deepspeed ds.json"), 24);
  EXPECT_EQ(ranks_of("srun -N4 --ntasks-per-node=8 python x.py --a"), 32);
  EXPECT_EQ(ranks_of("srun -l -N 4 --gpus-per-node=h100:8 python x.py --a"), 32);
  EXPECT_EQ(ranks_of("srun -n 48 python x.py --nodes 2"), 48);
  EXPECT_EQ(ranks_of("mpirun -np 12 python x.py --a"), 12);
}

TEST(Launchers, TakeFromSlurmWhatTheCommandLeavesOpen) {
  const std::string slurm = "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n";
  EXPECT_EQ(ranks_of(slurm + "srun python x.py --a"), 32);
  EXPECT_EQ(ranks_of(slurm + "srun --nodes 2 python x.py --a"), 16);
  EXPECT_EQ(ranks_of("#SBATCH -N 4\n#SBATCH --gpus-per-node=8\n#SBATCH --ntasks-per-node=1\n"
                     "srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 x.py --a"),
            32);
  EXPECT_EQ(ranks_of("#SBATCH -N 4\n#SBATCH --gres=gpu:8\nsrun torchrun --nproc_per_node gpu x.py"),
            32);
  EXPECT_EQ(ranks_of(slurm + "torchrun --nnodes 1 --nproc_per_node 2 x.py --a"), 2);
}

TEST(Launchers, KnowTheVariablesThatSlurmSetsForItsLines) {
  const std::string slurm = "#!/bin/bash\n#SBATCH -N 4\n#SBATCH --gpus-per-node=h100:8\n";
  EXPECT_EQ(ranks_of(slurm + "accelerate launch --num_processes $((SLURM_NNODES * 8)) x.py --a"),
            32);
  EXPECT_EQ(ranks_of(slurm + "G=$SLURM_GPUS_ON_NODE\nN=${SLURM_JOB_NUM_NODES:-1}\n"
                             "torchrun --nnodes $N --nproc_per_node $G x.py --a"),
            32);
  EXPECT_EQ(ranks_of("#SBATCH -N 2\n#SBATCH --gpus-per-node=4\n"
                     "torchrun --nnodes 2 --nproc_per_node $SLURM_GPUS_PER_NODE x.py --a"),
            8);
  EXPECT_EQ(ranks_of("#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\n"
                     "accelerate launch --num_processes $SLURM_NTASKS x.py --a"),
            8);
  // A step of two nodes, and one of all.
  const std::string inner = " bash -c 'torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 x.py'";
  EXPECT_EQ(ranks_of(slurm + "srun -N 2" + inner), 16);
  EXPECT_EQ(ranks_of(slurm + "srun --verbose --nodes=2" + inner), 16);
  EXPECT_EQ(ranks_of(slurm + "srun" + inner), 32);
}

TEST(Launchers, SayWhatTheyDoNotKnow) {
  const Launch nodes = launch_of("torchrun --nnodes $N --nproc_per_node 8 x.py --a");
  EXPECT_EQ(nodes.ranks, 0);  // 8 would be wrong
  ASSERT_EQ(nodes.notes.size(), 1U);
  EXPECT_THAT(to_string(nodes.notes), HasSubstr("run.sh:1:10: --nnodes: $N is not known"));
  const Launch words = launch_of("torchrun ${ARGS[@]} x.py --a");
  EXPECT_EQ(words.arguments, 3U);
  EXPECT_THAT(to_string(words.notes), HasSubstr("words of the launcher are not known: ${ARGS[@]}"));
  const Launch hint =
      launch_of("accelerate launch --num_processes 8 --config_file f.yaml x.py --a");
  EXPECT_EQ(hint.ranks, 8);
  EXPECT_THAT(to_string(hint.notes), HasSubstr("--config-file: f.yaml is not read"));
}

std::string deepspeed(const std::string& words, const std::string& hosts = "") {
  const Result<ShellCommand> command = read_shell("deepspeed " + words + " x.py --a", "run.sh");
  GivenFiles given;
  if (!hosts.empty()) given.hosts = *read_host_file(hosts, "hosts");
  const Launch launch = read_launch(*command, "run.sh", given);
  if (!launch.problems.empty()) return to_string(launch.problems);
  return launch.notes.empty() ? std::to_string(launch.ranks) : to_string(launch.notes);
}

// Each number is that of deepspeed 0.19.8: parse_inclusion_exclusion and apply_num_nodes_and_gpus
// of its launcher/runner.py, on the hosts that _parse_hostfile reads.
TEST(Launchers, CountTheHostsThatDeepspeedTakes) {
  const std::string hosts = "# nodes\nw0 slots=8\n\nw1   slots=8 max_slots=9\nw2 slots=4\n";
  EXPECT_EQ(deepspeed("--hostfile /job/hosts", hosts), "20");
  EXPECT_EQ(deepspeed("", hosts), "20");
  EXPECT_EQ(deepspeed("-H h --include w0@w1:0,2", hosts), "10");
  EXPECT_EQ(deepspeed("-i w1:0,1,1@w1:3", hosts), "3");
  EXPECT_EQ(deepspeed("--exclude=w0:0@w2", hosts), "15");
  EXPECT_EQ(deepspeed("-e w0:7", hosts), "19");
  EXPECT_EQ(deepspeed("--num_nodes 2", hosts), "16");
  EXPECT_EQ(deepspeed("--num_nodes=9", hosts), "20");
  EXPECT_EQ(deepspeed("--num_gpus 2", hosts), "6");
  EXPECT_EQ(deepspeed("--num_nodes 1 --num_accelerators 16", hosts), "16");
  EXPECT_EQ(deepspeed("--num_nodes -1 --num_gpus -1", hosts), "20");
  // Without the hostfile, what the flags say alone.
  EXPECT_EQ(deepspeed("--include h1:0,1@h2:4"), "3");
  EXPECT_EQ(deepspeed("--include localhost:0,1,2,3"), "4");
  EXPECT_EQ(deepspeed("--hostfile h --num_nodes 4 --num_gpus 8"), "32");
  EXPECT_EQ(deepspeed("--num_gpus 8"), "8");
  EXPECT_EQ(ranks_of("CUDA_VISIBLE_DEVICES=0,1,5 deepspeed x.py --a"), 3);
  EXPECT_EQ(ranks_of("CUDA_VISIBLE_DEVICES=0,1,5 deepspeed --num_gpus 8 x.py --a"), 8);
}

TEST(Launchers, SayWhichHostsOfDeepspeedAreNotKnown) {
  EXPECT_EQ(deepspeed("--hostfile /job/h"),
            "run.sh:1:11: --hostfile: /job/h is not read\n"
            "    give the hostfile too, or the ranks as --gpus\n1 problem, nothing was run\n");
  EXPECT_THAT(deepspeed("-H h --num_gpus 8"), HasSubstr("-H: h is not read"));
  EXPECT_THAT(deepspeed("--include h1:0,1@h2"), HasSubstr("how many GPUs h2 has is not known"));
  EXPECT_THAT(deepspeed("--exclude h1:0"), HasSubstr("how many GPUs the job has is not known"));
  EXPECT_THAT(deepspeed("--include $NODES"), HasSubstr("--include: $NODES is not known"));
  EXPECT_THAT(deepspeed("--num_nodes $N", "w0 slots=8"), HasSubstr("--num-nodes: $N is not known"));
}

TEST(Launchers, RefuseWhatDeepspeedRefuses) {
  const std::string hosts = "w0 slots=8\nw1 slots=8\n";
  EXPECT_THAT(deepspeed("--include w0 --num_gpus 4", hosts),
              HasSubstr("run.sh:1:24: --num-gpus: deepspeed refuses it beside --include"));
  EXPECT_THAT(deepspeed("--include w0 --exclude w1", hosts),
              HasSubstr("--exclude: deepspeed refuses it beside --include"));
  EXPECT_THAT(deepspeed("--include w9", hosts),
              HasSubstr("--include: hosts has no host w9\n    one of its hosts: w0, w1"));
  EXPECT_THAT(deepspeed("--exclude w0:8", hosts), HasSubstr("slot 8 of w0, which has 8"));
  EXPECT_THAT(deepspeed("--exclude w0@w1", hosts), HasSubstr("leaves no rank"));
  for (const char* words : {"w0:a", "w0:1:2", "w0:", "w0:-1", "w0:0,"}) {
    EXPECT_THAT(deepspeed(std::string("--include ") + words, hosts),
                HasSubstr("is no list of hosts and slots"))
        << words;
  }
  EXPECT_THAT(to_string(read_host_file("w0 slots=8\nw0 slots=8\n", "h").problems()),
              HasSubstr("h:2: w0 stands there twice"));
  EXPECT_THAT(to_string(read_host_file("w0 slots=8\nw1 8\n", "h").problems()),
              HasSubstr("h:2: w1 8 is no host\n    lines of a hostfile are NAME slots=N"));
}

TEST(Launchers, RefuseCountsThatAreNone) {
  for (const std::string value : {"0", "-1", "x", "2:4", "99999999999", "4.0"}) {
    const Launch launch = launch_of("torchrun --nnodes=" + value + " --nproc_per_node 8 x.py --a");
    ASSERT_EQ(launch.problems.size(), 1U) << value;
    EXPECT_THAT(to_string(launch.problems),
                HasSubstr("--nnodes: " + value + " is not a whole number from 1 to"));
  }
  EXPECT_EQ(launch_of("torchrun --nnodes 4194304 --nproc_per_node 4194304 x.py").problems.size(),
            1U);
  EXPECT_EQ(
      launch_of("#SBATCH --nodes=2-4\n#SBATCH --ntasks-per-node=8\nsrun x.py").problems.size(), 1U);
}

TEST(Launchers, EndBeforeTheArguments) {
  const auto end = [](const std::string& text) { return launch_of(text).arguments; };
  EXPECT_EQ(end("--spec a.py --b"), 0U);
  EXPECT_EQ(end("torchrun --nnodes 1 $SCRIPT --b c.py"), 4U);
  EXPECT_EQ(end("torchrun --nnodes 1 -m torchtitan.train --b"), 5U);
  EXPECT_EQ(end("torchrun --standalone train --b"), 3U);
  EXPECT_EQ(end("accelerate launch --use_fsdp -m a.b --c"), 5U);
  EXPECT_EQ(end("python -u -m a.b --c"), 4U);
  EXPECT_EQ(end("nsys profile --trace=cuda -o f python -m torch.distributed.run --nnodes 1 x --b"),
            11U);
  EXPECT_EQ(end("srun -l --label -N 2 ./train --b"), 6U);
  EXPECT_EQ(end("torchrun --no-python python x.py --b"), 4U);
  EXPECT_EQ(end("./pretrain a --b"), 2U);
}

TEST(Launchers, KeepNoWordOfTheirsAsASetting) {
  const Result<Configuration> made =
      configuration_of_words({"torchrun", "--nproc-per-node", "8", "train", "--bf16"});
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->settings.size(), 1U);
  EXPECT_EQ(made->settings[0].name, "--bf16");
  EXPECT_EQ(made->ranks, 8);
  EXPECT_FALSE(configuration_of_words({"torchrun", "x.py", "--a", "b\x1b[2J"}).ok());
}

}  // namespace
}  // namespace shardwise
