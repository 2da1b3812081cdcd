#include <gtest/gtest.h>

#include <cmath>

#include "planner/cost/kernels/flops.h"
#include "planner/cost/layer/layer_time.h"
#include "planner/estimate/estimate.h"
#include "planner/estimate/loss_rows.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise {
namespace {

using test::Priced;

double products_of(const LayerSpec& layer) {
  double weights = 0;
  for (const OperationSpec& op : layer.operations) {
    if (op.kind == OpKind::gemm) weights += static_cast<double>(op.width * op.k);
  }
  return weights;
}

double attention_of(const Priced& p) {
  AttentionWork work;
  work.heads = 32;
  work.kv_heads = 8;
  work.seq_q = work.seq_kv = p.job.sequence_length;
  return attention_flops(work, Pass::forward).value();
}

TEST(LayerTime, DoesTwoOperationsAWeightAndTokenForwardAndTwiceThatBackward) {
  const Priced p;
  const double expected =
      2 * products_of(p.kind("block")) * static_cast<double>(p.job.sequence_length);
  const LayerTime time = p.layer("block");
  EXPECT_NEAR(time.forward.flops.value(), expected + attention_of(p), 1);
  EXPECT_NEAR(time.backward.flops.value(), 2 * expected + 2.5 * attention_of(p), 1);
  EXPECT_EQ(time.recompute.flops, Flops(0));
}

TEST(LayerTime, TensorParallelismCutsTheWork) {
  Priced p;
  const double whole = p.layer("block").forward.flops.value();
  p.layout.tp = 8;
  p.layout.sequence_parallel = true;
  EXPECT_NEAR(p.layer("block").forward.flops.value(), whole / 8, whole * 1e-12);
}

TEST(LayerTime, NeverBeatsThePeak) {
  Priced p;
  for (const int tp : {1, 2, 4, 8}) {
    for (const int micro : {1, 4}) {
      p.layout.tp = tp;
      p.layout.sequence_parallel = tp > 1;
      p.layout.micro_batch_size = micro;
      const LayerTime time = p.layer("block");
      for (const PassTime& pass : {time.forward, time.backward}) {
        EXPECT_GE((pass.gemm + pass.attention).value(),
                  (pass.flops / p.cluster.gpu.peak(DType::bf16)).value());
      }
    }
  }
}

TEST(LayerTime, FullRecomputeRunsForwardAgainWithItsCommunication) {
  Priced p;
  p.layout.tp = 4;
  p.layout.sequence_parallel = true;
  p.layout.recompute = Recompute::full;
  const LayerTime time = p.layer("block");
  EXPECT_NEAR(time.recompute.compute().value(), time.forward.compute().value(), 1e-12);
  EXPECT_NEAR(time.recompute.tp.value(), time.forward.tp.value(), 1e-12);
  EXPECT_EQ(p.layer("head").recompute.compute(), Seconds(0));  // only blocks run again
  p.layout.recompute_interval = 2;
  EXPECT_NEAR(p.layer("block").recompute.compute().value(), time.forward.compute().value() / 2,
              1e-12);
}

TEST(LayerTime, PyTorchsRecomputeLeavesOutTheLastProduct) {
  Priced p;
  p.engine = fsdp2();
  p.layout.recompute = Recompute::full;
  const LayerTime early = p.layer("block");
  const double last = 2.0 * 4096 * 14336 * 4096;  // down_proj
  EXPECT_NEAR((early.forward.flops - early.recompute.flops).value(), last, 1);
  p.job.recompute_stops_early = false;
  EXPECT_EQ(p.layer("block").recompute.flops, early.forward.flops);
}

TEST(LayerTime, SelectiveRecomputeRunsOnlyMaterialisedAttentionAgain) {
  Priced p;
  p.layout.recompute = Recompute::selective;
  EXPECT_EQ(p.layer("block").recompute.compute(), Seconds(0));
  p.job.attention = AttentionKernel::materialised;
  const LayerTime time = p.layer("block");
  EXPECT_GT(time.recompute.compute(), Seconds(0));
  EXPECT_LT(time.recompute.compute(), time.forward.compute() / 2);
}

TEST(LayerTime, FlashAttention2IsSlowerOnHopperThanKernelsMadeForIt) {
  Priced p;
  p.engine = fsdp2();
  const Seconds flash2 = p.layer("block").forward.attention;
  p.job.attention = AttentionKernel::cudnn;
  EXPECT_NEAR(flash2 / p.layer("block").forward.attention, 2, 1e-9);
}

// Random numbers of a score are as many whatever the width of a head, and so is what they take.
TEST(LayerTime, FusedAttentionTakesLongerWithDropout) {
  Priced p;
  const PassTime forward = p.layer("block").forward;
  const PassTime backward = p.layer("block").backward;
  p.job.dropout = 0.1;
  const double scores = attention_of(p) / (2 * 256);
  const double lanes = p.cluster.gpu.peak(DType::fp32).value() / 2;
  const Seconds added = p.layer("block").forward.attention - forward.attention;
  EXPECT_NEAR(added.value(), 11 * scores / lanes, 1e-12);
  EXPECT_NEAR((p.layer("block").backward.attention - backward.attention).value(),
              16 * scores / lanes, 1e-12);
}

// Megatron's pointwise kernels are fused by default, whoever wrote the rest.
TEST(LayerTime, MegatronsModulesFuseWhatPyTorchsDoNot) {
  Priced p;
  p.model = test::gpt(12, 1024, 16, 50304);
  p.job.attention = AttentionKernel::materialised;
  p.job.kernels = Kernels::eager;
  p.size(1);
  const LayerTime megatron = p.layer("block");
  p.engine = deepspeed();
  p.layout.zero_stage = 1;
  const LayerTime torch = p.layer("block");
  EXPECT_LT(megatron.forward.memory_bound, torch.forward.memory_bound * 0.6);
  EXPECT_LT(megatron.forward.kernels, torch.forward.kernels);
  EXPECT_EQ(megatron.forward.flops.value(), torch.forward.flops.value());
}

TEST(LayerTime, NamedOperationsRunAgain) {
  Priced p;
  p.job.recompute_operations = {"mlp.activation"};
  const LayerTime time = p.layer("block");
  EXPECT_GT(time.recompute.memory_bound, Seconds(0));
  EXPECT_EQ(time.recompute.gemm, Seconds(0));
}

// A peer leaves logits and loss out of every time term.
TEST(LayerTime, PricesTheHeadAndTheLoss) {
  Priced p;
  const LayerTime head = p.layer("head");
  const double logits = 2.0 * 4096 * 128256 * static_cast<double>(p.job.sequence_length);
  EXPECT_NEAR(head.forward.flops.value(), logits, 1);
  EXPECT_GE(head.forward.gemm.value(), logits / p.cluster.gpu.peak(DType::bf16).value());
  EXPECT_GT(head.forward.memory_bound, Seconds(0));
  p.job.loss = LossKernel::materialised;
  EXPECT_GT(p.layer("head").forward.memory_bound, head.forward.memory_bound);
}

// A peer's layer is 4 h^2 + 3 h ffn whatever the key/value heads.
TEST(LayerTime, GroupedQueriesNeedSmallerKeyAndValueProducts) {
  const Priced grouped;
  Priced full;
  full.model = test::llama(32, 4096, 14336, 32, 32, 128256);
  const double less =
      full.layer("block").forward.flops.value() - grouped.layer("block").forward.flops.value();
  EXPECT_NEAR(less, 2.0 * 2 * 4096 * (4096 - 1024) * 4096, 1);
}

// Peers price a mixture of experts as a dense layer, of one expert or of all.
TEST(LayerTime, RoutedExpertsWorkOnTheTokensSentToThem) {
  Priced p;
  p.model = test::mixture(32, 4096, 32, 8, 2, 14336, 0);
  const double tokens = 4096;
  const double experts = 2 * tokens * 2 * 3 * 4096.0 * 14336;  // two of eight a token
  double others = 0;
  for (const OperationSpec& op : p.kind("block").operations) {
    if (op.kind == OpKind::gemm && !op.routed_expert) {
      others += 2 * tokens * static_cast<double>(op.width * op.k);
    }
  }
  const double flops = p.layer("block").forward.flops.value();
  EXPECT_NEAR(flops - others - attention_of(p), experts, experts * 1e-9);
}

TEST(LayerTime, ExpertParallelismKeepsTheWorkOfARankAndAddsAnExchange) {
  Priced p;
  p.model = test::mixture(32, 4096, 32, 8, 2, 14336, 0);
  p.layout.dp_shard = 8;
  const LayerTime alone = p.layer("block");
  EXPECT_EQ(alone.forward.ep, Seconds(0));
  p.layout.ep = 8;
  const LayerTime spread = p.layer("block");
  EXPECT_NEAR(spread.forward.flops.value(), alone.forward.flops.value(),
              alone.forward.flops.value() * 1e-9);
  EXPECT_GT(spread.forward.ep, Seconds(0));
  EXPECT_NEAR(spread.forward.ep.value(), spread.backward.ep.value(), 1e-12);
}

TEST(LayerTime, AnUnevenLoadSlowsExpertsAndTheirExchange) {
  Priced p;
  p.model = test::mixture(32, 4096, 32, 8, 2, 14336, 0);
  p.layout.dp_shard = p.layout.ep = 8;
  const LayerTime even = p.layer("block");
  p.job.expert_imbalance = 1.5;
  const LayerTime uneven = p.layer("block");
  EXPECT_GT(uneven.forward.gemm, even.forward.gemm);
  EXPECT_GT(uneven.forward.ep, even.forward.ep);
}

TEST(LayerTime, DeduplicatedDispatchSendsATokenOnceToEachNode) {
  Priced p;
  p.model = test::mixture(32, 4096, 32, 64, 8, 2048, 0);
  p.layout.dp_shard = p.layout.ep = 16;  // two nodes
  p.size(1);
  const Seconds copies = p.layer("block").forward.ep;
  p.job.expert_dispatch = ExpertDispatch::deduplicated;
  const Seconds once = p.layer("block").forward.ep;
  EXPECT_LT(once, 0.5 * copies);  // about 2 of 8 copies cross the slow links
  EXPECT_GT(once, Seconds(0));
}

TEST(LayerTime, SequenceParallelismMovesTheSameBytesAndSparesPointwiseWork) {
  Priced p;
  p.layout.tp = 8;
  p.job.tp_overlap = TpOverlap::none;
  const LayerTime whole = p.layer("block");
  p.layout.sequence_parallel = true;
  const LayerTime spread = p.layer("block");
  EXPECT_LT(spread.forward.memory_bound, whole.forward.memory_bound);
  // An all-reduce is a reduce-scatter and an all-gather: within what the algorithms differ by.
  EXPECT_NEAR(spread.forward.tp / whole.forward.tp, 1, 0.5);
}

TEST(LayerTime, OverlapHidesTensorParallelCommunication) {
  Priced p;
  p.layout.tp = 4;
  p.layout.sequence_parallel = true;
  const auto exposed = [&](TpOverlap overlap) {
    p.job.tp_overlap = overlap;
    const LayerTime time = p.layer("block");
    return time.forward.tp + time.backward.tp;
  };
  const Seconds none = exposed(TpOverlap::none);
  const Seconds backward = exposed(TpOverlap::backward);
  const Seconds pipelined = exposed(TpOverlap::pipelined);
  EXPECT_LT(backward, none);
  EXPECT_LT(pipelined, backward);
  EXPECT_GT(pipelined, Seconds(0));  // the first piece has nothing beside it
}

TEST(LayerTime, ContextParallelismSharesCausalWorkEqually) {
  Priced p;
  p.job.sequence_length = 32768;
  const double whole = p.layer("block").forward.flops.value();
  p.layout.cp = 4;
  for (const ContextParallelKind kind :
       {ContextParallelKind::ring, ContextParallelKind::all_gather, ContextParallelKind::ulysses}) {
    p.layout.cp_kind = kind;
    const LayerTime time = p.layer("block");
    EXPECT_NEAR(time.forward.flops.value(), whole / 4, whole * 1e-9);
    EXPECT_GT(time.forward.cp + time.forward.cp_hidden, Seconds(0));
  }
}

TEST(LayerTime, FrozenWeightsNeedNoWeightGradient) {
  Priced p;
  const LayerTime trained = p.layer("block");
  p.job.frozen_base = true;
  const LayerTime frozen = p.layer("block");
  EXPECT_EQ(frozen.weight_gradient, Seconds(0));
  EXPECT_NEAR(frozen.backward.gemm.value(),
              (trained.backward.gemm - trained.weight_gradient).value(), 1e-12);
}

TEST(LayerTime, ListsEveryProductInThreeDirections) {
  Priced p;
  p.engine = fsdp2();
  std::vector<GemmUse> gemms;
  const LayerTime time =
      layer_time(p.model, p.kind("block"), p.job, p.engine, p.cluster, p.layout, &gemms);
  ASSERT_EQ(gemms.size(), 3U * 7U);
  Seconds sum;
  for (const GemmUse& g : gemms) sum += g.time;
  EXPECT_NEAR(sum.value(), (time.forward.gemm + time.backward.gemm).value(), 1e-9);
  EXPECT_EQ(gemms[0].operation, "self_attn.q_proj");
  EXPECT_EQ(gemms[1].product, "input gradient");
  EXPECT_EQ(gemms[1].n, 4096);
}

TEST(LayerTime, FusedModulesMultiplyQueriesKeysAndValuesAtOnce) {
  const Priced p;  // Megatron
  std::vector<GemmUse> gemms;
  layer_time(p.model, p.kind("block"), p.job, p.engine, p.cluster, p.layout, &gemms);
  ASSERT_EQ(gemms.size(), 3U * 4U);
  EXPECT_EQ(gemms[0].operation, "self_attn.q_proj+k_proj+v_proj");
  EXPECT_EQ(gemms[0].n, 4096 + 2 * 1024);
  EXPECT_EQ(gemms[6].n, 2 * 14336);
}

/// Bytes of plain copies and zeros that a layer's backward pass is priced with.
double copied_backward(const Priced& p, const std::string& name) {
  std::vector<LayerItem> items;
  layer_time(p.model, p.kind(name), p.job, p.engine, p.cluster, p.layout, nullptr, &items);
  double bytes = 0;
  for (const LayerItem& item : items) {
    const bool copies = item.kernel.kind == KernelKind::memory_bound &&
                        item.kernel.move == MoveKind::copy && item.pass == Pass::backward;
    if (copies) bytes += item.kernel.bytes * item.kernel.times;
  }
  return bytes;
}

// Our head adds to the gradient of a shared table before the embedding does, so it sets it to zero:
// 32000 x 512 in fp32, with the 2 x 512 of its norm. The embedding is left with its positions.
TEST(LayerTime, ChargesTheZeroesOfASharedTableOnce) {
  Priced p;
  p.model = test::gpt(8, 512, 8, 32000);
  ASSERT_TRUE(p.model.tie_word_embeddings);
  p.engine = shardwise_engine();
  const double table = 4.0 * 32000 * 512;
  const double positions = 4.0 * 4096 * 512;
  EXPECT_EQ(copied_backward(p, "head"), table + 4.0 * 2 * 512);
  EXPECT_EQ(copied_backward(p, "embedding"), positions);
  // Gradients in bf16 have half the bytes.
  p.layout.fp32_gradients = false;
  EXPECT_EQ(copied_backward(p, "head"), (table + 4.0 * 2 * 512) / 2);
}

/// A bias gradient is a pass over 4096 rows of the output's gradient in bf16, on a GPU too: there
/// the product of the weight gradient could sum it, which takes longer (docs/layer_time.md).
TEST(LayerTime, SumsBiasGradientsByAPassOverTheRows) {
  Priced p;
  p.model = test::gpt(8, 512, 8, 32000);
  p.engine = shardwise_engine();
  const double rows = 4096;
  const double widths = 3 * 512 + 512 + 2048 + 512;  // qkv, output, up, down
  const double wide = copied_backward(p, "block");
  p.layout.fp32_gradients = false;
  const double narrow = copied_backward(p, "block");
  const double parameters = static_cast<double>(p.kind("block").parameter_count());
  EXPECT_EQ(wide, 2 * rows * widths + 4 * parameters);
  EXPECT_EQ(narrow, 2 * rows * widths + 2 * parameters);
  // There are no kernels of ours for AMD: as on a CPU.
  p.layout.fp32_gradients = true;
  p.cluster = *find_cluster("mi300x");
  EXPECT_EQ(copied_backward(p, "block"), 2 * rows * widths + 4 * parameters);
}

// A GPU clears what the first of four micro-batches begins and adds the others to it. A CPU clears
// each, and reads, reads and writes 4 B of each element for three of them.
TEST(LayerTime, ChargesWhatJoinsAnEarlierMicrobatchsGradients) {
  Priced p;
  p.model = test::gpt(8, 512, 8, 32000);
  p.engine = shardwise_engine();
  p.layout.zero_stage = 1;
  p.layout.dp_shard = 2;
  p.size(4);
  const double head = 4.0 * 2 * 512;  // of its norm
  const double table = 4.0 * 32000 * 512;
  EXPECT_EQ(copied_backward(p, "head"), (head + table) / 4);
  p.layout.zero_stage = 2;  // each micro-batch's are reduced
  EXPECT_EQ(copied_backward(p, "head"), head + table);
  p.layout.zero_stage = 1;
  p.cluster = *with_gpus(*find_cluster("laptop"), 2);
  EXPECT_EQ(copied_backward(p, "head"), head + table + 0.75 * 3 * head);
  p.layout.zero_stage = 2;
  EXPECT_EQ(copied_backward(p, "head"), head + table);
}

// Llama-3.1-8B at 8192 tokens: 51.5 GFLOP a token with half of the attention, 57.9 with all of it
// (the same arithmetic on published configuration values by the sources of the measurements).
TEST(ModelFlops, CountHeadAndAttentionButNotTheInputEmbedding) {
  JobSpec job;
  job.sequence_length = 8192;
  const ModelFlops flops = model_flops(test::llama_3_1_8b(), job);
  EXPECT_NEAR(flops.weights, 7.5047e9, 1e5);
  EXPECT_NEAR(flops.causal.value() / 8192, 51.47e9, 0.01e9);
  EXPECT_NEAR(flops.whole.value() / 8192, 57.91e9, 0.01e9);
}

}  // namespace
}  // namespace shardwise
