// How rows become models, engines, layouts and jobs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/score/rows/row_engine.h"
#include "planner/score/rows/row_job.h"
#include "planner/score/rows/row_layout.h"
#include "planner/score/rows/row_model.h"
#include "tests/planner/score/rows.h"

namespace shardwise {
namespace {

using test::llama_row;
using test::megatron_row;
using test::set_flag;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Says, FindsWordsWhateverTheirCase) {
  EXPECT_TRUE(says("Megatron-LM (DDP)", "megatron"));
  EXPECT_FALSE(says("Meg", "megatron"));
  EXPECT_TRUE(says_any("NeMo", "bridge", "nemo"));
}

TEST(TransformerOf, TakesTheArchitectureAsStated) {
  Notes notes;
  const auto config = transformer_of(llama_row(), notes);
  ASSERT_TRUE(config) << notes.refused;
  EXPECT_EQ(config->hidden_size, 1024);
  EXPECT_EQ(config->num_key_value_heads, 2);
  EXPECT_EQ(config->norm, NormKind::rmsnorm);
  EXPECT_TRUE(config->gated_mlp);
  EXPECT_FALSE(config->qkv_bias);
  EXPECT_THAT(notes.assumed, IsEmpty());
}

TEST(TransformerOf, RefusesAnArchitectureThatIsNotStated) {
  Row row = llama_row();
  row.model.hidden.reset();
  Notes notes;
  EXPECT_FALSE(transformer_of(row, notes));
  EXPECT_THAT(notes.refused, HasSubstr("architecture not stated"));
}

TEST(TransformerOf, SaysWhatItAssumed) {
  Row row = llama_row();
  row.model.vocab.reset();
  row.model.pos_emb = "learned";
  row.model.gated_mlp.reset();
  row.model.norm = "layernorm";
  Notes notes;
  const auto config = transformer_of(row, notes);
  ASSERT_TRUE(config) << notes.refused;
  EXPECT_EQ(config->vocab_size, 50304);  // GPT-2's 50,257 to a multiple of 128
  EXPECT_FALSE(config->gated_mlp);
  EXPECT_THAT(notes.assumed, Contains(HasSubstr("vocabulary 50304")));
}

// mosaicml/llm-foundry's MPT-7b of 4,096 positions counts 6,667,247,616 parameters, which it only
// has with biases in every product and norm.
TEST(TransformerOf, FindsTheBiasesThatTheStatedCountHas) {
  Row row = test::llama_row();
  row.model.layers = 32;
  row.model.hidden = 4096;
  row.model.ffn = 16384;
  row.model.heads = 32;
  row.model.kv_heads = 32;
  row.model.vocab = 50368;
  row.model.tied_embeddings = true;
  row.model.gated_mlp = false;
  row.model.bias = false;
  row.model.norm = "layernorm (no bias)";
  row.model.pos_emb = "learned";
  row.model.params_exact = 6'667'247'616;
  Notes notes;
  const std::optional<TransformerConfig> config = transformer_of(row, notes);
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->qkv_bias && config->attention_output_bias && config->mlp_bias);
  EXPECT_TRUE(config->norm_bias);
  ASSERT_EQ(notes.assumed.size(), 1U);
  EXPECT_THAT(notes.assumed.front(), testing::HasSubstr("6667247616"));
}

TEST(TransformerOf, SaysWhenNoBiasesGiveTheStatedCount) {
  Row row = test::llama_row();
  row.model.params_exact = 7;
  Notes notes;
  const std::optional<TransformerConfig> config = transformer_of(row, notes);
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->qkv_bias);
  ASSERT_EQ(notes.assumed.size(), 1U);
}

TEST(TransformerOf, ReadsExpertsWithTheirDenseLayers) {
  Row row = llama_row();
  row.model.arch = "moe";
  RowMoe& moe = row.model.moe.emplace();
  moe.experts = 8;
  moe.topk = 2;
  moe.ffn = 512;
  moe.first_dense_layers = 1;
  Notes notes;
  const auto config = transformer_of(row, notes);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->moe->num_experts, 8);
  EXPECT_THAT(config->moe->dense_layers, ElementsAre(0));
}

