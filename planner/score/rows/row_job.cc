#include "planner/score/rows/row_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/schedule/gathers_once.h"
#include "planner/score/rows/row_layout.h"
#include "planner/score/rows/row_pytorch.h"
#include "planner/score/rows/row_recompute.h"
#include "planner/spec/plan/names.h"

namespace shardwise {

std::vector<std::string> named_adapters(const Row& row) {
  // MLPerf's Llama has queries, keys and values in one matrix, with one adapter. Here it is on the
  // queries' alone, which have 80 % of its outputs.
  // Source: mlcommons/training@00baefad:llama2_70b_lora/README.md, --lora_target_modules.
  if (row.flag_text("lora_targets") == "attention") return {"q_proj", "o_proj"};
  const JsonValue* targets = row.flag("lora_targets");
  std::vector<std::string> named;
  if (targets == nullptr || targets->kind != JsonValue::Kind::array) return named;
  for (const JsonValue& each : targets->elements) {
    // "q" is short for "q_proj".
    named.push_back(each.string.size() == 1 ? each.string + "_proj" : each.string);
  }
  return named;
}

namespace {

/// Adapters are trained on frozen weights. Their own few millions of parameters are not counted.
bool adapters_of(const Row& row, JobSpec& job, Notes& notes) {
  const std::string_view step = row.flag_text("step");
  if (says(row.task, "qlora") || says(step, "qlora")) {
    notes.refuse("frozen weights of 4 bits are not modelled");
    return false;
  }
  if (!says_any(row.task, "lora", "adapter") && !says(step, "lora")) return true;
  job.frozen_base = true;
  if (named_adapters(row).empty() || row.flag("lora_rank") == nullptr) {
    notes.assume("the adapters' own memory and time are left out");
  }
  return true;
}

void precision_of(const Row& row, JobSpec& job, Notes& notes) {
  const std::string_view wording = row.precision;
  if (says_any(wording, "fp4", "mxfp4")) {
    job.precision = DType::fp4;
  } else if (says_any(wording, "fp8", "float8")) {
    job.precision = DType::fp8;
  } else if (says(wording, "bf16") && !says(wording, "fp16/bf16")) {
    job.precision = DType::bf16;
  } else if (says(wording, "fp16") && !says(wording, "fp16/bf16")) {
    job.precision = DType::fp16;
  } else if (says_any(wording, "fp32", "tf32")) {
    job.precision = says(wording, "tf32") ? DType::tf32 : DType::fp32;
  } else {
    job.precision = says(row.hardware.gpu, "v100") ? DType::fp16 : DType::bf16;
    notes.assume(fmt::format("precision {}", name_of(job.precision)));
  }
  job.fp8_parameter_gather =
      job.precision == DType::fp8 &&
      (says_any(wording, "fp8_param_gather", "fp8 all-gather", "fp8 base weights") ||
       says_any(row.flag_text("float8"), "float8 all-gather", "fp8 all-gather"));
  // Parameters, gradients and optimizer states all in 16 bits, no fp32 copy.
  if (says_any(wording, "pure bf16", "bf16-true", "pure fp16", "fp16-true")) {
    job.main_dtype = job.precision;
    job.moment_dtype = job.precision;
  }
}

/// What shares a scale in 8 bits. Megatron's own default is delayed scaling, that of torchao and of
/// NVIDIA's performance recipes since 2025 a matrix's own largest value.
/// Source: NVIDIA/Megatron-LM:megatron/training/arguments.py, --fp8-recipe; pytorch/ao:torchao/
/// float8/config.py; NVIDIA-NeMo/Megatron-Bridge recipes (bf16_with_fp8_current_scaling_mixed).
void fp8_recipe_of(const Row& row, const RowEngine& engine, JobSpec& job, Notes& notes) {
  if (bits_of(job.precision) > 8) return;
  const auto stated = [&](std::string_view word) {
    return says(row.precision, word) || says(row.flag_text("float8"), word);
  };
  if (stated("gw_hp")) {
    job.fp8_recipe = Fp8Recipe::rowwise_wide_gradient;
  } else if (stated("rowwise")) {
    job.fp8_recipe = Fp8Recipe::rowwise;
  } else if (stated("variant") || stated("mxfp8") || stated("blockwise") ||
             (stated("fp8-mx") && !stated("fp8-cs")) || job.precision == DType::fp4) {
    job.fp8_recipe = Fp8Recipe::block;
  } else if (stated("delayed")) {
    job.fp8_recipe = Fp8Recipe::delayed;
  } else if (!stated("fp8-cs") && !stated("tensorwise")) {
    const bool delayed = engine.megatron && (!engine.performance_recipe || row.date < "2025");
    job.fp8_recipe = delayed ? Fp8Recipe::delayed : Fp8Recipe::tensorwise;
    notes.assume(fmt::format("fp8_recipe {}", name_of(job.fp8_recipe)));
  }
}

/// NVIDIA's performance recipes keep and gather weights in 8 bits (fp8_param_gather), except where
/// blocks of 128 x 128 share a scale (Hopper) and in NeMo's MXFP8.
/// Source: NVIDIA-NeMo/Megatron-Bridge@05097809:src/megatron/bridge/training/mixed_precision.py;
/// NVIDIA/NeMo@0a07447c:nemo/collections/llm/recipes/precision/mixed_precision.py.
void fp8_parameters_of(const Row& row, const RowEngine& engine, const Layout& layout, JobSpec& job,
                       Notes& notes) {
  const bool recipe = engine.megatron && engine.performance_recipe && layout.zero_stage > 0;
  if (!recipe || job.precision != DType::fp8 || job.fp8_parameter_gather) return;
  if (job.fp8_recipe == Fp8Recipe::block &&
      (!says(row.framework, "bridge") || says_any(row.hardware.gpu, "h100", "h200"))) {
    return;
  }
  job.fp8_parameter_gather = true;
  notes.assume("fp8_parameter_gather, as the performance recipes set");
}

bool optimizer_of(const Row& row, JobSpec& job, Notes& notes) {
  const std::string_view wording = row.optimizer;
  if (says(wording, "muon") || says(row.flag_text("optimizer"), "muon")) {
    notes.refuse("optimizer muon is not modelled");
    return false;
  }
  if (says_any(wording, "4-bit")) {
    notes.refuse_memory("optimizer states of 4 bits are not modelled");
  } else if (says_any(wording, "8-bit")) {
    job.moment_dtype = DType::int8;
  } else if (says(wording, "bf16 states")) {
    job.moment_dtype = DType::bf16;
  } else if (says(wording, "sgd")) {
    job.optimizer = Optimizer::sgd;
  }
  return true;
}

/// Activations that wait for backward in 8 bits. Attention in 8 bits keeps its output so, and what
/// it reads as well, which is counted in 16 bits here.
/// Source: NVIDIA/Megatron-LM:megatron/core/fusions/fused_bias_swiglu.py, fp8_input_store;
/// NVIDIA/TransformerEngine@d0067d0d:transformer_engine/pytorch/attention/dot_product_attention/
/// backends.py, FusedAttnFunc.
void saved_formats_of(const Row& row, JobSpec& job) {
  if (row.flag_on("fp8_activation_input_store")) job.saved_activation_inputs = SavedFormat::fp8;
  if (row.flag_on("fp8_attention")) job.saved_attention_outputs = SavedFormat::fp8;
}

void kernels_of(const Row& row, const RowEngine& engine, JobSpec& job, Notes& notes) {
  if (row.flag_on("compile")) job.kernels = Kernels::compiled;
  if (row.flag_off("compile")) job.kernels = Kernels::eager;
  // Transformer Engine came with Hopper; Megatron before it and its "local" implementation are
  // PyTorch operators with a few fused ones.
  const bool before_te = !row.date.empty() && row.date < "2022-10";
  if (engine.megatron && (before_te || row.flag_text("transformer_impl") == "local")) {
    job.kernels = Kernels::eager;
  }
  const bool local = engine.megatron && row.flag_text("transformer_impl") == "local";

  // Megatron's own modules have one attention, which is not fused.
  // Source: NVIDIA/Megatron-LM@d98e8a64:megatron/core/models/backends.py, LocalSpecProvider.
  // Flash attention is a switch in Megatron's code of 2021, which DeepSpeed's fork keeps.
  const bool unfused = row.flag_off("flash_attention") ||
                       says_any(row.flag_text("attention_backend"), "unfused", "local");
  const bool off_by_default =
      (engine.megatron_deepspeed || before_te) && !row.flag_on("flash_attention");
  job.attention =
      unfused || off_by_default || local ? AttentionKernel::materialised : AttentionKernel::flash;
  if (!unfused && off_by_default) notes.assume("attention not fused");
  // Its benchmarks ran with attn_impl triton.
  // Source: mosaicml/llm-foundry@12a63191:scripts/train/benchmarking/submit_benchmarks.py.
  const bool triton = says(row.framework, "composer") && row.flag_on("flash_attention");
  if (triton) job.attention = AttentionKernel::flash1;
  // The same script at first ran PyTorch 1.13 and FSDP's mixed precision PURE.
  if (triton && says(row.precision, "pure")) job.recompute_stops_early = false;
}

/// Megatron's defaults are hidden and attention dropout of 0.1, which its GPTs keep.
/// Source: NVIDIA/Megatron-LM:megatron/training/arguments.py.
void dropout_of(const Row& row, const RowEngine& engine, JobSpec& job) {
  const JsonValue* stated = row.flag("hidden_dropout");
  if (stated != nullptr && stated->number >= 0 && stated->number <= 1) {
    job.dropout = stated->number;
  } else if ((engine.megatron || engine.megatron_deepspeed) && !engine.performance_recipe &&
             says(row.model.norm, "layer")) {
    job.dropout = 0.1;
  }
}

void communication_of(const Row& row, const RowEngine& engine, const JobSpec& job, Layout& layout) {
  const bool recipe = engine.performance_recipe;
  const bool megatron = engine.megatron && layout.zero_stage < 2;
  layout.overlap_grad_reduce = !row.flag_off("overlap_grad_reduce") &&
                               (!megatron || recipe || row.flag_on("overlap_grad_reduce"));
  layout.overlap_param_gather = !row.flag_off("overlap_param_gather") &&
                                (!megatron || recipe || row.flag_on("overlap_param_gather")) &&
                                (!megatron || layout.overlap_grad_reduce);
  // Gradients are accumulated in fp32 by default when training in bf16, not in fp16; the
  // performance recipes set grad_reduce_in_fp32 to false.
  // Source: NVIDIA/Megatron-LM:megatron/training/arguments.py; NVIDIA-NeMo/Megatron-Bridge recipes.
  layout.fp32_gradients = job.precision != DType::fp16;
  if (recipe || says(row.precision, "pure")) layout.fp32_gradients = false;
  if (says(row.precision, "fp32 grad")) layout.fp32_gradients = true;
  // Between the micro-batches of a step: gradients stay whole where they are not reduced.
  if (row.flag_on("fsdp_no_sync")) layout.reduce_every_microbatch = false;
  gather_once(layout, *engine.profile, job);
}

void tp_overlap_of(const Row& row, const RowEngine& engine, const Layout& layout, JobSpec& job) {
  if (layout.tp == 1) return;
  const bool asked = row.flag_on("tp_comm_overlap") || row.flag_on("async_tp");
  const bool refused = row.flag_off("tp_comm_overlap") || row.flag_off("async_tp");
  if (asked || (engine.performance_recipe && !refused)) job.tp_overlap = TpOverlap::pipelined;
}

/// Whether the host replays what it recorded, rather than issuing each kernel. Where only the
/// router and its preparations are recorded, attention and experts still are issued. Source:
/// NVIDIA/Megatron-LM:megatron/core/transformer/transformer_config.py, cuda_graph_scope.
bool replays_kernels(const Row& row) {
  const std::string_view graphs = row.flag_text("cuda_graph_impl");
  if (graphs.empty() || graphs == "none") return false;
  const JsonValue* scope = row.flag("cuda_graph_scope");
  if (scope == nullptr || scope->kind != JsonValue::Kind::array) return true;
  return std::ranges::any_of(scope->elements, [](const JsonValue& part) {
    return says_any(part.string, "attn", "mlp", "full_iteration");
  });
}

/// How tokens reach their experts, and what the host does meanwhile.
void experts_of(const Row& row, JobSpec& job, Notes& notes) {
  // One GEMM an expert is Megatron-Core's default. Its tests ask for grouped ones where they route
  // to two experts, and in two cases that route to one.
  // Source: NVIDIA/Megatron-LM@93ebf8d7:tests/functional_tests/test_cases/moe/*/model_config.yaml.
  if (says(row.framework, "dev ci") && row.model.moe && row.model.moe->topk == 1) {
    job.grouped_gemm = says_any(row.id, "groupedgemm", "ddp_average_in_collective");
    if (!job.grouped_gemm) notes.assume("a GEMM for each expert");
  }
  if (row.flag_off("grouped_gemm") || row.flag_off("moe_grouped_gemm")) job.grouped_gemm = false;
  job.expert_overlap = row.flag_on("moe_a2a_overlap");
  if (!row.flag_text("moe_flex_dispatcher_backend").empty()) {
    job.expert_dispatch = ExpertDispatch::deduplicated;
  }
  job.cuda_graphs = replays_kernels(row);
}

/// The ladder of torchtune's README adds one optimisation to the previous each time; its last steps
/// train adapters, with all but the optimizer inside the backward pass.
/// Source: pytorch/torchtune@bd2a0fc7:README.md, "Optimization flags".
enum class Rung : std::uint8_t {
  baseline,
  packed,
  compiled,
  chunked_loss,
  recompute,
  in_backward,
  offload,
  small_states,
  adapters
};
std::optional<Rung> rung_of(std::string_view step) {
  constexpr std::array<std::string_view, 9> kSteps = {"baseline",
                                                      "+packed",
                                                      "+compile",
                                                      "+chunked ce",
                                                      "+activation ckpt",
                                                      "+optim in bwd",
                                                      "+activation offload",
                                                      "+8-bit adamw",
                                                      "lora"};
  for (std::size_t i = 0; i < kSteps.size(); ++i) {
    if (says(step, kSteps[i])) return static_cast<Rung>(i);
  }
  return std::nullopt;
}

bool ladder_of(const Row& row, JobSpec& job, Notes& notes) {
  const std::string_view step = row.flag_text("step");
  if (step.empty()) return true;
  const std::optional<Rung> rung = rung_of(step);
  if (!rung) {
    notes.refuse(fmt::format("step \"{}\" of a ladder", step));
    return false;
  }
  if (*rung >= Rung::in_backward && *rung < Rung::adapters) {
    notes.refuse("optimizer inside the backward pass is not modelled");
    return false;
  }
  if (*rung >= Rung::compiled) job.kernels = Kernels::compiled;
  if (*rung >= Rung::chunked_loss) job.loss = LossKernel::chunked;
  return true;
}

/// Layers whose activations go to host memory, as a share.
double offloaded_share(const Row& row) {
  if (row.flag_on("activation_cpu_offload") || rung_of(row.flag_text("step")) == Rung::adapters) {
    return 1;
  }
  const JsonValue* layers = row.flag("cpu_offloading_num_layers");
  if (layers == nullptr || layers->kind != JsonValue::Kind::integer || layers->integer <= 0)
    return 0;
  return std::min(1.0, static_cast<double>(layers->integer) /
                           static_cast<double>(row.model.layers.value_or(1)));
}

/// A micro-batch packed into one long sequence: attention reaches over all of it.
/// Source: InternLM/InternEvo:doc/en/usage.md, pack_sample_into_one.
void pack(JobSpec& job, Layout& layout) {
  job.sequence_length *= layout.micro_batch_size;
  job.global_batch_size /= layout.micro_batch_size;
  layout.micro_batch_size = 1;
}

}  // namespace

std::optional<RowJob> job_of(const Row& row, const RowEngine& engine, const Layout& layout,
                             Notes& notes) {
  JobSpec job;
  job.sequence_length = row.model.seq.value_or(0);
  job.global_batch_size = global_batch_of(row, layout);
  precision_of(row, job, notes);
  if (!adapters_of(row, job, notes) || !optimizer_of(row, job, notes)) return std::nullopt;
  fp8_recipe_of(row, engine, job, notes);
  fp8_parameters_of(row, engine, layout, job, notes);
  kernels_of(row, engine, job, notes);
  saved_formats_of(row, job);
  job.loss = row_loss(row, engine);
  read_pytorch(row, engine, job);
  dropout_of(row, engine, job);
  tp_overlap_of(row, engine, layout, job);
  experts_of(row, job, notes);
  if (!ladder_of(row, job, notes)) return std::nullopt;
  job.deterministic = row.flag_on("deterministic_mode");
  job.calculate_per_token_loss = row.flag_on("calculate_per_token_loss");
  job.fused_gradient_accumulation = !row.flag_on("no_gradient_accumulation_fusion") &&
                                    !row.flag_off("gradient_accumulation_fusion");
  if (row.flag_on("defer_embedding_wgrad_compute")) {
    notes.refuse_memory("deferred gradients of the embedding are not modelled");
  }

  const std::optional<RowRecompute> recompute = recompute_of(row, engine, notes);
  if (!recompute) return std::nullopt;
  Layout chosen = layout;
  communication_of(row, engine, job, chosen);
  read_shared_units(row, job, chosen, notes);
  job.recompute_operations = recompute->operations;
  chosen.recompute = recompute->kind;
  chosen.recompute_interval = recompute->interval;
  if (row.flag_on("pack_sample_into_one")) pack(job, chosen);
  if (says(row.flag_text("optimizer_offload"), "cpu")) chosen.offload_optimizer = true;

  RowJob result;
  result.recompute_stated = recompute->stated;
  result.variants.push_back({1, job, chosen});
  const double offloaded = offloaded_share(row);
  if (offloaded > 0) result.variants.front().layout.offload_activations = true;
  if (offloaded > 0 && offloaded < 1) {
    result.variants.front().share = offloaded;
    result.variants.push_back({1 - offloaded, job, chosen});
  }
  return result;
}

}  // namespace shardwise
