// Flags of Megatron-LM that a plan has no field for, or not for each of their values.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/export/configuration/configuration.h"
#include "planner/export/export_folder.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "planner/export/kept_of.h"
#include "planner/model/parameter_counts.h"
#include "planner/spec/plan/names.h"
#include "tests/planner/export/assumption_texts.h"

namespace shardwise {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kMegatron = "megatron-lm";

Result<Import> imported_flags(const std::string& flags) {
  const std::string text =
      "torchrun --nproc-per-node 8 --nnodes 2 pretrain_gpt.py --micro-batch-size 1 \\\n"
      "  --global-batch-size 64 --seq-length 2048 --use-distributed-optimizer \\\n  " +
      flags + "\n";
  const Result<Configuration> configuration = read_configuration(text, "run.sh");
  if (!configuration) return configuration.problems();
  AskedImport asked;
  asked.job.model = "llama-3-8b";
  asked.job.cluster = "dgx-h100";
  return import_plan(*load_framework(kMegatron, "--from"), *configuration, asked);
}

TEST(MegatronImports, SayWhichFlagsThePlanDoesNotPrice) {
  const Result<Import> made = imported_flags(
      "--bf16 --use-precision-aware-optimizer --optimizer-cpu-offload \\\n"
      "--optimizer-offload-fraction 0.5 --main-params-dtype fp16 --fp4-format e2m1");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  const std::string assumed = test::assumptions_of(*made);
  EXPECT_THAT(assumed, HasSubstr("--optimizer-offload-fraction 0.5 is kept, and not priced"));
  EXPECT_THAT(assumed, HasSubstr("--main-params-dtype fp16 is kept, and not priced"));
  EXPECT_THAT(assumed, HasSubstr("--fp4-format e2m1 is kept, and not priced"));
}

// Of whatever kind: a number that nobody knows is no wrong number.
TEST(MegatronImports, KeepVariablesOfFlagsThatNoPlanHas) {
  const Result<Import> made = imported_flags(
      "--bf16 --lr $LR --min-lr ${MIN} --train-iters $((STEPS)) --lr-decay-iters $DECAY \\\n"
      "--lr-warmup-iters 100 --mock-data --data-path $DATA --split 1 --save $CK --tokenizer-type "
      "$T");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  std::string kept;
  for (const KeptSetting& each : made->plan.kept.settings) kept += each.name + " ";
  for (const char* name : {"--lr ", "--min-lr ", "--train-iters ", "--data-path ", "--save "}) {
    EXPECT_THAT(kept, HasSubstr(name));
  }
}

/// Of Llama 3 8B, but for what the caller adds; the model is that of a flag.
Result<Import> described(const std::string& model, const std::string& flags) {
  const Result<Configuration> configuration = read_configuration(
      "torchrun --nproc-per-node 8 --nnodes 2 pretrain_gpt.py --micro-batch-size 1 --bf16 \\\n"
      "  --global-batch-size 64 --seq-length 2048 --use-distributed-optimizer --num-layers 32 \\\n"
      "  --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \\\n"
      "  --group-query-attention --num-query-groups 8 --position-embedding-type rope \\\n"
      "  --rotary-base 500000 --normalization RMSNorm --vocab-size 128256 " +
          flags + "\n",
      "run.sh");
  if (!configuration) return configuration.problems();
  AskedImport asked;
  asked.job.model = model;
  asked.job.cluster = "dgx-h100";
  return import_plan(*load_framework(kMegatron, "--from"), *configuration, asked);
}

TEST(MegatronImports, SayWhatTheModelHasAndTheCommandLeavesToDefaults) {
  const std::string whole = "--swiglu --disable-bias-linear --untie-embeddings-and-output-weights";
  const auto assumed = [](const Result<Import>& made) {
    EXPECT_TRUE(made.ok()) << to_string(made.problems());
    return made ? test::assumptions_of(*made) : "";
  };
  const char* kAbsent = "does not state what";
  EXPECT_THAT(assumed(described("llama-3-8b", whole)), Not(HasSubstr(kAbsent)));
  EXPECT_THAT(
      assumed(described("llama-3.1-8b", whole)),
      HasSubstr("does not state what llama-3.1-8b has, and Megatron-LM has another default: "
                "--use-rope-scaling. The plan is of llama-3.1-8b"));
  EXPECT_THAT(assumed(described("llama-3-8b", "--swiglu --disable-bias-linear")),
              HasSubstr("another default: --untie-embeddings-and-output-weights."));
  // Without --model it is the one that has the defaults.
  const Result<Import> found = described("", whole);
  ASSERT_TRUE(found.ok()) << to_string(found.problems());
  EXPECT_EQ(found->plan.model.name, "llama-3-8b");
  // A command of layouts alone says nothing of a model.
  EXPECT_THAT(assumed(imported_flags("--bf16")), Not(HasSubstr(kAbsent)));
}

TEST(MegatronImports, DoNotSayItOfADefault) {
  const Result<Import> made = imported_flags("--bf16 --main-params-dtype fp32");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_THAT(test::assumptions_of(*made), Not(HasSubstr("--main-params-dtype")));
}

/// The arguments that an export of an import has.
std::string exported(const Import& made) {
  const Framework framework = *load_framework(kMegatron, "--to");
  const Result<Export> again = export_plan(made.plan, framework);
  EXPECT_TRUE(again.ok()) << to_string(again.problems());
  const auto files = export_folder(*again, framework, "");
  EXPECT_TRUE(files.ok()) << to_string(files.problems());
  return files ? "\n" + files->front().text : "";
}

TEST(MegatronImports, ReadMomentsInFewerBits) {
  for (const std::string type : {"bf16", "fp8", "fp16"}) {
    const Result<Import> made = imported_flags(fmt::format(
        "--bf16 --use-precision-aware-optimizer --exp-avg-dtype {0} --exp-avg-sq-dtype {0}", type));
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    EXPECT_EQ(name_of(made->plan.job.moment_dtype), type);
    EXPECT_THAT(exported(*made), HasSubstr("\n--exp-avg-dtype " + type + "\n"));
    EXPECT_THAT(exported(*made), HasSubstr("\n--exp-avg-sq-dtype " + type + "\n"));
  }
}

TEST(MegatronImports, RefuseMomentsOfTwoTypes) {
  const Result<Import> made = imported_flags(
      "--bf16 --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype fp8");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.problems().front().hint,
            "--exp-avg-dtype bf16 is read with --exp-avg-sq-dtype bf16, not fp8");
}