TEST(EngineOf, FollowsFrameworkAndStrategy) {
  const auto name = [](const char* framework, const char* strategy, int zero) {
    Row row = llama_row();
    row.framework = framework;
    row.parallel.strategy = strategy;
    row.parallel.zero_stage = zero;
    Notes notes;
    const auto engine = engine_of(row, notes);
    return engine ? engine->profile->name : notes.refused;
  };
  EXPECT_EQ(name("torchtitan (FSDP2)", "FSDP2 full shard", 3), "fsdp2");
  EXPECT_EQ(name("Megatron-LM", "DDP", 0), "megatron_ddp");
  EXPECT_EQ(name("NeMo (Megatron-Core)", "DP + distributed optimizer", 1), "megatron_ddp");
  EXPECT_THAT(name("MaxText (JAX/XLA)", "FSDP", 3), HasSubstr("no engine profile for MaxText"));
}

TEST(EngineOf, DerivesTheStageFromTheStrategy) {
  Row row = megatron_row();
  row.parallel.zero_stage.reset();
  Notes notes;
  EXPECT_EQ(engine_of(row, notes)->zero_stage, 1);
  EXPECT_THAT(notes.assumed, ElementsAre("zero_stage 1"));
}

std::optional<Layout> layout_with(const Row& row, Notes& notes) {
  const auto engine = engine_of(row, notes);
  return engine ? layout_of(row, *engine, notes) : std::nullopt;
}

TEST(LayoutOf, TakesDegreesAsStated) {
  Notes notes;
  const auto layout = layout_with(megatron_row(), notes);
  ASSERT_TRUE(layout) << notes.refused;
  EXPECT_EQ(layout->world(), 8);
  EXPECT_EQ(layout->tp, 2);
  EXPECT_EQ(layout->zero_stage, 1);
  EXPECT_FALSE(layout->sequence_parallel);
}

TEST(LayoutOf, RefusesDegreesThatAreNotTheGpus) {
  Row row = megatron_row();
  row.parallel.dp = 4;
  Notes notes;
  EXPECT_FALSE(layout_with(row, notes));
  EXPECT_EQ(notes.refused, "degrees multiply to 16, not to 8 GPUs");
}

TEST(LayoutOf, FindsDataParallelismFromTheGpus) {
  Row row = megatron_row();
  row.parallel.dp.reset();
  Notes notes;
  EXPECT_EQ(layout_with(row, notes)->dp(), 2);
}

TEST(LayoutOf, CutsHybridShardsIntoReplicas) {
  Row row = llama_row();
  row.parallel.hsdp_shard = 4;
  row.parallel.hsdp_replicate = 2;
  Notes notes;
  const auto layout = layout_with(row, notes);
  EXPECT_EQ(layout->dp_shard, 4);
  EXPECT_EQ(layout->dp_replicate, 2);
}

TEST(LayoutOf, FindsTheMicroBatchFromAccumulation) {
  Row row = llama_row();
  row.batch.micro.reset();
  row.batch.global = 64;
  row.batch.grad_accum = 4;
  Notes notes;
  EXPECT_EQ(layout_with(row, notes)->micro_batch_size, 2);
  EXPECT_THAT(notes.refused_memory, IsEmpty());
}

TEST(LayoutOf, DoesNotScoreMemoryOfAnUnknownMicroBatch) {
  Row row = llama_row();
  row.batch.micro.reset();
  Notes notes;
  EXPECT_EQ(layout_with(row, notes)->micro_batch_size, 1);
  EXPECT_EQ(notes.refused_memory, "micro-batch not stated");
}

TEST(LayoutOf, ReadsUlyssesAsContextParallelism) {
  Row row = megatron_row();
  row.parallel.tp = 1;
  row.parallel.sequence_parallel.reset();
  row.parallel.sequence_wording = "ulysses 2";
  Notes notes;
  const auto layout = layout_with(row, notes);
  ASSERT_TRUE(layout) << notes.refused;
  EXPECT_EQ(layout->cp, 2);
  EXPECT_EQ(layout->cp_kind, ContextParallelKind::ulysses);
}

std::optional<RowJob> job_with(const Row& row, Notes& notes) {
  const auto engine = engine_of(row, notes);
  if (!engine) return std::nullopt;
  const auto layout = layout_of(row, *engine, notes);
  return layout ? job_of(row, *engine, *layout, notes) : std::nullopt;
}

