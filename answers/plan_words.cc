#include "answers/plan_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "planner/model/parameter_words.h"
#include "planner/question/layout_words.h"
#include "planner/spec/text/format.h"

namespace shardwise::sim {
namespace {

/// " by memory"; nothing for the usual objective.
const char* by_words(Objective objective) {
  switch (objective) {
    case Objective::step_time:
      return "";
    case Objective::memory:
      return " by memory";
    case Objective::cost:
    case Objective::tokens_per_dollar:
      return " by cost";
  }
  return "";
}

/// What columns and settings of these rows need a word for.
std::string column_notes(std::span<const PlanRow> rows) {
  const auto any = [&](auto layout_has) {
    return std::ranges::any_of(rows, layout_has,
                               [](const PlanRow& row) { return row.candidate.layout; });
  };
  std::string text;
  if (any([](const Layout& l) { return l.dp_replicate > 1; })) text += "; dp: shard x replicate";
  if (any([](const Layout& l) { return l.outer_shards_optimizer; })) {
    text += "; HFSDP: optimizer states sharded over both";
  }
  return text;
}

}  // namespace

std::string question_words(const PlanQuestion& question, const ClusterSpec& cluster,
                           const std::vector<std::string>& engines) {
  return fmt::format("{}, {}, {} GPU{} of {}, {}, batch {} x {} tokens", question.model.name,
                     parameters_words(question.model), format_count(cluster.gpus),
                     cluster.gpus == 1 ? "" : "s", cluster.name, fmt::join(engines, ", "),
                     format_count(question.job.global_batch_size),
                     format_count(question.job.sequence_length));
}

std::string counts_words(const SearchCounts& counts) {
  const auto scaled = [](std::int64_t n) { return format_scaled(static_cast<double>(n)); };
  const std::string bounded =
      counts.too_slow > 0 ? fmt::format("{} too slow, ", format_count(counts.too_slow)) : "";
  return fmt::format("{} combinations, {} valid: {} too large, {} at risk, {}{} ranked",
                     scaled(counts.space.enumerated), format_count(counts.space.legal),
                     format_count(counts.does_not_fit), format_count(counts.at_risk), bounded,
                     format_count(counts.ranked));
}

std::string ranking_words(const PlanAnswer& answer, std::span<const PlanRow> rows) {
  std::string text = answer.best.front().simulated
                         ? "step: simulated time; model: closed-form estimate"
                         : "step: closed-form estimate";
  const bool estimated =
      std::ranges::any_of(rows, [](const PlanRow& row) { return !row.simulated.has_value(); });
  if (answer.best.front().simulated && estimated) text += "; ~: not simulated";
  if (!answer.unsimulated.empty()) text += " (" + answer.unsimulated + ")";
  if (std::ranges::any_of(answer.best, &PlanRow::tied)) {
    text += fmt::format("; =: tie, within {}: the {:.0f} % interval of the difference includes 0",
                        format_percent(1 / answer.tie.low - 1), 100 * kIntervalLevel);
  }
  return text + column_notes(rows);
}

std::string engines_words(const PlanQuestion& question, const PlanAnswer& answer) {
  if (!question.takes_engine) return "Best layout of each other engine:";
  return fmt::format("Best engine{}: {} (of {} searched). Best layout of each other engine:",
                     by_words(question.objective), answer.best.front().engine,
                     answer.engines.size());
}

std::string refusal_words(const EngineAnswer& engine) {
  const Diagnostic& why = engine.refused.front();
  return fmt::format("{} refuses: {}: {}", engine.engine->name, why.path, why.message);
}

std::string nothing_fits_words(const PlanAnswer& answer) {
  const auto& cost = answer.nothing.nearest.front().candidate.cost;
  if (answer.nothing.at_risk) {
    return fmt::format("Nothing fits safely: the best layout at risk may need {} of {}",
                       format_bytes(cost.upper), format_bytes(answer.usable));
  }
  return fmt::format("Nothing fits: the smallest layout takes {} of {}, {} too much",
                     format_bytes(cost.needed), format_bytes(answer.usable),
                     format_bytes(cost.needed - answer.usable));
}

std::string way_out_words(const NothingFits& nothing) {
  const auto words = [](const WayOut& way) {
    std::string text = to_string(way.relief);
    if (way.engine != nullptr) text += fmt::format(", engine {}", way.engine->name);
    return text;
  };
  std::string text = nothing.way_out ? words(*nothing.way_out) : "";
  if (nothing.more_gpus) {
    text += (text.empty() ? "" : "; or the fewest GPUs, ") + words(*nothing.more_gpus);
  }
  return text.empty() ? "no single change makes it fit, nor more GPUs" : text;
}

std::string why_not_words(const WhyNot& answer, const FieldValues& values) {
  const std::string asked = in_words(values);
  switch (answer.answer) {
    case WhyNot::Answer::illegal:
      return "Not valid";
    case WhyNot::Answer::does_not_fit: {
      const Verdict& v = answer.other.verdict;
      const Bytes takes = v.needed > v.usable ? v.needed : v.upper;
      return fmt::format("With {} none of {} layouts fits; the smallest is {} over", asked,
                         format_count(answer.layouts), format_bytes(takes - v.usable));
    }
    case WhyNot::Answer::slower: {
      const Seconds more = answer.other.step_time - answer.winner.step_time;
      return fmt::format("With {} the best of {} layouts that fit is {} ({}) slower", asked,
                         format_count(answer.ranked), format_seconds(more),
                         format_percent(more / answer.winner.step_time));
    }
    case WhyNot::Answer::best:
      return "The best layout has these values";
  }
  return "";
}

}  // namespace shardwise::sim
