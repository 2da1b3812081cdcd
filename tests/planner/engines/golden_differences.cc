#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/root_buckets.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/lowering/data_parallel/buckets.h"
#include "planner/lowering/lower.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/program/ledger.h"
#include "planner/spec/text/check.h"
#include "tests/planner/engines/goldens.h"

namespace shardwise::test {
namespace {

using enum MemoryCategory;

/// Bytes of a ledger that a golden names: a category, or a sum of some.
std::int64_t bytes_of(const Ledger& ledger, const std::string& name) {
  if (name == "total") return ledger.allocated().value() - ledger[library_workspace];
  if (name == "states") {
    return ledger[weights] + ledger[main_weights] + ledger[optimizer_moments];
  }
  if (name == "all_gradients") return ledger[gradients] + ledger[main_gradients];
  const auto category = from_name<MemoryCategory>(name);
  SHARDWISE_CHECK(category.has_value(), name);
  return ledger[*category];
}

std::int64_t bytes_of(const StageMemory& memory, const std::string& figure) {
  const std::size_t dot = figure.find('.');
  const auto phase = from_name<MemoryPhase>(figure.substr(0, dot));
  SHARDWISE_CHECK(phase.has_value(), figure);
  return bytes_of(memory[*phase], figure.substr(dot + 1));
}

bool is_peak(const std::string& figure) {
  return figure.ends_with(".total") || figure.ends_with(".gathered_and_staged");
}

/// Most that is gathered and staged together beside backward, whatever the layers keep: at every
/// layer of a stage without model chunks, one after the other.
std::int64_t most_of_units(const StageParts& parts, const StageContext& context) {
  const StageBuffers buffers = stage_buffers(parts, context);
  std::int64_t most = 0;
  Unit before;
  const Unit all = {parts.dense, parts.routed, 0, parts.frozen};
  std::int64_t outside_before = 0;
  const auto outside = [](const LayerMemory& layer) {
    const bool is = layer.role == LayerRole::embedding || layer.role == LayerRole::head;
    return is ? layer.parameters.dense + layer.parameters.frozen : 0;
  };
  std::int64_t outside_all = 0;
  for (const auto& run : parts.in_order) outside_all += outside(*run.layer) * run.count;
  for (const auto& run : parts.in_order) {
    const LayerParameters& p = run.layer->parameters;
    for (std::int32_t i = 0; i < run.count; ++i) {
      StageMoment moment;
      moment.layer = run.layer;
      moment.before = before;
      moment.after = {all.dense - before.dense - p.dense, all.routed - before.routed - p.routed, 0,
                      all.frozen - before.frozen - p.frozen};
      moment.outside_before = outside_before;
      moment.outside_after = outside_all - outside_before - outside(*run.layer);
      const std::int64_t gathered =
          gathered_weights_at(buffers, parts, context, moment, true).bytes(*context.rules);
      const std::int64_t staged = staging_at(buffers, parts, context, moment, true).bytes();
      most = std::max(most, gathered + staged);
      before.dense += p.dense;
      before.routed += p.routed;
      before.frozen += p.frozen;
      outside_before += outside(*run.layer);
    }
  }
  return most;
}

/// The most of units at once in a pass, which need not be when all else is at its fullest.
std::int64_t gathered_and_staged(const EngineCase& golden) {
  const LoweringContext context = lowering_context(golden.plan, Granularity::layer, false);
  const StageParts parts = stage_parts(golden.plan.model, context.memories,
                                       context.stages.at(static_cast<std::size_t>(golden.stage)));
  return most_of_units(parts, context.of_stage(golden.stage));
}

double percent_of(std::int64_t ours, std::int64_t theirs) {
  if (ours == theirs) return 0;
  return theirs == 0 ? 100 : 100 * (static_cast<double>(ours) / static_cast<double>(theirs) - 1);
}

std::string signed_bytes(std::int64_t bytes) { return fmt::format("{:+} B", bytes); }

EngineDifference of_figure(const std::string& figure, std::int64_t ours, std::int64_t theirs) {
  const double percent = percent_of(ours, theirs);
  if (!is_peak(figure)) return {figure, signed_bytes(ours - theirs), percent, ours == theirs};
  return {figure, fmt::format("{:+.1f} %", percent), percent,
          percent >= kLeastPeak && percent <= kMostPeak};
}

/// Bytes of what a role of a stage's operations moves within the inner axis, in order.
std::vector<std::int64_t> moved(const EngineCase& golden, OpRole role) {
  const StepProgram program = lower(golden.plan);
  const StageProgram& stage = program.stages.at(static_cast<std::size_t>(golden.stage));
  std::vector<std::int64_t> bytes;
  for (const ProgramOp& op : stage.operations) {
    if (op.role != role) continue;
    for (const CollectiveWork& work : stage.costs[static_cast<std::size_t>(op.cost)].collectives) {
      bytes.push_back(work.bytes);
    }
  }
  return bytes;
}

/// The same of reductions as room is made for what they send: a bucket outside the units in front
/// of what was reduced since backward began to fill it. \pre one chunk
std::vector<std::int64_t> reduced(const EngineCase& golden) {
  struct Reduction {
    std::int32_t layer;
    std::int64_t bytes;
  };
  const LoweringContext context = lowering_context(golden.plan, Granularity::layer, false);
  const std::vector<Bucket> buckets = buckets_of(context, golden.stage);
  const auto& chunk = context.stage_chunks[static_cast<std::size_t>(golden.stage)].front();
  const StepProgram program = lower(golden.plan);
  const StageProgram& stage = program.stages.at(static_cast<std::size_t>(golden.stage));
  std::vector<Reduction> order;
  for (const ProgramOp& op : stage.operations) {
    if (op.role != OpRole::reduce) continue;
    auto at = order.end();
    std::int32_t layer = op.layer;
    if (op.part >= 0) {
      layer = chunk.layers.at(buckets.at(static_cast<std::size_t>(op.part)).last).layer;
    }
    if (layer != op.layer) {
      at = std::ranges::find_if(order, [&](const Reduction& r) { return r.layer < layer; });
    }
    order.insert(at, {layer, stage.communication(op)->bytes});
  }
  std::vector<std::int64_t> bytes;
  for (const Reduction& reduction : order) bytes.push_back(reduction.bytes);
  return bytes;
}

std::vector<std::int64_t> list_of(const EngineCase& golden, const std::string& name) {
  if (name == "gathers") return moved(golden, OpRole::gather);
  if (name == "reductions") {
    const bool roots = fills_root_buckets(golden.plan.engine, golden.plan.layout);
    return roots ? reduced(golden) : moved(golden, OpRole::reduce);
  }
  const LoweringContext context =
      lowering_context(golden.plan, Granularity::layer, name == "first_buckets");
  const bool apart = std::ranges::any_of(
      golden.lists, [](const auto& list) { return list.first == "expert_buckets"; });
  std::vector<std::int64_t> bytes;
  for (const Bucket& bucket : buckets_of(context, golden.stage)) {
    if (apart && bucket.routed != (name == "expert_buckets")) continue;
    bytes.push_back(std::llround(static_cast<double>(bucket.padded) * context.gradient_bytes()));
  }
  return bytes;
}

EngineDifference of_list(const std::string& name, const std::vector<std::int64_t>& ours,
                         const std::vector<std::int64_t>& theirs) {
  const auto sum = [](const std::vector<std::int64_t>& list) {
    return std::accumulate(list.begin(), list.end(), std::int64_t{0});
  };
  std::size_t same = 0;
  while (same < std::min(ours.size(), theirs.size()) && ours[same] == theirs[same]) ++same;
  const std::string text =
      ours == theirs ? "+0 B"
                     : fmt::format("{} for {}, the first {} alike, sum {}", ours.size(),
                                   theirs.size(), same, signed_bytes(sum(ours) - sum(theirs)));
  return {name, text, percent_of(sum(ours), sum(theirs)), ours == theirs};
}

struct Worst {
  std::size_t figures = 0;
  std::size_t differing = 0;
  double percent = 0;
  std::string where = "none";
};

Worst worst_of(const EngineGoldens& goldens) {
  Worst worst;
  for (const EngineCase& golden : goldens.cases) {
    for (const EngineDifference& difference : differences(golden)) {
      ++worst.figures;
      worst.differing += difference.accepted ? 0 : 1;
      if (std::abs(difference.percent) <= std::abs(worst.percent)) continue;
      worst.percent = difference.percent;
      worst.where = fmt::format("{}, {}", golden.name, difference.figure);
    }
  }
  return worst;
}

}  // namespace

std::vector<EngineDifference> differences(const EngineCase& golden) {
  const Plan& plan = golden.plan;
  const LayoutMemory memory =
      layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
  const StageMemory& stage = memory.stages.at(static_cast<std::size_t>(golden.stage));
  std::vector<EngineDifference> result;
  for (const auto& [figure, bytes] : golden.ledger) {
    const bool units = figure.ends_with(".gathered_and_staged");
    const std::int64_t ours = units ? gathered_and_staged(golden) : bytes_of(stage, figure);
    result.push_back(of_figure(figure, ours, bytes));
  }
  for (const auto& [name, bytes] : golden.lists) {
    result.push_back(of_list(name, list_of(golden, name), bytes));
  }
  return result;
}

std::string table_of(const std::vector<EngineGoldens>& goldens) {
  std::string text =
      "| engine | held to its own code: version | cases | figures | differ | worst difference |\n"
      "|---|---|---|---|---|---|\n";
  for (const EngineGoldens& one : goldens) {
    const Worst worst = worst_of(one);
    const std::string most =
        worst.percent == 0 ? "none" : fmt::format("{:+.2g} % ({})", worst.percent, worst.where);
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", one.engine, one.version,
                        one.cases.size(), worst.figures, worst.differing, most);
  }
  return text;
}

std::string line_of(const EngineGoldens& goldens) {
  const Worst worst = worst_of(goldens);
  const std::string most = worst.percent == 0 ? "none" : fmt::format("{:+.2g} %", worst.percent);
  return fmt::format("Held to its own code: {};\n{} cases; worst difference {}.", goldens.version,
                     goldens.cases.size(), most);
}

std::string known_differences(const std::vector<EngineGoldens>& goldens) {
  JsonWriter json;
  json.begin_object();
  for (const EngineGoldens& one : goldens) {
    json.begin_object(one.engine);
    for (const EngineCase& golden : one.cases) {
      std::string texts;
      for (const EngineDifference& difference : differences(golden)) {
        if (difference.accepted) continue;
        if (!texts.empty()) texts += "; ";
        texts += fmt::format("{} {}", difference.figure, difference.text);
      }
      if (!texts.empty()) json.member(golden.name, texts);
    }
    json.end_object();
  }
  json.end_object();
  return json.text();
}

}  // namespace shardwise::test
