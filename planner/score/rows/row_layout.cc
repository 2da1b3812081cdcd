#include "planner/score/rows/row_layout.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

constexpr std::int64_t kLargestCount = 1 << 20;  // keeps every product below inside 64 bits
constexpr std::int64_t kLargestWorld = 1 << 30;

std::int32_t degree(std::optional<std::int64_t> value) {
  return static_cast<std::int32_t>(value.value_or(1));
}

/// The data-parallel degree: as stated, or what the other degrees leave of the GPUs.
std::optional<std::int64_t> data_parallel_of(const Row& row, std::int64_t rest, Notes& notes) {
  const auto& gpus = row.hardware.gpus;
  if (row.parallel.dp && gpus && *row.parallel.dp * rest != *gpus) {
    notes.refuse(
        fmt::format("degrees multiply to {}, not to {} GPUs", *row.parallel.dp * rest, *gpus));
    return std::nullopt;
  }
  if (row.parallel.dp) return row.parallel.dp;
  if (!gpus) {
    notes.refuse("number of GPUs and data-parallel degree not stated");
    return std::nullopt;
  }
  if (*gpus % rest != 0) {
    notes.refuse(fmt::format("degrees multiply to {}, which does not divide {} GPUs", rest, *gpus));
    return std::nullopt;
  }
  notes.assume(fmt::format("dp {}: the GPUs over the other degrees", *gpus / rest));
  return *gpus / rest;
}

/// Cuts dp into shards and replicas as the strategy says.
bool place_data_parallel(const Row& row, std::int64_t dp, Layout& layout, Notes& notes) {
  std::int64_t shard = dp;
  if (row.parallel.hsdp_shard) shard = *row.parallel.hsdp_shard;
  if (row.parallel.optimizer_shard && *row.parallel.optimizer_shard > 0) {
    shard = std::min(*row.parallel.optimizer_shard, dp);
  }
  if (shard < 1 || dp % shard != 0) {
    notes.refuse(fmt::format("{} data-parallel ranks in shards of {}", dp, shard));
    return false;
  }
  layout.dp_shard = static_cast<std::int32_t>(shard);
  layout.dp_replicate = static_cast<std::int32_t>(dp / shard);
  return true;
}

/// The number in "ulysses 4"; 1 when there is none.
std::int64_t number_in(std::string_view wording) {
  const std::size_t at = wording.find_first_of("0123456789");
  std::int64_t number = 1;
  if (at != std::string_view::npos) {
    std::from_chars(wording.data() + at, wording.data() + wording.size(), number);
  }
  return number;
}

bool place_sequence(const Row& row, const RowEngine& engine, Layout& layout, Notes& notes) {
  const std::string_view wording = row.parallel.sequence_wording;
  if (says(wording, "ulysses")) {
    const std::int64_t ways = number_in(wording);
    if (layout.cp == 1) layout.cp = static_cast<std::int32_t>(std::min(ways, kLargestCount));
    layout.cp_kind = ContextParallelKind::ulysses;
  } else if (!wording.empty()) {
    notes.refuse(fmt::format("sequence parallelism \"{}\"", wording));
    return false;
  }
  const std::string_view kind =
      row.flag_text("cp_comm").empty() ? row.flag_text("cp_comm_type") : row.flag_text("cp_comm");
  if (says(kind, "a2a") && !says(kind, "p2p")) layout.cp_kind = ContextParallelKind::ulysses;
  if (says_any(kind, "all_gather", "allgather")) layout.cp_kind = ContextParallelKind::all_gather;
  layout.sequence_parallel = row.parallel.sequence_parallel.value_or(false);
  if (!row.parallel.sequence_parallel && layout.tp > 1) {
    // torchtitan's tensor parallelism always shards norms and residuals over the sequence;
    // Megatron's is a switch that is off unless asked for.
    layout.sequence_parallel = engine.torchtitan;
    notes.assume(fmt::format("sequence parallelism {}", engine.torchtitan ? "on" : "off"));
  }
  if (layout.tp == 1) layout.sequence_parallel = false;  // nothing to cut
  return true;
}

/// Without --expert-tensor-parallel-size Megatron cuts experts as it cuts everything else; the
/// performance recipes set it to 1.
/// Source: NVIDIA/Megatron-LM:megatron/training/arguments.py, validate_args.
void place_experts(const Row& row, const RowEngine& engine, Layout& layout, Notes& notes) {
  if (!row.model.moe) return;  // nothing to cut
  const JsonValue* stated = row.flag("expert_tensor_parallel_size");
  if (row.parallel.etp) {
    layout.etp = degree(row.parallel.etp);
    return;
  }
  if (stated != nullptr && stated->kind == JsonValue::Kind::integer && stated->integer >= 1) {
    layout.etp = static_cast<std::int32_t>(std::min(stated->integer, kLargestCount));
    return;
  }
  layout.etp = engine.performance_recipe ? 1 : layout.tp;
  notes.assume(fmt::format("etp {}", layout.etp));
}