JobSpec only_job(const Row& row) {
  Notes notes;
  const auto job = job_with(row, notes);
  EXPECT_TRUE(job) << notes.refused;
  EXPECT_EQ(job->variants.size(), 1U);
  return job->variants.front().job;
}

TEST(JobOf, ReadsPrecision) {
  const auto precision = [](const char* wording) {
    Row row = llama_row();
    row.precision = wording;
    return only_job(row).precision;
  };
  EXPECT_EQ(precision("bf16 mixed (fp32 reduce)"), DType::bf16);
  EXPECT_EQ(precision("bf16 mixed + float8 linear"), DType::fp8);
  EXPECT_EQ(precision("MXFP8"), DType::fp8);
  EXPECT_EQ(precision("NVFP4 (bf16 tail)"), DType::fp4);
  EXPECT_EQ(precision("fp16 mixed"), DType::fp16);
  EXPECT_EQ(precision("fp16/bf16 mixed (not stated)"), DType::bf16);
}

TEST(JobOf, ReadsWordingsOfRecompute) {
  Row row = megatron_row();
  Notes notes;
  row.recompute = "full (uniform, 1 layers)";
  EXPECT_EQ(job_with(row, notes)->variants.front().layout.recompute, Recompute::full);
  row.recompute = "selective (attention core)";
  EXPECT_EQ(job_with(row, notes)->variants.front().layout.recompute, Recompute::selective);
  row.recompute = "selective ([moe_act, layernorm])";
  EXPECT_THAT(job_with(row, notes)->variants.front().job.recompute_operations,
              Contains("mlp.experts.activation"));
  row.recompute = "not stated";
  EXPECT_FALSE(job_with(row, notes)->recompute_stated);
  row.recompute = "some";
  EXPECT_FALSE(job_with(row, notes));
  EXPECT_EQ(notes.refused, "recompute \"some\"");
}

TEST(JobOf, ReadsTorchtitansPolicyByOperator) {
  Row row = llama_row();
  row.recompute = "selective (per-op SAC)";
  const JobSpec job = only_job(row);
  EXPECT_THAT(job.recompute_operations, Contains("mlp.up_proj"));
  EXPECT_THAT(job.recompute_operations, testing::Not(Contains("mlp.gate_proj")));
}

TEST(JobOf, RecomputesEverySecondLayer) {
  Row row = llama_row();
  row.recompute = "selective layer (every 2nd layer)";
  Notes notes;
  const auto job = job_with(row, notes);
  ASSERT_TRUE(job) << notes.refused;
  EXPECT_EQ(job->variants.front().layout.recompute, Recompute::full);
  EXPECT_EQ(job->variants.front().layout.recompute_interval, 2);
}

TEST(JobOf, ReadsWhereTheOptimizerIsAndLigersLoss) {
  Row row = llama_row();
  Notes notes;
  auto job = job_with(row, notes);
  ASSERT_TRUE(job) << notes.refused;
  EXPECT_FALSE(job->variants.front().layout.offload_optimizer);
  EXPECT_EQ(job->variants.front().job.loss, LossKernel::materialised);
  set_flag(row, "optimizer_offload", "cpu AdamW");
  set_flag(row, "liger_kernel", true);
  job = job_with(row, notes);
  ASSERT_TRUE(job) << notes.refused;
  EXPECT_TRUE(job->variants.front().layout.offload_optimizer);
  EXPECT_EQ(job->variants.front().job.loss, LossKernel::chunked);
}

TEST(JobOf, SplitsRowsThatOffloadSomeLayers) {
  Row row = llama_row();
  set_flag(row, "cpu_offloading_num_layers", std::int64_t{1});
  Notes notes;
  const auto job = job_with(row, notes);
  ASSERT_EQ(job->variants.size(), 2U);
  EXPECT_DOUBLE_EQ(job->variants[0].share, 0.25);
  EXPECT_TRUE(job->variants[0].layout.offload_activations);
  EXPECT_FALSE(job->variants[1].layout.offload_activations);
}

