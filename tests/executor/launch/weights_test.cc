#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "executor/storage/safetensors_set.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::bytes_of_file;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using shardwise::test::shardwise_run;
using testing::HasSubstr;

Plan plan_for(const std::string& model, const std::string& engine, int zero_stage, int dp_shard) {
  Plan plan = tiny_plan(engine, zero_stage, dp_shard, 1);
  plan.model = *read_model_file("tests/golden/weights/" + model + "/config.json");
  plan.job.global_batch_size = 4;
  plan.job.sequence_length = 24;
  return plan;
}

/// Runs a few steps on bytes below the vocabulary, from `from` and into `to`.
Outcome train_from(const Scratch& scratch, const Plan& plan, const std::string& from,
                   const std::string& to, std::vector<std::string> more) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>((i * i / 5 + i) % 96);
  more.insert(more.begin(), {scratch.write(plan), "--data", scratch.write_bytes("text", text),
                             "--init-from", from, "--save-weights", to});
  return shardwise_run(more);
}

// A loss that is no number was once blamed on the learning rate.
TEST(StoredWeightsThatAreNoNumbers, AreRefusedByTheirTensor) {
  const Scratch scratch;
  const std::string folder = scratch.path("weights");
  std::filesystem::copy("tests/golden/weights/llama", folder);
  const std::string name = "weights/model-00002-of-00004.safetensors";
  std::string bytes = bytes_of_file(scratch.path(name));
  bytes.replace(bytes.size() - 4, 4, "\xff\xff\xff\xff");
  scratch.write_bytes(name, bytes);
  for (const Started started : {Started::threads, Started::sockets}) {
    const auto [program, arguments] =
        command_of(started, 2,
                   {scratch.write(plan_for("llama", "shardwise", 3, 2)), "--init-from", folder,
                    "--data", scratch.write_bytes("text", std::string(3000, ' ')), "--steps", "1"});
    const Outcome refused = run_program(program, arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_THAT(refused.err,
                testing::ContainsRegex("model-00002-of-00004.safetensors: --init-from: [a-z0-9._]+ "
                                       "is -?nan at element [0-9]+: weights are finite numbers"));
  }
}

// Without steps that change them, weights leave as they came, however they were spread meanwhile.
TEST(SavedWeights, AreThoseThatWereReadForEveryModelStageEngineAndNumberOfRanks) {
  struct Case {
    const char* engine;
    int zero_stage;
    int ranks;
    std::int32_t pp = 1;
    std::int32_t tp = 1;
  };
  for (const char* model : {"gpt2", "llama", "qwen3"}) {
    const Scratch scratch;
    std::string first;
    for (const Case& each :
         {Case{"shardwise", 0, 1}, Case{"shardwise", 1, 2}, Case{"shardwise", 3, 4},
          Case{"shardwise", 0, 2, 2}, Case{"shardwise", 3, 1, 2}, Case{"shardwise", 0, 1, 1, 2},
          Case{"shardwise", 3, 2, 1, 2}, Case{"megatron_ddp", 1, 4}, Case{"fsdp2", 3, 2},
          Case{"megatron_fsdp", 2, 4}}) {
      const std::string to =
          scratch.path(fmt::format("{}{}-{}-{}", each.engine, each.ranks, each.pp, each.tp));
      Plan plan = plan_for(model, each.engine, each.zero_stage, each.ranks);
      plan.layout.pp = each.pp;
      plan.layout.tp = each.tp;
      plan.cluster = *with_gpus(*find_cluster("laptop"), plan.layout.world());
      const Outcome done = train_from(scratch, plan, std::string("tests/golden/weights/") + model,
                                      to, {"--steps", "1", "--learning-rate", "0"});
      ASSERT_EQ(done.exit_code, 0) << done.err;
      const std::string bytes = bytes_of_file(to + "/model.safetensors");
      if (first.empty()) first = bytes;
      EXPECT_TRUE(bytes == first) << model << " " << each.engine << " ZeRO-" << each.zero_stage;
      EXPECT_EQ(read_model_file(to + "/config.json")->numerics, plan.model.numerics);
    }
    EXPECT_GT(first.size(), 10'000U);
  }
}

// In bf16 the main weights are read and saved; HFSDP spreads them over both axes, rows that fill up
// the vocabulary among them.
TEST(SavedWeights, AreThoseThatWereReadInBf16AndUnderHfsdp) {
  const Scratch scratch;
  std::string first;
  for (const char* engine : {"shardwise", "fsdp2", "megatron_fsdp"}) {
    const bool outer = std::string(engine) == "megatron_fsdp";
    Plan plan = plan_for("gpt2", engine, 3, 2);
    plan.layout.dp_replicate = outer ? 2 : 1;
    plan.layout.outer_shards_optimizer = outer;
    plan.cluster = *with_gpus(*find_cluster("laptop"), plan.layout.world());
    for (const DType precision : {DType::fp32, DType::bf16}) {
      plan.job.precision = precision;
      const std::string to = scratch.path("saved");
      const Outcome done = train_from(scratch, plan, "tests/golden/weights/gpt2", to,
                                      {"--steps", "2", "--learning-rate", "0"});
      ASSERT_EQ(done.exit_code, 0) << done.err;
      const std::string bytes = bytes_of_file(to + "/model.safetensors");
      if (first.empty()) first = bytes;
      EXPECT_TRUE(bytes == first) << engine << (outer ? ", HFSDP" : "");
    }
  }
}

// The bytes of GPT-2's file, which is fp32 already, tensor by tensor.
TEST(SavedWeights, HaveTheBitsOfTheFileTheyCameFrom) {
  const Scratch scratch;
  const std::string from = "tests/golden/weights/gpt2";
  const std::string to = scratch.path("saved");
  const Outcome done =
      train_from(scratch, plan_for("gpt2", "shardwise", 3, 2), from, to,
                 {"--steps", "1", "--learning-rate", "0", "--max-shard-size", "10KB"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(std::filesystem::exists(to + "/model.safetensors.index.json"));
  const Result<SafetensorsSet> before = SafetensorsSet::open(from);
  const Result<SafetensorsSet> after = SafetensorsSet::open(to);
  ASSERT_TRUE(before && after);
  EXPECT_GT(after->files().size(), 2U);
  EXPECT_EQ(after->size(), before->size() - 2);  // two masks are not written
  const auto bytes = [](const SafetensorsSet& set, const std::string& name) {
    const SafetensorsSet::Place* const place = set.find(name);
    std::vector<std::byte> all;
    if (place == nullptr) return all;
    all.resize(static_cast<std::size_t>(place->tensor->spec.bytes()));
    set.read(*place, 0, all);
    return all;
  };
  for (const SafetensorsFile& file : after->files()) {
    for (const StoredTensor& tensor : file.tensors()) {
      const std::string name = tensor.spec.name;
      ASSERT_TRUE(name.starts_with("transformer.")) << name;
      EXPECT_TRUE(bytes(*after, name) == bytes(*before, name.substr(12))) << name;
    }
  }
}

// Those of a Llama that is stored in bf16 leave as they came, and say so; what was trained in fp32
// is rounded.
TEST(SavedWeights, AreOfTheTypeThatIsAskedFor) {
  const Scratch scratch;
  const std::string from = "tests/golden/weights/llama";
  const std::string to = scratch.path("saved");
  const auto save = [&](const char* type, const char* rate) {
    const Outcome done =
        train_from(scratch, plan_for("llama", "shardwise", 3, 2), from, to,
                   {"--steps", "1", "--learning-rate", rate, "--save-weights-dtype", type});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return *SafetensorsSet::open(to);
  };
  const auto bytes = [](const SafetensorsSet& set, const std::string& name) {
    const SafetensorsSet::Place& place = *set.find(name);
    std::vector<std::byte> all(static_cast<std::size_t>(place.tensor->spec.bytes()));
    set.read(place, 0, all);
    return all;
  };
  const SafetensorsSet before = *SafetensorsSet::open(from);
  const SafetensorsSet same = save("bf16", "0");
  EXPECT_EQ(same.size(), before.size());
  EXPECT_THAT(bytes_of_file(to + "/config.json"), HasSubstr("\"torch_dtype\": \"bfloat16\""));
  for (const SafetensorsFile& file : same.files()) {
    for (const StoredTensor& tensor : file.tensors()) {
      EXPECT_EQ(tensor.spec.type, StoredType::bf16);
      EXPECT_TRUE(bytes(same, tensor.spec.name) == bytes(before, tensor.spec.name));
    }
  }
  const std::string name = "model.norm.weight";
  const std::vector<std::byte> narrow = bytes(save("bf16", "0.1"), name);
  const std::vector<std::byte> wide = bytes(save("fp32", "0.1"), name);
  EXPECT_THAT(bytes_of_file(to + "/config.json"), HasSubstr("\"torch_dtype\": \"float32\""));
  ASSERT_EQ(wide.size(), 2 * narrow.size());
  for (std::size_t i = 0; i < narrow.size(); i += 2) {
    std::uint32_t bits = 0;
    std::uint16_t rounded = 0;
    std::memcpy(&bits, &wide[2 * i], sizeof bits);
    std::memcpy(&rounded, &narrow[i], sizeof rounded);
    EXPECT_EQ(rounded, (bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U);
  }
}

TEST(SavedWeights, AreTheSameBitsAfterTrainingWithEveryStage) {
  const Scratch scratch;
  std::string first;
  for (const int zero_stage : {0, 1, 2, 3}) {
    const std::string to = scratch.path("stage" + std::to_string(zero_stage));
    const Outcome done = train_from(scratch, plan_for("llama", "shardwise", zero_stage, 4),
                                    "tests/golden/weights/llama", to, {"--steps", "3"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const std::string bytes = bytes_of_file(to + "/model.safetensors");
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << zero_stage;
  }
}

#ifdef SHARDWISE_WITH_MPI
TEST(SavedWeights, AreTheSameBitsFromProcessesOfMpi) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // Open MPI keeps memory until the process ends
  const Scratch scratch;
  const Plan plan = plan_for("qwen3", "shardwise", 3, 2);
  const std::string from = "tests/golden/weights/qwen3";
  ASSERT_EQ(train_from(scratch, plan, from, scratch.path("threads"), {"--steps", "2"}).exit_code,
            0);
  const Outcome done = run_program(
      "mpirun", {"-np", "2", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1",
                 built("shardwise-run"), scratch.path("plan.json"), "--data", scratch.path("text"),
                 "--init-from", from, "--save-weights", scratch.path("mpi"), "--steps", "2"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(bytes_of_file(scratch.path("mpi/model.safetensors")) ==
              bytes_of_file(scratch.path("threads/model.safetensors")));
}
#endif

TEST(InitFrom, RefusesWeightsOfAnotherModelBeforeAnythingIsTrained) {
  const Scratch scratch;
  const Outcome refused = train_from(scratch, plan_for("llama", "shardwise", 0, 1),
                                     "tests/golden/weights/qwen3", scratch.path("saved"), {});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("another model_type"));
  EXPECT_THAT(refused.err, HasSubstr("there is no tensor lm_head.weight"));
  EXPECT_THAT(refused.err, HasSubstr("q_norm.weight is no tensor of the plan's model"));
}

TEST(SaveWeights, RefusesAFolderThatCannotBeMade) {
  const Scratch scratch;
  const std::string file = scratch.write_bytes("file", "x");
  const Outcome refused = train_from(scratch, plan_for("llama", "shardwise", 0, 1),
                                     "tests/golden/weights/llama", file + "/saved", {});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("--save-weights: " + file + "/saved is not a writable folder"));
}

}  // namespace
}  // namespace shardwise::exec::test
