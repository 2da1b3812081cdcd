#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "executor/data/random.h"
#include "executor/launch/executable.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using shardwise::test::shardwise_run;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ShardwiseRun, NamesEverythingThatAPlanNeedsAndIsNotExecutable) {
  const Scratch scratch;
  Plan plan = tiny_plan("deepspeed", 1, 2, 1);
  plan.job.precision = DType::fp16;
  plan.job.optimizer = Optimizer::sgd;
  plan.job.dropout = 0.1;
  const Outcome refused = shardwise_run({scratch.write(plan), "--data", "README.md"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_THAT(refused.err, HasSubstr("/engine/name: deepspeed cannot be executed\n    shardwise, "
                                     "megatron_ddp, megatron_fsdp, fsdp2, fsdp1 are"));
  EXPECT_THAT(refused.err, HasSubstr("/job/precision: fp16 is neither fp32 nor bf16\n"));
  EXPECT_THAT(refused.err, HasSubstr("/job/dropout: there is none, 0 is executable\n"));
  EXPECT_THAT(refused.err, HasSubstr("/job/optimizer: sgd cannot be executed\n    adamw is"));
}

TEST(ShardwiseRun, RefusesAnAdamwThatNoKernelOfOursIs) {
  Plan plan = tiny_plan("fsdp1", 1, 2, 1);
  plan.job.adamw = AdamwKernel::paged;
  EXPECT_THAT(to_string(cannot_execute(plan)),
              HasSubstr("/job/adamw: paged cannot be executed\n    fused is"));
}

// Our engine alone updates bf16 weights without a wider copy.
TEST(ShardwiseRun, RefusesMainWeightsThatNoKernelUpdates) {
  const Scratch scratch;
  const auto refusal_of = [&](const char* engine, DType precision, DType main_dtype) {
    Plan plan = tiny_plan(engine, 1, 2, 1);
    plan.job.precision = precision;
    plan.job.main_dtype = main_dtype;
    return shardwise_run({scratch.write(plan), "--data", "README.md", "--steps", "2"}).err;
  };
  const char* const hint =
      "cannot be executed\n    fp32 is, and bf16 with precision bf16 and engine shardwise";
  EXPECT_THAT(refusal_of("megatron_ddp", DType::bf16, DType::bf16),
              HasSubstr("/job/main_dtype: megatron_ddp has no bf16 main weights"));
  EXPECT_THAT(refusal_of("megatron_fsdp", DType::bf16, DType::bf16),
              HasSubstr(std::string("/job/main_dtype: bf16 ") + hint));
  EXPECT_THAT(refusal_of("shardwise", DType::fp32, DType::bf16),
              HasSubstr(std::string("/job/main_dtype: bf16 ") + hint));
  EXPECT_THAT(refusal_of("shardwise", DType::bf16, DType::fp16),
              HasSubstr(std::string("/job/main_dtype: fp16 ") + hint));
  EXPECT_EQ(refusal_of("shardwise", DType::bf16, DType::bf16), "");
}

TEST(ShardwiseRun, RefusesOtherNumbersOfRanksThanThePlans) {
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 0, 2, 1));
  const Outcome refused = shardwise_run({plan, "--data", "README.md", "--ranks", "3"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--ranks: the plan is for 2 ranks"));
}

// Each rank would run its own program, and the losses would be those of neither plan.
TEST(ShardwiseRun, RefusesRanksOfDifferentPlans) {
  const Scratch scratch;
  Plan plan = tiny_plan("shardwise", 3, 2, 1);
  static_cast<void>(scratch.write(plan, "plan-0.json"));
  plan.job.sequence_length /= 2;
  const std::string second = scratch.write(plan, "plan-1.json");
  const std::string each = R"(exec "$0" train "$1/plan-$RANK.json" --steps 2)";
  const std::string folder = std::filesystem::path(second).parent_path();
  const Outcome refused = run_program("tests/executor/support/start_ranks.sh",
                                      {"2", "sh", "-c", each, built("shardwise-run"), folder});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_THAT(refused.err, HasSubstr(second + ": rank 1 has another plan than rank 0\n"
                                              "    start every rank with the same plan.json\n"));
}

/// One process, as a launcher with these variables starts it, of a plan of two ranks.
Outcome run_in(std::vector<std::string> environment,
               const std::vector<std::string>& arguments = {}) {
  const Scratch scratch;
  environment.push_back(built("shardwise-run"));
  environment.push_back(scratch.write(tiny_plan("shardwise", 0, 2, 1)));
  for (const char* const each : {"--data", "README.md", "--steps", "1"}) {
    environment.emplace_back(each);
  }
  environment.insert(environment.end(), arguments.begin(), arguments.end());
  return run_program("env", environment);
}

// (D6): a process once took a broken environment for none and trained all ranks as threads.
TEST(ShardwiseRun, NeverTrainsAloneBecauseOfABrokenVariable) {
  const Outcome rank =
      run_in({"RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"});
  EXPECT_EQ(rank.exit_code, 2);
  EXPECT_THAT(rank.out, IsEmpty());
  EXPECT_EQ(rank.err,
            "environment: RANK: 2 is not a whole number from 0 to 1\n1 problem, nothing was run\n");
  const Outcome partial = run_in({"RANK=0", "WORLD_SIZE=2"});
  EXPECT_EQ(partial.exit_code, 2);
  EXPECT_THAT(partial.err, HasSubstr("environment: MASTER_ADDR: is not set"));
  EXPECT_THAT(partial.err, HasSubstr("environment: MASTER_PORT: is not set"));
  const Outcome alone =
      run_in({"RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("torchrun started 1 process, the plan is for 2 ranks\n    start "
                                   "2, or make a plan for 1, or --ranks 2 for threads"));
  const Outcome calibrated =
      run_program("env", {"RANK=x", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500",
                          built("shardwise-run"), "calibrate", "-o", "/dev/null"});
  EXPECT_EQ(calibrated.exit_code, 2);
  EXPECT_THAT(calibrated.err, HasSubstr("environment: RANK: x is not a whole number"));
}

// Each process once trained the whole job alone, with exit code 0; a catalogue that is not there
// was passed over.
TEST(ShardwiseRun, EndsWhereTheEnvironmentNamesWhatIsNotThere) {
  const std::pair<std::vector<std::string>, const char*> all[] = {
      {{"SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_JOB_ID=3"}, "SLURM_PROCID"},
      {{"MV2_COMM_WORLD_RANK=0", "MV2_COMM_WORLD_SIZE=2"}, "MV2_COMM_WORLD_SIZE"},
      {{"PALS_RANKID=0"}, "PALS_RANKID"},
      {{"LOCAL_WORLD_SIZE=2"}, "LOCAL_WORLD_SIZE"},
      {{"SHARDWISE_CONFIGS=/nope"}, "SHARDWISE_CONFIGS"}};
  for (const auto& [variables, name] : all) {
    const Outcome ended = run_in(variables);
    EXPECT_EQ(ended.exit_code, 2) << name;
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_THAT(ended.err, HasSubstr(std::string("environment: ") + name + ": "));
  }
}

// (D16): these once were found only when all had met, or never.
TEST(ShardwiseRun, ComparesRanksWithThePlanAndFindsItsHostBeforeItMeetsOthers) {
  const Outcome ranks =
      run_in({"RANK=1", "WORLD_SIZE=60000", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"});
  EXPECT_EQ(ranks.exit_code, 2);
  EXPECT_THAT(ranks.err,
              HasSubstr("torchrun: torchrun started 60000 processes, the plan is for 2 ranks\n"));
  const Outcome host =
      run_in({"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=no.such.host.invalid", "MASTER_PORT=29500"});
  EXPECT_EQ(host.exit_code, 2);
  EXPECT_THAT(host.err,
              HasSubstr("environment: MASTER_ADDR: no.such.host.invalid does not resolve: "));
}

// (D15): these once hung for twice the timeout, aborted, or did not end.
TEST(ShardwiseRun, EndsAtOnceWhereThreadsHaveNoRoom) {
  if (shardwise::test::kSanitized) GTEST_SKIP() << "sanitizers need address space themselves";
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 3, 4, 1));
  for (const auto& [limit, threads] :
       {std::pair("600000", "1"), std::pair("900000", "1"), std::pair("11000000", "1024")}) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome ended =
        run_program("bash", {"-c", "ulimit -v \"$1\" && shift && exec \"$@\"", "run", limit,
                             built("shardwise-run"), plan, "--data", "README.md", "--steps", "2",
                             "--threads", threads, "--timeout", "60"});
    EXPECT_EQ(ended.exit_code, 3) << limit << ": " << ended.err;
    EXPECT_THAT(ended.err, testing::ContainsRegex("no room for the buffers|cannot be started|"
                                                  "out of memory"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  }
}

// Threads have the stack of ulimit -s: a small one once ended the run by a signal, without a word.
TEST(ShardwiseRun, SaysHowMuchStackItNeedsOrTakesIt) {
  if (shardwise::test::kSanitized) GTEST_SKIP() << "sanitizers need more stack themselves";
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 3, 2, 1));
  for (const auto& [limit, code] :
       {std::pair("ulimit -s 256", 3), std::pair("ulimit -Ss 256", 0)}) {
    const Outcome ended =
        run_program("bash", {"-c", limit + std::string(" && exec \"$@\""), "run",
                             built("shardwise-run"), plan, "--data", "README.md", "--steps", "1"});
    EXPECT_EQ(ended.exit_code, code) << ended.err;
    if (code == 0) continue;
    EXPECT_EQ(ended.err,
              "shardwise-run: the stack is limited to 256 KiB, and 1024 are needed (see "
              "ulimit -s)\n");
  }
}