TEST(MegatronImports, ReadGradientsInBf16) {
  const std::string flags = "--bf16 --use-precision-aware-optimizer --main-grads-dtype bf16";
  const Result<Import> made = imported_flags(flags);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_FALSE(made->plan.layout.fp32_gradients);
  EXPECT_THAT(exported(*made), HasSubstr("\n--main-grads-dtype bf16\n"));
  EXPECT_THAT(exported(*made), HasSubstr("\n--use-precision-aware-optimizer\n"));
}

TEST(MegatronImports, WriteBackTheWordsThatThePlanHasNone) {
  const Result<Import> made = imported_flags(
      "--bf16 --fp8-format e4m3 --fp8-recipe mxfp8 --ckpt-format torch --grad-reduce-in-bf16");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.job.precision, DType::fp8);
  const std::string arguments = exported(*made);
  EXPECT_THAT(arguments, HasSubstr("\n--fp8-format e4m3\n"));
  EXPECT_THAT(arguments, HasSubstr("\n--fp8-recipe mxfp8\n"));
  EXPECT_THAT(arguments, HasSubstr("\n--ckpt-format torch\n"));
  EXPECT_THAT(arguments, Not(HasSubstr("hybrid")));
  EXPECT_THAT(arguments, Not(HasSubstr("blockwise")));
}

TEST(MegatronImports, RefuseKeptWordsOfAnotherPlan) {
  Result<Import> made = imported_flags("--bf16 --fp8-format e4m3 --fp8-recipe mxfp8");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  made->plan.job.precision = DType::bf16;
  const Diagnostics problems = check_kept(*load_framework(kMegatron, "--to"), made->plan);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems.front().message, "fp8-format is what the plan decides");
}

// Megatron-LM runs the first so many layers of a stage again: all of them is full recompute.
TEST(MegatronImports, TakeABlockOfAllLayersOfAStageForFullRecompute) {
  const std::string block = "--bf16 --recompute-granularity full --recompute-method block ";
  for (const char* layers : {"--recompute-num-layers 32",
                             "--recompute-num-layers 16 --pipeline-model-parallel-size 2"}) {
    const Result<Import> made = imported_flags(block + layers);
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    EXPECT_EQ(made->plan.layout.recompute, Recompute::full) << layers;
    EXPECT_THAT(exported(*made), HasSubstr("\n--recompute-method uniform\n"));
  }
  const Result<Import> some = imported_flags(block + "--recompute-num-layers 16");
  ASSERT_FALSE(some.ok());
  EXPECT_EQ(some.problems().front().hint,
            "--recompute-granularity full is read with --recompute-num-layers 32 (all layers of a "
            "stage), not 16");
}

