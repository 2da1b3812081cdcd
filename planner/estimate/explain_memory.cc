#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "planner/cost/memory/memory_terms.h"
#include "planner/cost/memory/stage_residents.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/estimate/explain.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

using enum MemoryCategory;

constexpr const char* kStates = "docs/memory.md, States; ZeRO, arXiv:1910.02054, section 3";
constexpr const char* kActivations =
    "docs/memory.md, Activations; Korthikanti et al., arXiv:2205.05198, section 4";
constexpr const char* kTransient = "docs/memory.md, Gathered weights and gradient staging";
constexpr const char* kRuntime = "docs/memory.md, Library, runtime, allocator; configs/engines/";

/// Every digit, so that the line can be added up, and the rounded amount that people read.
std::string result_text(std::int64_t bytes) {
  return fmt::format("{} B ({})", format_count(bytes), format_bytes(Bytes(bytes)));
}

/// A sum of products in two lines: the words and the numbers.
class Sum {
 public:
  void add(const std::string& words, const Amount& amount) {
    if (amount.bytes() == 0) return;
    const char* plus = formula_.empty() ? "" : " + ";
    formula_ += plus + words;
    values_ += plus;
    if (amount.count != 1) values_ += format_count(amount.count) + " x ";
    values_ += format_count(amount.bytes_each);
    bytes_ += amount.bytes();
  }
  const std::string& formula() const { return formula_; }
  std::string values() const { return values_ + " = " + result_text(bytes_); }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::string formula_;
  std::string values_;
  std::int64_t bytes_ = 0;
};

class MemoryExplainer {
 public:
  MemoryExplainer(StepReport& report, const PricedMemory& memory)
      : report_(report),
        m_(memory),
        stage_(static_cast<std::size_t>(report.verdict.worst_stage)),
        phase_(report.verdict.worst_phase),
        ledger_(report.stages[stage_][phase_]),
        parts_(stage_parts(memory.model, memory.memories, memory.stage_layers[stage_])),
        context_(
            {&memory.rules, &memory.layout, report.verdict.worst_stage, memory.num_microbatches}) {}

  void run() {
    elements();
    const StageTerms terms = stage_terms(parts_, context_);
    for (std::size_t c = 0; c < kMemoryCategories; ++c) {
      const auto category = static_cast<MemoryCategory>(c);
      if (category == allocator_slack || ledger_[category] == 0) continue;
      Sum sum;
      for (const MemoryTerm& term : terms.all()) {
        if (term.category == category && term.in(phase_)) sum.add(term.formula, term.amount);
      }
      line(name_of(category), sum.formula(), sum.values(), source_of(category));
    }
    slack();
    total();
    upper_bound();
    layers();
    above_states();
  }

 private:
  void line(std::string_view subject, std::string formula, std::string values, std::string source) {
    report_.explanations.push_back({fmt::format("{}.{}", name_of(phase_), subject),
                                    std::move(formula), std::move(values), std::move(source)});
  }

  std::string source_of(MemoryCategory category) const {
    switch (category) {
      case weights:
      case main_weights:
      case gradients:
      case main_gradients:
      case optimizer_moments:
      case optimizer_scratch:
        return kStates;
      case gathered_weights:
      case gradient_staging:
        return fmt::format("{}; {}", kTransient, fmt::join(m_.engine.sources, "; "));
      case activations:
      case working:
      case logits_and_loss:
      case recompute_scratch:
        return kActivations;
      case activations_in_flight:
        return "docs/memory.md, Micro-batches in flight; planner/schedule/held_passes.h";
      case library_workspace:
      case communicator:
      case runtime_context:
        return std::string(kRuntime) + "runtime.json";
      case allocator_slack:
        break;
    }
    return std::string(kRuntime) + "allocator.json";
  }

  /// Where the elements of the states come from: the stage's, over the ranks that share them.
  void elements() {
    const StatePlacement placement =
        placement_of(m_.layout.zero_stage, m_.layout.outer_shards_optimizer);
    const auto placed = [&](const char* state, Placement p) {
      const ShardRanks ranks = shard_ranks(m_.layout, p);
      const Unit held = held_elements(parts_, m_.rules, m_.layout, p);
      std::string text = fmt::format("{}: {} / {} -> {}", state, format_count(parts_.dense),
                                     ranks.dense, format_count(held.dense));
      if (parts_.routed > 0) {
        text += fmt::format(", experts {} / {} -> {}", format_count(parts_.routed), ranks.routed,
                            format_count(held.routed));
      }
      return text;
    };
    line("elements",
         fmt::format("trained elements of stage {} / ranks that share them, with padding -> of a "
                     "rank",
                     stage_),
         fmt::format("{}; {}; {}", placed("parameters", placement.parameters),
                     placed("gradients", placement.gradients),
                     placed("optimizer", placement.optimizer)),
         fmt::format("{}; {}", kStates, fmt::join(m_.engine.sources, "; ")));
  }