TEST(ShardwiseRun, RefusesFilesThatAreNotThere) {
  const Outcome no_plan = shardwise_run({"no-plan.json", "--data", "README.md"});
  EXPECT_EQ(no_plan.exit_code, 2);
  EXPECT_THAT(no_plan.err, HasSubstr("no-plan.json: no such file"));
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 0, 2, 1));
  const Outcome no_text = shardwise_run({plan, "--data", "no-text"});
  EXPECT_EQ(no_text.exit_code, 2);
  EXPECT_THAT(no_text.err, HasSubstr("no-text: --data: no such file"));
}

TEST(ShardwiseRun, RefusesTokensThatTheModelDoesNotHave) {
  const Scratch scratch;
  Plan plan = tiny_plan("shardwise", 0, 1, 1);
  plan.model = shardwise::test::llama(2, 32, 88, 4, 2, 96);
  plan.model.model_type = "llama";
  const Outcome refused = shardwise_run({scratch.write(plan)});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("founding-documents.txt: --data: token 104 at position 1 is outside the "
                        "model's vocabulary of 96"));
}

// Of a long file the tokens behind the first 2^26 are looked at when a step reads them. The file is
// zeros that no disk holds, but for one token of the first sequence, wherever the seed has that.
TEST(ShardwiseRun, EndsAsBadInputWhereAStepMeetsATokenThatTheModelDoesNotHave) {
  constexpr std::int64_t kLookedAt = std::int64_t{1} << 26;
  constexpr std::int64_t kSequence = 32;
  constexpr std::int64_t kWindows = 2 * kLookedAt / kSequence;
  std::int64_t first = 0;
  std::uint64_t seed = 0;
  while (first < kLookedAt) {
    const std::uint64_t drawn = random_bits(seed_of(++seed, "sequences"), 0);
    first = static_cast<std::int64_t>(drawn % kWindows) * kSequence;
  }
  const Scratch scratch;
  const std::string tokens = scratch.write_bytes("late.bin", "");
  std::filesystem::resize_file(tokens, 2 * (kWindows * kSequence + 1));
  {
    std::fstream file(tokens, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2 * (first + 5));
    file.write("\x2c\x01", 2);  // 300
  }
  const auto [program, arguments] =
      command_of(Started::sockets, 2,
                 {scratch.write(tiny_plan("shardwise", 1, 2, 1)), "--data", tokens, "--seed",
                  std::to_string(seed), "--steps", "2"});
  const Outcome refused = run_program(program, arguments);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err,
            tokens + ": --data: token 300 at position " + std::to_string(first + 5) +
                " is outside the model's vocabulary of 256\n    tokens are numbers below the "
                "plan's vocab_size\n");
}