// A plan has one dropout, that of hidden states: attention's changes little, and is kept.
TEST(MegatronImports, KeepAnotherDropoutOfAttention) {
  const Result<Import> made = imported_flags("--bf16 --attention-dropout 0");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_DOUBLE_EQ(made->plan.job.dropout, 0.1);
  EXPECT_THAT(
      test::assumptions_of(*made),
      HasSubstr("--attention-dropout 0 is kept, and not priced: the plan's dropout is 0.1"));
  const std::string arguments = exported(*made);
  EXPECT_THAT(arguments, HasSubstr("\n--attention-dropout 0\n"));
  EXPECT_THAT(arguments, HasSubstr("\n--hidden-dropout 0.1\n"));
  const Result<Import> none = imported_flags("--bf16 --attention-dropout 0 --hidden-dropout 0");
  ASSERT_TRUE(none.ok()) << to_string(none.problems());
  EXPECT_DOUBLE_EQ(none->plan.job.dropout, 0);
  EXPECT_THAT(test::assumptions_of(*none), Not(HasSubstr("dropout")));
}

TEST(MegatronImports, SayWhichSettingsOfRecomputeAreNotRead) {
  const Result<Import> made = imported_flags(
      "--bf16 --recompute-granularity full --recompute-method uniform --recompute-num-layers 4");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.problems().front().hint,
            "--recompute-granularity full is read with --recompute-num-layers 1, not 4");
}

TEST(MegatronImports, TakeModulesForRecomputeThatIsStated) {
  for (const char* flags :
       {"--bf16 --recompute-activations",
        "--bf16 --recompute-granularity selective --recompute-modules core_attn mlp"}) {
    const Result<Import> made = imported_flags(flags);
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    EXPECT_THAT(test::assumptions_of(*made), Not(HasSubstr("--recompute")));
  }
}

TEST(MegatronImports, ReadALayoutOfStages) {
  const std::string flags =
      "--bf16 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout ";
  const Result<Import> chunks = imported_flags(flags + "'Et*8|t*8|t*8|t*8L'");
  ASSERT_TRUE(chunks.ok()) << to_string(chunks.problems());
  EXPECT_EQ(chunks->plan.layout.vpp, 2);
  EXPECT_THAT(exported(*chunks), HasSubstr("--num-virtual-stages-per-pipeline-rank 2\n"));
  const Result<Import> uneven = imported_flags(flags + "'Et*4|t*28L'");
  ASSERT_TRUE(uneven.ok()) << to_string(uneven.problems());
  EXPECT_EQ(uneven->plan.layout.vpp, 1);
  EXPECT_EQ(uneven->plan.layout.first_stage_layers, 4);
  const Result<Import> refused = imported_flags(flags + "'Et*4|t*9|t*10|t*9L'");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(to_string(refused.problems().front()),
            "run.sh:3:43: --pipeline-model-parallel-layout: no plan has Et*4|t*9|t*10|t*9L\n"
            "    chunks of stage 0 have 4 and 10 layers; a plan has equal chunks on a stage");
}

/// A command without a model: of sizes that no entry of the catalogue has.
Result<Import> sized(const std::string& flags) {
  const Result<Configuration> configuration = read_configuration(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 1 --bf16 --seq-length 2048 "
      "--global-batch-size 64 --num-layers 20 --hidden-size 1792 --num-attention-heads 14 " +
          flags + "\n",
      "run.sh");
  if (!configuration) return configuration.problems();
  AskedImport asked;
  asked.job.cluster = "dgx-h100";
  return import_plan(*load_framework(kMegatron, "--from"), *configuration, asked);
}