TEST(JobOf, ReadsFlags) {
  Row row = llama_row();
  set_flag(row, "compile", true);
  set_flag(row, "flash_attention", false);
  const JobSpec job = only_job(row);
  EXPECT_EQ(job.kernels, Kernels::compiled);
  EXPECT_EQ(job.attention, AttentionKernel::materialised);
}

// Megatron's own modules have one attention, which is not fused.
TEST(JobOf, KeepsScoresUnderMegatronsOwnModules) {
  Row row = megatron_row();
  EXPECT_EQ(only_job(row).attention, AttentionKernel::flash);
  set_flag(row, "transformer_impl", "local");
  EXPECT_EQ(only_job(row).attention, AttentionKernel::materialised);
  EXPECT_EQ(only_job(row).kernels, Kernels::eager);
}

// NVIDIA/Megatron-LM@93ebf8d7:tests/functional_tests/test_cases/moe: --moe-grouped-gemm is in the
// configurations of top-2 routing and of two named cases.
TEST(JobOf, RunsExpertsOneByOneWhereMegatronsTestsDo) {
  Row row = megatron_row();
  row.model.moe = RowMoe{};
  row.model.moe->topk = 1;
  EXPECT_TRUE(only_job(row).grouped_gemm);
  row.framework = "Megatron-LM core (dev CI image)";
  EXPECT_FALSE(only_job(row).grouped_gemm);
  row.id = "mcore-ci/moe/gpt3_mcore_te_tp2_pp1_te_8experts2parallel_groupedGEMM/h100";
  EXPECT_TRUE(only_job(row).grouped_gemm);
  row.id = "mcore-ci/moe/other";
  row.model.moe->topk = 2;
  EXPECT_TRUE(only_job(row).grouped_gemm);
}

TEST(JobOf, OverlapsMegatronOnlyWhenAsked) {
  Row row = megatron_row();
  Notes notes;
  EXPECT_FALSE(job_with(row, notes)->variants.front().layout.overlap_grad_reduce);
  set_flag(row, "overlap_grad_reduce", true);
  EXPECT_TRUE(job_with(row, notes)->variants.front().layout.overlap_grad_reduce);
  EXPECT_TRUE(job_with(llama_row(), notes)->variants.front().layout.overlap_grad_reduce);
}

TEST(JobOf, PacksAMicroBatchIntoOneSequence) {
  Row row = llama_row();
  set_flag(row, "pack_sample_into_one", true);
  Notes notes;
  const auto job = job_with(row, notes);
  ASSERT_TRUE(job) << notes.refused;
  EXPECT_EQ(job->variants.front().job.sequence_length, 2 * 4096);
  EXPECT_EQ(job->variants.front().job.global_batch_size, 8);
  EXPECT_EQ(job->variants.front().layout.micro_batch_size, 1);
}

TEST(JobOf, FreezesTheWeightsUnderAdapters) {
  Row row = llama_row();
  row.task = "lora";
  EXPECT_TRUE(only_job(row).frozen_base);
  row.task = "qlora";
  Notes notes;
  EXPECT_FALSE(job_with(row, notes));
  EXPECT_THAT(notes.refused, HasSubstr("4 bits"));
}

// mlcommons/training: llama2_70b_lora/README.md, "qkv_proj,o_proj" of rank 16.
TEST(JobOf, GivesMlperfsLoraItsAdapters) {
  Row row = llama_row();
  row.task = "lora";
  EXPECT_THAT(named_adapters(row), IsEmpty());
  set_flag(row, "lora_targets", "attention");
  EXPECT_THAT(named_adapters(row), ElementsAre("q_proj", "o_proj"));
  set_flag(row, "lora_rank", std::int64_t{16});
  Notes notes;
  ASSERT_TRUE(job_with(row, notes));
  EXPECT_THAT(notes.assumed, Not(Contains(HasSubstr("adapters"))));
}

TEST(JobOf, KeepsOneCopyOfPureLowPrecisionWeights) {
  Row row = llama_row();
  row.precision = "pure bf16";
  const JobSpec job = only_job(row);
  EXPECT_EQ(job.main_dtype, DType::bf16);
  EXPECT_EQ(job.moment_dtype, DType::bf16);
  row.precision = "bf16; FSDP mixed precision PURE";
  EXPECT_EQ(only_job(row).main_dtype, DType::fp32);
}

}  // namespace
}  // namespace shardwise