  void slack() {
    const RuntimeMemory& r = m_.rules.runtime;
    if (ledger_[allocator_slack] == 0) return;
    if (has_slack_of_whole(parts_, m_.layout, m_.rules)) {
      line(name_of(allocator_slack), "share x allocated, in segments of 2 MiB",
           fmt::format("{} x {} = {}", r.slack_whole_share,
                       format_count(ledger_.allocated().value()),
                       result_text(ledger_[allocator_slack])),
           source_of(allocator_slack));
      return;
    }
    const std::int64_t states =
        ledger_[weights] + ledger_[main_weights] + ledger_[gradients] + ledger_[optimizer_moments];
    line(name_of(allocator_slack),
         "bytes + share x allocated + share x states, between least and most of allocated, at "
         "most so many bytes, in segments of 2 MiB",
         fmt::format(
             "{} + {} x {} + {} x {}, between {} and {}{} = {}", format_count(r.slack_bytes),
             r.slack_share, format_count(ledger_.allocated().value()), r.slack_states_share,
             format_count(states), r.slack_least_share, r.slack_most_share,
             r.slack_most_bytes > 0 ? fmt::format(", at most {}", format_count(r.slack_most_bytes))
                                    : "",
             result_text(ledger_[allocator_slack])),
         source_of(allocator_slack));
  }

  void total() {
    Sum sum;
    for (std::size_t c = 0; c < kMemoryCategories; ++c) {
      sum.add(std::string(kMemoryCategoryNames[c]), {1, ledger_.bytes[c]});
    }
    line("total", sum.formula(), sum.values(), "docs/memory.md");
  }

  void upper_bound() {
    const MemoryDoubt doubt = memory_doubt(report_.stages[stage_], parts_, context_);
    Sum sum;
    sum.add("total", {1, ledger_.total().value()});
    sum.add("allocator", {1, doubt.allocator});
    sum.add("communicators", {1, doubt.communicator});
    sum.add("context", {1, doubt.runtime});
    sum.add("temporaries", {1, doubt.activations});
    sum.add("routed tokens", {1, doubt.expert_imbalance});
    line("upper_bound", sum.formula(), sum.values(), "docs/memory.md, Upper bound");
  }

  /// What each operation keeps, for every kind of layer of the stage.
  void layers() {
    for (std::size_t kind = 0; kind < m_.model.kinds.size(); ++kind) {
      const std::int32_t count = m_.stage_layers[stage_].layers_of(static_cast<std::int32_t>(kind));
      if (count == 0) continue;
      Sum sum;
      for (const KeptActivation& kept :
           kept_activations(m_.model, m_.model.kinds[kind], m_.job, m_.engine, m_.layout)) {
        sum.add(kept.operation, {1, kept.bytes});
      }
      if (sum.bytes() == 0) continue;
      line(fmt::format("kept_by.{}", m_.model.kinds[kind].name),
           fmt::format("a micro-batch, {} such layer{}: {}", count, count == 1 ? "" : "s",
                       sum.formula()),
           sum.values(), kActivations);
    }
  }

  /// What is there besides the states, phase by phase: why a job is above what sharding promises.
  void above_states() {
    for (std::size_t p = 0; p < kMemoryPhases; ++p) {
      const Ledger& ledger = report_.stages[stage_].phases[p];
      Sum all;
      std::vector<std::pair<std::int64_t, std::size_t>> above;
      std::int64_t states = 0;
      for (std::size_t c = 0; c < kMemoryCategories; ++c) {
        if (is_state(static_cast<MemoryCategory>(c))) {
          states += ledger.bytes[c];
        } else if (ledger.bytes[c] > 0) {
          above.emplace_back(-ledger.bytes[c], c);
        }
      }
      std::ranges::sort(above);
      all.add("states", {1, states});
      for (const auto& [bytes, c] : above) {
        all.add(fmt::format("{} ({})", kMemoryCategoryNames[c],
                            reason_of(static_cast<MemoryCategory>(c))),
                {1, -bytes});
      }
      report_.explanations.push_back({fmt::format("{}.above_states", kMemoryPhaseNames[p]),
                                      all.formula(), all.values(), "docs/memory.md"});
    }
  }

  static bool is_state(MemoryCategory category) {
    return category == weights || category == main_weights || category == gradients ||
           category == optimizer_moments;
  }

  const char* reason_of(MemoryCategory category) const {
    switch (category) {
      case gathered_weights:
        return "whole weights of the units in use";
      case gradient_staging:
        return "gradients that are whole until they are reduced";
      case main_gradients:
        return "gradients cast for the optimizer";
      case activations:
        return m_.layout.recompute == Recompute::full ? "inputs of the layers, kept to backward"
                                                      : "kept to backward";
      case activations_in_flight:
        return "of the micro-batches that wait in the pipeline";
      case working:
        return "what the running operation reads and makes";
      case logits_and_loss:
        return "tokens x vocabulary";
      case recompute_scratch:
        return "a layer computed again";
      case optimizer_scratch:
        return "temporaries of the step";
      case library_workspace:
        return "of matrix products";
      case communicator:
        return "NCCL's buffers, outside PyTorch";
      case runtime_context:
        return "CUDA's own, outside PyTorch";
      case allocator_slack:
        return "cached, given back when memory runs out";
      default:
        return "states";
    }
  }

  StepReport& report_;
  const PricedMemory& m_;
  std::size_t stage_;
  MemoryPhase phase_;
  const Ledger& ledger_;
  StageParts parts_;
  StageContext context_;
};

}  // namespace

void explain_memory(StepReport& report, const PricedMemory& memory) {
  MemoryExplainer(report, memory).run();
}

}  // namespace shardwise
