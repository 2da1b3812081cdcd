#include "cli/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "planner/spec/format.h"
#include "planner/spec/names.h"
#include "planner/spec/plan_fields.h"
#include "planner/spec/report_fields.h"
#include "planner/spec/table.h"
#include "planner/spec/utf8.h"

namespace shardwise::cli {
namespace {

using sim::PlanRow;

constexpr std::size_t kWidth = 80;        // of sentences
constexpr std::size_t kTableWidth = 100;  // of tables of layouts

std::string words_of(std::string_view key) {
  std::string words(key);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

/// "tp-pp-dp": the axes of more than one rank, fastest first.
std::string order_words(const Layout& layout) {
  std::vector<std::string_view> axes;
  for (const Axis axis : layout.order) {
    switch (axis) {
      case Axis::tp:
        if (layout.tp > 1) axes.emplace_back("tp");
        break;
      case Axis::cp:
        if (layout.cp > 1) axes.emplace_back("cp");
        break;
      case Axis::ep:
        if (layout.ep > 1) axes.emplace_back("ep");
        break;
      case Axis::pp:
        if (layout.pp > 1) axes.emplace_back("pp");
        break;
      case Axis::dp_shard:
        if (layout.dp_shard > 1) axes.emplace_back("dp");
        break;
      case Axis::dp_replicate:
        if (layout.dp_replicate > 1) axes.emplace_back("replicas");
        break;
    }
  }
  return fmt::format("{}", fmt::join(axes, "-"));
}

/// One column of a table of layouts.
struct LayoutColumn {
  Column column;
  std::function<std::string(const PlanRow&)> text;
  bool always = false;  // shown even when all rows have the same
};

/// \param simulated  with the time of the step-time model beside that on the clock
std::vector<LayoutColumn> layout_columns(bool simulated) {
  const auto degree = [](const char* name, std::int32_t Layout::*field) {
    return LayoutColumn{
        {name}, [field](const PlanRow& r) { return std::to_string(r.candidate.layout.*field); }};
  };
  std::vector<LayoutColumn> columns;
  columns.push_back({{"step"}, [](const PlanRow& r) { return format_seconds(r.step()); }, true});
  if (simulated) {
    columns.push_back({{"model"},
                       [](const PlanRow& r) { return format_seconds(r.candidate.cost.step_time); },
                       true});
  }
  columns.push_back({{"MFU"}, [](const PlanRow& r) { return format_percent(r.mfu); }, true});
  columns.push_back(
      {{"GiB"}, [](const PlanRow& r) { return format_gib(r.candidate.cost.point); }, true});
  columns.push_back({{"$/1e9 tok"}, [](const PlanRow& r) {
                       return r.dollars_per_1e9_tokens > 0
                                  ? format_dollars(r.dollars_per_1e9_tokens)
                                  : "-";
                     }});
  columns.push_back({{"engine", Align::left}, [](const PlanRow& r) { return r.engine; }});
  columns.push_back({{"GPUs"}, [](const PlanRow& r) { return format_count(r.cluster->gpus); }});
  columns.push_back(degree("tp", &Layout::tp));
  columns.push_back(degree("cp", &Layout::cp));
  columns.push_back(degree("pp", &Layout::pp));
  columns.push_back(degree("vpp", &Layout::vpp));
  columns.push_back(degree("ep", &Layout::ep));
  columns.push_back(degree("etp", &Layout::etp));
  columns.push_back({{"dp"}, [](const PlanRow& r) {
                       const Layout& l = r.candidate.layout;
                       return l.dp_replicate > 1
                                  ? fmt::format("{} x {}", l.dp_shard, l.dp_replicate)
                                  : std::to_string(l.dp_shard);
                     }});
  columns.push_back({{"mbs"}, [](const PlanRow& r) {
                       return std::to_string(r.candidate.layout.micro_batch_size);
                     }});
  columns.push_back(
      {{"ZeRO"}, [](const PlanRow& r) { return std::to_string(r.candidate.layout.zero_stage); }});
  columns.push_back({{"settings", Align::left},
                     [](const PlanRow& r) { return other_settings(r.candidate.layout); }});
  return columns;
}

/// Of the number and all columns but the last, which takes what is left.
std::size_t width_before_last(const std::vector<LayoutColumn>& columns,
                              const std::vector<PlanRow>& rows) {
  std::size_t width = 5;
  for (std::size_t c = 0; c + 1 < columns.size(); ++c) {
    std::size_t widest = display_width(columns[c].column.heading);
    for (const PlanRow& row : rows) {
      widest = std::max(widest, display_width(columns[c].text(row)));
    }
    width += 2 + widest;
  }
  return width;
}

bool one_cluster(const std::vector<PlanRow>& rows) {
  return std::ranges::all_of(rows, [&](const PlanRow& row) {
    return row.cluster->name == rows.front().cluster->name &&
           row.cluster->gpus == rows.front().cluster->gpus;
  });
}

std::string signed_seconds(Seconds time) {
  return time < Seconds(0) ? "-" + format_seconds(-1.0 * time) : "+" + format_seconds(time);
}

/// Parts of a step by how much they differ.
std::string difference_text(const StepReport& winner, const StepReport& other, bool colour) {
  Table table({{"", Align::left}, {"best"}, {"asked"}, {"difference"}});
  std::vector<const TimePart*> parts;
  for (const TimePart& part : kTimeParts) {
    if (winner.time.*part.field != other.time.*part.field) parts.push_back(&part);
  }
  std::ranges::sort(parts, [&](const TimePart* a, const TimePart* b) {
    return other.time.*a->field - winner.time.*a->field >
           other.time.*b->field - winner.time.*b->field;
  });
  for (const TimePart* part : parts) {
    const Seconds before = winner.time.*part->field;
    const Seconds after = other.time.*part->field;
    table.row({std::string(part->label), format_seconds(before), format_seconds(after),
               signed_seconds(after - before)});
  }
  table.rule();
  table.row({"step", format_seconds(winner.step_time), format_seconds(other.step_time),
             signed_seconds(other.step_time - winner.step_time)});
  return table.text(colour, 2);
}

/// "tp 4, cp 2, dp_shard 8": the fields in which two layouts differ, with their values in `to`.
std::string differing(const Layout& from, const Layout& to) {
  std::vector<std::string> words;
  for (const std::string& key : layout_keys()) {
    if (field_text(from, key) != field_text(to, key)) {
      words.push_back(fmt::format("{} {}", key, field_text(to, key)));
    }
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

std::string other_settings(const Layout& layout) {
  const Layout usual;
  std::vector<std::string> words;
  const auto say = [&](bool differs, std::string text) {
    if (differs) words.push_back(std::move(text));
  };
  say(layout.recompute != usual.recompute,
      fmt::format("{} recompute", name_of(layout.recompute)) +
          (layout.recompute_interval > 1 ? fmt::format(" of every {}", layout.recompute_interval)
                                         : ""));
  say(layout.schedule != usual.schedule, std::string(name_of(layout.schedule)));
  say(layout.cp > 1 && layout.cp_kind != usual.cp_kind, std::string(name_of(layout.cp_kind)));
  say(layout.tp > 1 && !layout.sequence_parallel, "no sequence parallel");
  say(layout.outer_shards_optimizer, "HFSDP");
  say(layout.zero_stage == 3 && layout.reshard_after_forward == 0, "kept gathered");
  say(layout.reshards_to_groups(), fmt::format("resharded to {}", layout.reshard_after_forward));
  say(layout.zero_stage >= 2 && !layout.reduce_every_microbatch, "reduced once");
  say(layout.offload_optimizer, "optimizer on host");
  say(layout.offload_activations, "activations on host");
  say(layout.store_param_remainders, "param remainders");
  say(layout.double_buffer, "double buffer");
  say(layout.first_stage_layers > 0, fmt::format("first {}", layout.first_stage_layers));
  say(layout.last_stage_layers > 0, fmt::format("last {}", layout.last_stage_layers));
  say(layout.order != usual.order, order_words(layout));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string layouts_text(const std::vector<PlanRow>& rows, bool several_engines, bool colour) {
  std::vector<LayoutColumn> columns;
  std::vector<std::string> in_all;  // what all rows have, other than one
  const bool simulated =
      std::ranges::any_of(rows, [](const PlanRow& row) { return row.simulated.has_value(); });
  for (LayoutColumn& each : layout_columns(simulated)) {
    std::set<std::string> values;
    for (const PlanRow& row : rows) values.insert(each.text(row));
    const bool says = values.size() > 1 || (rows.size() == 1 && *values.begin() != "1" &&
                                            *values.begin() != "-" && !values.begin()->empty());
    const bool engine = several_engines && each.column.heading == "engine";
    const std::string& value = *values.begin();
    if (each.always || says || engine) {
      columns.push_back(std::move(each));
    } else if (each.column.heading == "engine" || each.column.heading == "GPUs") {
      continue;  // the heading of the answer has them
    } else if (value != "1" && value != "-" && !value.empty() && rows.size() > 1) {
      in_all.push_back(each.column.heading == "settings"
                           ? value
                           : fmt::format("{} {}", each.column.heading, value));
    }
  }
  std::size_t width = width_before_last(columns, rows);
  if (width > kTableWidth - 20 && one_cluster(rows)) {
    // On one cluster the price of tokens says what the step time says.
    std::erase_if(columns, [](const LayoutColumn& c) { return c.column.heading == "$/1e9 tok"; });
    width = width_before_last(columns, rows);
  }
  const std::size_t left = kTableWidth - std::min(width, kTableWidth - 20);
  std::vector<Column> headings{{"# "}};
  for (const LayoutColumn& each : columns) headings.push_back(each.column);
  Table table(std::move(headings));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<Cell> cells{std::to_string(i + 1) + (rows[i].tied ? "=" : " ")};
    for (const LayoutColumn& each : columns) {
      cells.emplace_back(shown(each.text(rows[i]), left), i == 0 ? Tone::strong : Tone::plain);
    }
    table.row(std::move(cells));
  }
  std::string text = table.text(colour);
  if (!in_all.empty()) text += fmt::format("all: {}\n", fmt::join(in_all, ", "));
  return text;
}

std::string front_text(const sim::PlanAnswer& answer, bool several_engines, std::size_t most,
                       bool colour) {
  const std::vector<PlanRow>& front = answer.front;
  std::vector<PlanRow> rows = front;
  std::string count;
  if (front.size() > most && most > 1) {
    rows.clear();
    for (std::size_t i = 0; i < most; ++i) {
      rows.push_back(front[i * (front.size() - 1) / (most - 1)]);
    }
    count = fmt::format(", {} of {} (--long)", most, front.size());
  }
  const std::string title = "Pareto front of memory and the closed-form estimate of time" + count;
  return "\n" + paint(title, Tone::strong, colour) + "\n" +
         layouts_text(rows, several_engines, colour);
}

std::string counts_text(const std::vector<SearchCounts>& counts, bool colour) {
  SearchCounts all = counts.front();
  for (std::size_t e = 1; e < counts.size(); ++e) {
    all.space.enumerated += counts[e].space.enumerated;
    all.space.legal += counts[e].space.legal;
    all.ranked += counts[e].ranked;
    all.too_slow += counts[e].too_slow;
    all.at_risk += counts[e].at_risk;
    all.does_not_fit += counts[e].does_not_fit;
  }
  const auto scaled = [](std::int64_t n) { return format_scaled(static_cast<double>(n)); };
  const std::string bounded =
      all.too_slow > 0 ? fmt::format("{} too slow, ", format_count(all.too_slow)) : "";
  const std::string text = fmt::format(
      "{} combinations, {} valid: {} too large, {} at risk, {}{} ranked",
      scaled(all.space.enumerated), format_count(all.space.legal), format_count(all.does_not_fit),
      format_count(all.at_risk), bounded, format_count(all.ranked));
  return paint(wrap(text, kWidth), Tone::quiet, colour) + "\n";
}

std::string nothing_fits_text(const sim::PlanQuestion& question, const sim::PlanAnswer& answer,
                              bool colour) {
  const sim::NothingFits& nothing = answer.nothing;
  const Bytes upper = nothing.nearest.front().candidate.cost.upper;
  const std::string line =
      nothing.at_risk
          ? fmt::format("Nothing fits safely: the best layout at risk may need {} of {}",
                        format_bytes(upper), format_bytes(answer.usable))
          : fmt::format("Nothing fits: the smallest layout takes {} of {}, {} too much",
                        format_bytes(upper), format_bytes(answer.usable),
                        format_bytes(upper - answer.usable));
  const std::string change = nothing.cheapest_change.value_or("no single change makes it fit");
  return fmt::format("{}\n\n{}\n{}\n{}\n", paint(line, Tone::bad, colour),
                     layouts_text(nothing.nearest, question.engines.size() > 1, colour),
                     counts_text(answer.counts(), colour),
                     wrap("Cheapest change: " + change, kWidth, 2));
}

std::string rules_text(const sim::PlanAnswer& answer, bool colour) {
  std::vector<RuleCount> sums;
  for (const SearchCounts& engine : answer.counts()) {
    for (const RuleCount& each : engine.space.pruned) {
      const auto same = std::ranges::find_if(
          sums, [&](const RuleCount& s) { return s.rule->id == each.rule->id; });
      if (same == sums.end()) {
        sums.push_back(each);
      } else {
        same->layouts += each.layouts;
      }
    }
  }
  Table table({{"dropped"}, {"by the rule", Align::left}});
  for (const RuleCount& each : sums) {
    if (each.layouts == 0) continue;
    table.row({format_scaled(static_cast<double>(each.layouts)),
               shown(each.rule->text, kWidth) + (each.rule->redundant ? " *" : "")});
  }
  return "\n" + paint("Rules", Tone::strong, colour) + "\n" + table.text(colour, 2) +
         "  * would run, but equals another layout or is outside this space\n\n" +
         wrap(fmt::format("Fixed at one value (--open FIELD searches the others): {}",
                          fmt::join(answer.held, ", ")),
              kWidth, 2) +
         "\n" +
         wrap(
             "Properties of the job, not of a layout: precision, attention, loss, kernels, "
             "tp_overlap, expert_dispatch, expert_overlap, cuda_graphs, the optimizer and its "
             "dtypes, batch and sequence length",
             kWidth, 2) +
         "\n";
}

std::string why_not_text(const WhyNot& answer, const FieldValues& values, bool colour) {
  std::vector<std::string> words;
  for (const auto& [field, value] : values) words.push_back(fmt::format("{} {}", field, value));
  const std::string asked = fmt::format("{}", fmt::join(words, ", "));
  std::string text;
  switch (answer.answer) {
    case WhyNot::Answer::illegal: {
      text = paint("Not valid", Tone::bad, colour) + " as a change of the best layout:\n";
      for (const Diagnostic& each : answer.reasons) {
        text += "  " + each.path + ": " + each.message +
                (each.hint.empty() ? "" : " (" + each.hint + ")") + "\n";
      }
      if (answer.reasons.empty()) {
        text += "  no valid layout of this space has these values (--space full has more)\n";
      }
      return text;
    }
    case WhyNot::Answer::does_not_fit: {
      const Verdict& v = answer.other.verdict;
      text = paint(fmt::format("With {} none of {} layouts fits; the smallest is {} over", asked,
                               format_count(answer.layouts), format_bytes(v.upper - v.usable)),
                   Tone::bad, colour) +
             "\n";
      text +=
          "  " + wrap(differing(answer.winner.layout, answer.other.layout), kWidth - 2, 2) + "\n\n";
      Table table({{"", Align::left}, {"best"}, {"asked"}, {"more"}});
      const auto ledger = [](const StepReport& r) {
        return r.stages[static_cast<std::size_t>(r.verdict.worst_stage)][r.verdict.worst_phase];
      };
      for (const auto& [category, more] : memory_growth(answer.winner, answer.other)) {
        table.row({words_of(name_of(category)),
                   format_bytes(Bytes(ledger(answer.winner)[category])),
                   format_bytes(Bytes(ledger(answer.other)[category])), "+" + format_bytes(more)});
      }
      return text + table.text(colour, 2);
    }
    case WhyNot::Answer::slower: {
      const Seconds more = answer.other.step_time - answer.winner.step_time;
      text = paint(fmt::format("With {} the best of {} layouts that fit is {} ({}) slower", asked,
                               format_count(answer.ranked), format_seconds(more),
                               format_percent(more / answer.winner.step_time)),
                   Tone::warning, colour) +
             "\n";
      text +=
          "  " + wrap(differing(answer.winner.layout, answer.other.layout), kWidth - 2, 2) + "\n\n";
      return text + difference_text(answer.winner, answer.other, colour);
    }
    case WhyNot::Answer::best:
      return paint("The best layout has these values", Tone::good, colour) + "\n";
  }
  return text;
}

}  // namespace shardwise::cli