// Counted by hand from the shapes of Megatron-Core's GPTModel.
TEST(MegatronImports, TakeAModelThatTheCommandDescribes) {
  const Result<Import> gpt = sized("--max-position-embeddings 2048 --vocab-size 50304");
  ASSERT_TRUE(gpt.ok()) << to_string(gpt.problems());
  EXPECT_EQ(gpt->plan.model.name, "transformer-20x1792");
  const std::int64_t h = 1792;
  const std::int64_t block = 12 * h * h + 13 * h;  // four matrices with biases, two LayerNorms
  EXPECT_EQ(count_parameters(gpt->plan.model).total, 20 * block + (50304 + 2048) * h + 2 * h);
  EXPECT_THAT(test::assumptions_of(*gpt),
              HasSubstr("no model of the catalogue has the stated sizes: transformer-20x1792"));

  const Result<Import> llama = sized(
      "--max-position-embeddings 8192 --vocab-size 32000 --swiglu --disable-bias-linear "
      "--normalization RMSNorm --position-embedding-type rope --ffn-hidden-size 4864 "
      "--group-query-attention --num-query-groups 2 --untie-embeddings-and-output-weights");
  ASSERT_TRUE(llama.ok()) << to_string(llama.problems());
  const std::int64_t attention = 2 * h * h + 2 * h * 2 * 128;
  EXPECT_EQ(count_parameters(llama->plan.model).total,
            20 * (attention + 3 * h * 4864 + 2 * h) + 2 * 32000 * h + h);
}

TEST(MegatronImports, AskForTheVocabularyOfATokenizer) {
  const Result<Import> made = sized("--max-position-embeddings 2048 --tokenizer-model x");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(to_string(made.problems()), HasSubstr("every size in the command: --vocab-size too"));
}

TEST(MegatronImports, SayThatOfAFlagThatStandsTwiceTheLastCounts) {
  const Result<Import> made =
      imported_flags("--bf16 --tensor-model-parallel-size 2 --tensor-model-parallel-size 4");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.layout.tp, 4);
  EXPECT_THAT(test::assumptions_of(*made),
              HasSubstr("stand twice the last counts: --tensor-model-parallel-size 4"));
}

TEST(MegatronImports, RefuseAnotherArchitecture) {
  for (const char* flags : {"--hybrid-layer-pattern M*M*", "--decoder-num-layers 12",
                            "--experimental-attention-variant gdn", "--is-hybrid-model",
                            "--mtp-hybrid-override-pattern M*",
                            "--heterogeneous-layers-config-encoded-json {}", "--quick-geglu"}) {
    const Result<Import> made = imported_flags(std::string("--bf16 ") + flags);
    ASSERT_FALSE(made.ok()) << flags;
    const bool is_gate = std::string(flags) == "--quick-geglu";
    EXPECT_THAT(to_string(made.problems()),
                HasSubstr(is_gate ? "--swiglu" : "plans have equal decoder blocks here"));
  }
  const Result<Configuration> mamba = read_configuration(
      "torchrun --nproc-per-node 8 m/pretrain_mamba.py --num-layers 32 --hidden-size 4096 "
      "--num-attention-heads 32 --seq-length 2048 --micro-batch-size 1\n",
      "run.sh");
  ASSERT_TRUE(mamba.ok()) << to_string(mamba.problems());
  AskedImport asked;
  asked.job.model = "llama-2-7b";
  asked.job.cluster = "dgx-h100";
  const Result<Import> other = import_plan(*load_framework(kMegatron, "--from"), *mamba, asked);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(to_string(other.problems()), HasSubstr("pretrain_mamba.py trains another"));
}

TEST(MegatronImports, SayWhatChangesBlocksAndIsNoPartOfThePlan) {
  for (const char* flags :
       {"--window-size 1024,0", "--spec my.specs my_block", "--softmax-type learnable",
        "--attention-output-gate", "--rampup-batch-size 16 16 1000", "--no-rope-freq 4",
        "--moe-expert-capacity-factor 1.5", "--enable-mhc-connections", "--perform-rl-step",
        "--window-attn-skip-freq 4"}) {
    const Result<Import> made = imported_flags(std::string("--bf16 ") + flags);
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    const std::string name = std::string(flags).substr(0, std::string(flags).find(' '));
    EXPECT_THAT(test::assumptions_of(*made), HasSubstr(name)) << flags;
    EXPECT_THAT(test::assumptions_of(*made), HasSubstr("is kept, and not priced")) << flags;
    EXPECT_THAT(exported(*made), HasSubstr("\n" + name)) << flags;
  }
}

// Of pipelines under FSDP2 another problem would be that of a field which nobody stated.
TEST(MegatronImports, SayOnlyTheProblemsOfWhatIsStated) {
  const Result<Import> made = imported_flags(
      "--bf16 --use-torch-fsdp2 --no-gradient-accumulation-fusion "
      "--untie-embeddings-and-output-weights --pipeline-model-parallel-size 4");
  ASSERT_FALSE(made.ok());
  ASSERT_EQ(made.problems().size(), 1U) << to_string(made.problems());
  EXPECT_EQ(made.problems().front().path, "--pipeline-model-parallel-size");
}

}  // namespace
}  // namespace shardwise