TEST(ShardwiseRun, RefusesFormatsThatThereAreNot) {
  const Outcome refused = shardwise_run({"plan.json", "--data-format", "parquet"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--data-format: parquet is not one of detect, text, nanogpt, "
                                     "llmc, megatron"));
}

TEST(ShardwiseRun, RefusesTokenizersThatAreNotThereOrNotForTheData) {
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 0, 1, 1));
  const Outcome missing = shardwise_run({plan, "--tokenizer", "no-tokenizer.json"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("no-tokenizer.json: no such file"));
  const std::string tokens = scratch.write_bytes("train.bin", std::string(200, 'x'));
  const std::string tokenizer = "tests/golden/tokenizers/gpt2.json";
  const Outcome encoded = shardwise_run({plan, "--data", tokens, "--tokenizer", tokenizer});
  EXPECT_EQ(encoded.exit_code, 2);
  EXPECT_THAT(encoded.err,
              HasSubstr("--tokenizer: is for text, " + tokens + " has nanogpt tokens"));
  const std::string bytes = scratch.write_bytes("latin1.txt", "caf\xE9");
  const Outcome latin = shardwise_run({plan, "--data", bytes, "--tokenizer", tokenizer});
  EXPECT_EQ(latin.exit_code, 2);
  EXPECT_THAT(latin.err, HasSubstr("latin1.txt: --data: byte 3 is not UTF-8"));
  const Outcome too_many = shardwise_run({plan, "--tokenizer", tokenizer});
  EXPECT_EQ(too_many.exit_code, 2);
  EXPECT_THAT(too_many.err, HasSubstr("is outside the model's vocabulary of 256"));
}

