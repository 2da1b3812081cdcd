// What rows of programs on PyTorch say of loss, optimizer, checkpointing and gradients.

#include "planner/score/rows/row_pytorch.h"

#include <gtest/gtest.h>

#include "planner/score/rows/row_job.h"
#include "planner/score/rows/row_layout.h"
#include "tests/planner/score/rows.h"

namespace shardwise {
namespace {

using test::llama_row;
using test::megatron_row;
using test::set_flag;

/// Fine-tuning by Hugging Face's Trainer under FSDP1, in 16 bits throughout.
Row trainer_row() {
  Row row = llama_row();
  row.framework = "Hugging Face Trainer (transformers, accelerate), FSDP1";
  row.date = "2025-02";
  row.precision = "pure bf16 (weights, gradients and moments), no autocast";
  row.optimizer = "torch.optim.AdamW (the trainer's default: foreach, not fused)";
  row.recompute = "full (gradient checkpointing of every layer)";
  row.batch.grad_accum = 2;
  row.batch.global = 32;
  return row;
}

RowVariant variant_of(const Row& row) {
  Notes notes;
  const auto engine = engine_of(row, notes);
  EXPECT_TRUE(engine) << notes.refused;
  const auto layout = layout_of(row, *engine, notes);
  EXPECT_TRUE(layout) << notes.refused;
  const auto job = job_of(row, *engine, *layout, notes);
  EXPECT_TRUE(job) << notes.refused;
  return job->variants.front();
}

TEST(ReadPytorch, ReadsTheKernelsOfAdamw) {
  Row row = trainer_row();
  EXPECT_EQ(variant_of(row).job.adamw, AdamwKernel::fused);  // not stated
  set_flag(row, "fused_optimizer", false);
  EXPECT_EQ(variant_of(row).job.adamw, AdamwKernel::foreach);
  row.optimizer = "torch.optim.AdamW (foreach=False: a for-loop)";
  EXPECT_EQ(variant_of(row).job.adamw, AdamwKernel::for_loop);
  row.flags.clear();
  set_flag(row, "fused_optimizer", true);
  EXPECT_EQ(variant_of(row).job.adamw, AdamwKernel::fused);
}

TEST(ReadPytorch, KeepsGradientsWholeWithoutSync) {
  Row row = trainer_row();
  EXPECT_TRUE(variant_of(row).layout.reduce_every_microbatch);
  set_flag(row, "fsdp_no_sync", true);
  EXPECT_FALSE(variant_of(row).layout.reduce_every_microbatch);
}

TEST(ReadPytorch, RunsAllOfABlockAgainUnderReentrantCheckpoints) {
  Row row = trainer_row();
  EXPECT_FALSE(variant_of(row).job.recompute_stops_early);
  row.date = "2026-03";  // transformers 5
  EXPECT_TRUE(variant_of(row).job.recompute_stops_early);
  row = llama_row();  // torchtitan
  row.recompute = "full";
  EXPECT_TRUE(variant_of(row).job.recompute_stops_early);
}

TEST(ReadPytorch, ReadsTheLoss) {
  Row row = trainer_row();
  set_flag(row, "cross_entropy", "PyTorch, fp32 logits");
  EXPECT_EQ(variant_of(row).job.loss, LossKernel::materialised);
  row.flags.clear();
  set_flag(row, "cross_entropy", "Triton kernel (Unsloth's), logits materialised");
  EXPECT_EQ(variant_of(row).job.loss, LossKernel::fused_fp32);
  row.flags.clear();
  set_flag(row, "fused_ce", true);
  EXPECT_EQ(variant_of(row).job.loss, LossKernel::chunked);
  row = megatron_row();
  set_flag(row, "cross_entropy_loss_fusion", true);
  EXPECT_EQ(variant_of(row).job.loss, LossKernel::fused_fp32);
}

TEST(ReadPytorch, ReadsKernelsOfNormsAndAttention) {
  Row row = trainer_row();
  EXPECT_EQ(variant_of(row).job.rms_norm, RmsNormKernel::composite);
  EXPECT_EQ(variant_of(row).job.attention, AttentionKernel::flash);
  set_flag(row, "kernels", "Triton RMSNorm and RoPE (Unsloth's) and cross entropy");
  set_flag(row, "attention", "FA3");
  EXPECT_EQ(variant_of(row).job.rms_norm, RmsNormKernel::fused);
  EXPECT_EQ(variant_of(row).job.attention, AttentionKernel::cudnn);
  row.flags.clear();
  set_flag(row, "attention", "FlashAttention-2");
  EXPECT_EQ(variant_of(row).job.attention, AttentionKernel::flash);
}

// Flat parameters that hold an adapter have gradients as large as themselves.
TEST(ReadPytorch, TrainsUnitsThatAdaptersShareWithFrozenWeights) {
  Row row = trainer_row();
  row.task = "lora";
  EXPECT_TRUE(variant_of(row).job.frozen_base);  // adapters are units of their own
  row.framework = "lit-gpt 8641822 / PyTorch 2.1";
  row.parallel.strategy = "FSDP FULL_SHARD";
  const RowVariant shared = variant_of(row);
  EXPECT_FALSE(shared.job.frozen_base);
  EXPECT_EQ(shared.job.optimizer, Optimizer::sgd);
  EXPECT_FALSE(shared.layout.reduce_every_microbatch);
  row.parallel.dp = row.hardware.gpus = 1;
  row.parallel.zero_stage = 0;
  row.batch.global = 4;
  EXPECT_TRUE(variant_of(row).job.frozen_base);
}

// With whole logits in fp32 llm-foundry's rows of 16,384 tokens would need more than their GPUs
// have.
TEST(ReadPytorch, TakesFlashAttentionsLossForComposers) {
  Row row = llama_row();
  row.framework = "Composer FSDP1 (torch FSDP)";
  EXPECT_EQ(variant_of(row).job.loss, LossKernel::fused);
  EXPECT_EQ(metrics_bytes(row, 1e6), 8e6);
  set_flag(row, "cross_entropy", "PyTorch, fp32 logits");
  EXPECT_EQ(variant_of(row).job.loss, LossKernel::materialised);
  EXPECT_EQ(metrics_bytes(trainer_row(), 1e6), 0);
}

TEST(JobOf, DividesByTheTokensThatCountWhereARowDoes) {
  Row row = megatron_row();
  EXPECT_FALSE(variant_of(row).job.calculate_per_token_loss);
  set_flag(row, "calculate_per_token_loss", true);
  EXPECT_TRUE(variant_of(row).job.calculate_per_token_loss);
}

}  // namespace
}  // namespace shardwise