bool place_schedule(const Row& row, Layout& layout, Notes& notes) {
  const std::string_view schedule = row.parallel.pp_schedule;
  if (layout.pp == 1) return true;
  if (says_any(schedule, "dualpipev", "dualpipe_v", "dualpipe-v")) {
    layout.schedule = PipelineSchedule::dualpipe_v;
  } else if (says(schedule, "dualpipe")) {
    layout.schedule = PipelineSchedule::dualpipe;
  } else if (says_any(schedule, "zbv", "zb_v")) {
    layout.schedule = PipelineSchedule::zb_v;
  } else if (says_any(schedule, "zb_2p", "zb-2p", "zb_h2", "zb-h2")) {
    layout.schedule = PipelineSchedule::zb_h2;
  } else if (says_any(schedule, "zero-bubble", "zbb", "zb_h1", "zb-h1", "zb_1p")) {
    layout.schedule = PipelineSchedule::zb_h1;
  } else if (says(schedule, "gpipe")) {
    layout.schedule = PipelineSchedule::gpipe;
  } else if (schedule.empty() || says_any(schedule, "1f1b", "interleaved")) {
    layout.schedule = PipelineSchedule::one_f_one_b;
  } else {
    notes.refuse(fmt::format("pipeline schedule {} is not modelled", schedule));
    return false;
  }
  if (facts_of(layout).v_shaped) layout.vpp = 1;  // their two chunks a stage are in the schedule
  return true;
}

bool place_batch(const Row& row, Layout& layout, Notes& notes) {
  const std::int64_t dp = layout.dp();
  std::optional<std::int64_t> micro = row.batch.micro;
  if (!micro && row.batch.global && row.batch.grad_accum) {
    micro = std::llround(static_cast<double>(*row.batch.global) / static_cast<double>(dp) /
                         *row.batch.grad_accum);
  }
  if (!micro || *micro < 1) {
    if (!row.batch.global) {
      notes.refuse("batch not stated");
      return false;
    }
    micro = 1;
    notes.assume("micro_batch_size 1");
    notes.refuse_memory("micro-batch not stated");
  }
  if (*micro > kLargestCount) {
    notes.refuse(fmt::format("micro-batch of {} sequences", *micro));
    return false;
  }
  layout.micro_batch_size = static_cast<std::int32_t>(*micro);
  const std::int64_t global = global_batch_of(row, layout);
  if (global % (dp * *micro) != 0) {
    notes.refuse(fmt::format("{} sequences do not divide into micro-batches of {} on {} ranks",
                             global, *micro, dp));
    return false;
  }
  if (!row.batch.global && !row.batch.grad_accum) notes.assume("one micro-batch a step");
  return true;
}

}  // namespace

std::int64_t global_batch_of(const Row& row, const Layout& layout) {
  if (row.batch.global) return *row.batch.global;
  const double accumulated = std::max(row.batch.grad_accum.value_or(1), 1.0);
  return layout.dp() * layout.micro_batch_size *
         std::llround(std::min(accumulated, static_cast<double>(kLargestCount)));
}

std::optional<Layout> layout_of(const Row& row, const RowEngine& engine, Notes& notes) {
  const RowParallel& from = row.parallel;
  if (!from.tp || !from.pp) {
    notes.refuse("layout not stated (tp or pp)");
    return std::nullopt;
  }
  Layout layout;
  layout.tp = degree(from.tp);
  layout.pp = degree(from.pp);
  layout.cp = degree(from.cp);
  layout.ep = degree(from.ep);
  layout.vpp = layout.pp > 1 ? degree(from.vpp) : 1;
  if (!place_sequence(row, engine, layout, notes)) return std::nullopt;
  const std::int64_t rest = std::int64_t{layout.tp} * layout.cp * layout.pp;
  if (rest > kLargestWorld) {
    notes.refuse(fmt::format("degrees multiply to {}", rest));
    return std::nullopt;
  }
  const std::optional<std::int64_t> dp = data_parallel_of(row, rest, notes);
  if (!dp || !place_data_parallel(row, *dp, layout, notes)) return std::nullopt;
  place_experts(row, engine, layout, notes);
  layout.zero_stage = static_cast<std::int8_t>(engine.zero_stage);
  if (!place_schedule(row, layout, notes) || !place_batch(row, layout, notes)) return std::nullopt;
  return layout;
}

}  // namespace shardwise