// What plan ranks on CPUs, shardwise run executes: the search holds the fields that the executor
// refuses. Without that it would rank layouts that are refused.
TEST(CannotExecute, NothingThatASearchOfExecutedLayoutsRanks) {
  for (const char* const name : {"qwen3-tiny", "gpt2-tiny"}) {
    const ModelSpec model = *load_model(name);
    for (const Breadth breadth : {Breadth::usual, Breadth::full}) {
      for (const std::int64_t ranks : {1, 4, 6}) {
        SCOPED_TRACE(fmt::format("{} on {}", name, ranks));
        const ClusterSpec cluster = *with_gpus(*find_cluster("laptop"), ranks);
        JobSpec job;
        job.precision = DType::fp32;
        job.sequence_length = 32;
        job.global_batch_size = 12;
        SearchRequest request;
        request.model = &model;
        request.cluster = &cluster;
        request.job = &job;
        request.engines = engines_of_today(cluster);
        request.breadth = breadth;
        request.top = 200;
        const auto refused = [&] {
          const SearchResult found = *search(request);
          EXPECT_FALSE(found.best.empty());
          std::size_t count = 0;
          for (const std::vector<Candidate>* list : {&found.best, &found.front}) {
            for (const Candidate& each : *list) {
              const Plan plan{model, cluster, job,
                              *request.engines[static_cast<std::size_t>(each.engine)], each.layout};
              if (!cannot_execute(plan).empty()) ++count;
            }
          }
          return count;
        };
        request.executed = true;
        EXPECT_EQ(refused(), 0U);
        const SearchResult found = *search(request);
        EXPECT_EQ(std::ranges::any_of(found.best,
                                      [](const Candidate& each) { return each.layout.pp > 1; }),
                  ranks > 1);
        request.executed = false;
        if (ranks > 1 && breadth == Breadth::full) {
          EXPECT_GT(refused(), 0U);
        }
      }
    }
  }
}

// On a cluster of CPUs the best plan trains as it is, with no flag about layouts; what is about to
// run, and how long a step is predicted to take, is printed before the first step.
TEST(ShardwiseRun, TrainsThePlanThatPlanWritesForCpus) {
  const Scratch scratch;
  const std::string plan = scratch.path("plan.json");
  const Outcome planned = run_program(
      built("shardwise"), {"plan", "--model", "qwen3-tiny", "--cluster", "laptop", "--gpus", "4",
                           "--sequence-length", "32", "--global-batch-size", "4", "-o", plan});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("assumed: only layouts that shardwise run executes: cp 1,"));
  const Outcome done = run_program(built("shardwise"), {"run", plan, "--steps", "1"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, testing::ContainsRegex(
                            "^qwen3-tiny, .*\n128 tokens a step, predicted "
                            ".* a step on laptop; .* for 1 step\nproducts by .*\nrank 0 on"));
  EXPECT_THAT(done.out, HasSubstr("\nstep 1/1  loss "));
}

}  // namespace
}  // namespace shardwise::exec::test
