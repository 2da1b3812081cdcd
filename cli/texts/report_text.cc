#include "cli/texts/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cli/texts/summary_text.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/report/interval_words.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/report/report_fields.h"
#include "planner/spec/report/verdict_words.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

std::string heading(const std::string& text, bool colour) {
  return "\n" + paint(text, Tone::strong, colour) + "\n";
}

/// "self_attn.q_proj+k_proj" reads well as "self_attn.q+k".
std::string without_proj(std::string name) {
  for (std::size_t at = name.find("_proj"); at != std::string::npos; at = name.find("_proj")) {
    name.erase(at, 5);
  }
  return name;
}

/// One row an operation, with the times of those of its three products that rest on `basis`.
std::string products_text(const StepReport& report, GemmBasis basis, bool colour) {
  Table table({{"", Align::left}, {"m x n x k"}, {"forward"}, {"d input"}, {"d weight"}});
  std::string layer;
  bool any = false;
  for (std::size_t i = 0; i + 2 < report.gemms.size(); i += 3) {
    const GemmUse& forward = report.gemms[i];
    std::vector<Cell> times;
    bool shown = false;
    for (std::size_t j = i; j < i + 3; ++j) {
      const GemmUse& g = report.gemms[j];
      shown = shown || g.basis == basis;
      times.emplace_back(g.basis == basis ? format_seconds(g.time) : "-");
    }
    if (!shown) continue;
    any = true;
    if (forward.layer != layer) table.row({layer = forward.layer});
    std::string name = "  " + without_proj(forward.operation);
    if (forward.groups > 1) name += fmt::format(" x{}", forward.groups);
    std::vector<Cell> row{name, fmt::format("{} x {} x {}", forward.m, forward.n, forward.k)};
    row.insert(row.end(), times.begin(), times.end());
    table.row(std::move(row));
  }
  return any ? table.text(colour, 2) : "";
}

/// The line of memory, and what of it must fit: "…; must fit 66.0 GiB".
std::string memory_numbers_text(const StepReport& report, bool brief, bool colour) {
  if (report.stages.empty()) return "";
  const MemoryNumbers numbers = memory_numbers(report);
  std::string needed = format_bytes(report.verdict.needed);
  const std::string held = format_bytes(numbers.nvidia_smi);
  if (needed.substr(needed.find(' ')) == held.substr(held.find(' '))) {
    needed.resize(needed.find(' '));  // as the number before it
  }
  const std::string ends = brief ? "must fit " + needed : ends_words(report);
  return paint(wrap(memory_sum(numbers) + "; " + ends, kTextWidth, 2), Tone::plain, colour) + "\n";
}

}  // namespace

std::string ends_words(const StepReport& report) {
  return fmt::format("must fit: {}, without slack that can be freed, in {}",
                     format_bytes(report.verdict.needed), words_of(memory_numbers(report).ends_in));
}

std::string interval_text(const StepReport& report, const ReportIntervals& known, bool colour) {
  const std::string line = intervals_line(report, known);
  return line.empty() ? "" : paint(wrap(line, kTextWidth, 2), Tone::plain, colour) + "\n";
}

std::string calibration_text(const ReportIntervals& known, bool colour) {
  const std::string rows = calibrated_on(known);
  if (rows.empty()) return "";
  return paint(wrap("intervals: off " + rows, kTextWidth, 2), Tone::quiet, colour) + "\n";
}

std::string verdict_text(const StepReport& report, bool colour, bool brief) {
  const Verdict& v = report.verdict;
  std::string text = paint(verdict_words(report), tone_of(v.fit), colour) + "\n";
  text += memory_numbers_text(report, brief, colour);
  if (v.host > Bytes(0)) {
    text += fmt::format("in the memory of a host: {} of {}, offloaded by its GPUs\n",
                        format_bytes(v.host),
                        v.host_usable > Bytes(0) ? format_bytes(v.host_usable) : "unknown size");
  }
  if (v.fit == Fit::does_not_fit) {
    text += "With enough memory: " + format_seconds(report.step_time) + " a step\n";
  }
  if (!v.cheapest_fix.empty())
    text += wrap("Cheapest change: " + v.cheapest_fix, kTextWidth, 2) + "\n";
  return text;
}

std::string assumed_text(const std::vector<Assumption>& assumptions, bool colour) {
  std::string text;
  for (const Assumption& each : assumptions) {
    // What was asked for in vain, or is not counted, is no assumption.
    const bool idle =
        each.id == "no_effect" || each.id == "links.busy" || each.id.ends_with(".idle");
    text += paint(wrap((idle ? "" : "assumed: ") + each.text, kTextWidth),
                  idle ? Tone::warning : Tone::quiet, colour) +
            "\n";
  }
  return text;
}

std::string layout_text(const StepReport& report, bool colour, const std::string& parameters) {
  const Layout& l = report.layout;
  std::vector<std::string> parts;
  parts.push_back(report.model);
  if (!parameters.empty()) parts.push_back(parameters);
  parts.push_back(
      fmt::format("{} GPU{} of {}", l.world(), l.world() == 1 ? "" : "s", report.cluster));
  parts.push_back(fmt::format("{} ZeRO-{}", report.engine, l.zero_stage));
  const auto degree = [&](const char* name, std::int64_t value) {
    if (value > 1) parts.push_back(fmt::format("{} {}", name, value));
  };
  degree("tp", l.tp);
  degree("cp", l.cp);
  degree("pp", l.pp);
  degree("vpp", l.vpp);
  degree("ep", l.ep);
  degree("dp_shard", l.dp_shard);
  degree("dp_replicate", l.dp_replicate);
  if (l.reshards_to_groups()) {
    parts.push_back(fmt::format("resharded to {}", l.reshard_after_forward));
  }
  if (l.recompute != Recompute::none) {
    parts.push_back(fmt::format("{} recompute", name_of(l.recompute)));
  }
  parts.push_back(fmt::format("{} micro-batch{} of {} sequence{}",
                              format_count(report.num_microbatches),
                              report.num_microbatches == 1 ? "" : "es", l.micro_batch_size,
                              l.micro_batch_size == 1 ? "" : "s"));
  parts.push_back(fmt::format("batch {} x {} tokens", format_count(report.global_batch_size),
                              format_count(report.sequence_length)));
  std::string text;
  std::size_t column = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part = parts[i] + (i + 1 < parts.size() ? "," : "");
    if (column > 0 && column + 1 + part.size() > kTextWidth) {
      text += "\n";
      column = 0;
    } else if (column > 0) {
      text += " ";
      ++column;
    }
    text += part;
    column += part.size();
  }
  return paint(text, Tone::quiet, colour) + "\n";
}

std::string memory_text(const StepReport& report, bool colour) {
  if (report.stages.empty()) return "";
  const auto worst = static_cast<std::size_t>(report.verdict.worst_stage);
  const StageMemory& stage = report.stages[worst];
  const std::string text = heading(
      report.stages.size() > 1 ? fmt::format("Memory of stage {} of {}, GiB at each phase's peak",
                                             worst, report.stages.size())
                               : std::string("Memory, GiB at each phase's peak"),
      colour);
  std::vector<Column> columns = {{"", Align::left}};
  for (const std::string_view phase : kMemoryPhaseLabels) columns.push_back({std::string(phase)});
  Table table(std::move(columns));
  const auto peak = static_cast<std::size_t>(stage.peak_phase());
  for (std::size_t c = 0; c < kMemoryCategories; ++c) {
    std::vector<Cell> cells{std::string(kMemoryLabels[c].label)};
    bool any = false;
    for (const Ledger& ledger : stage.phases) {
      any = any || ledger.bytes[c] != 0;
      cells.emplace_back(format_gib(Bytes(ledger.bytes[c])));
    }
    if (any) table.row(std::move(cells));
  }
  table.rule();
  const auto sum = [&](const char* name, auto of) {
    std::vector<Cell> cells{name};
    for (std::size_t p = 0; p < kMemoryPhases; ++p) {
      const bool most = of == &Ledger::total && p == peak;
      cells.emplace_back(format_gib((stage.phases[p].*of)()), most ? Tone::strong : Tone::plain);
    }
    table.row(std::move(cells));
  };
  sum("allocated", &Ledger::allocated);
  sum("reserved", &Ledger::reserved);
  sum("nvidia-smi", &Ledger::total);
  return text + table.text(colour, 2);
}

std::string time_text(const StepReport& report, bool colour) {
  std::string text = heading(time_heading(report), colour);
  Table table({{"", Align::left}, {""}, {""}});
  for (const TimePart& part : kTimeParts) {
    const Seconds time = report.time.*part.field;
    if (format_seconds(time) == format_seconds(Seconds(0))) continue;
    table.row(
        {std::string(part.label), format_seconds(time), format_percent(time / report.step_time)});
  }
  table.rule();
  table.row({"step", Cell(format_seconds(report.step_time), Tone::strong), format_percent(1)});
  text += table.text(colour, 2);
  if (report.by_axis.empty()) return text;

  text += "\n";
  // The closed form knows what a step loses to an axis, the clock what runs beside its transfers.
  const char* not_hidden = report.timeline ? "exposed" : "lost";
  Table axes({{"communication", Align::left}, {"alone"}, {not_hidden}, {"hidden"}});
  for (const AxisTime& axis : report.by_axis) {
    const double hidden =
        axis.total > Seconds(0) ? std::max(0.0, 1 - axis.exposed / axis.total) : 0;
    axes.row({axis.axis, format_seconds(axis.total), format_seconds(axis.exposed),
              format_percent(hidden)});
  }
  text += axes.text(colour, 2);
  if (!report.timeline) return text;
  const char* note =
      "exposed: communication while nothing computes. lost: exposed, kernels slowed by "
      "transfers, and copies to and from communication buffers";
  return text + paint("  " + wrap(note, kTextWidth - 2, 2), Tone::quiet, colour) + "\n";
}

std::string rates_text(const StepReport& report, const ReportIntervals& known,
                       std::string_view origin, bool colour) {
  Table table({{"", Align::left}, {"", Align::left}});
  table.row(
      {"step", fmt::format("{}, {}", time_with_interval(report.step_time, known.step), origin)});
  table.row({"tokens", fmt::format("{}/s, {}/s a GPU", format_scaled(report.tokens_per_s),
                                   format_scaled(report.tokens_per_s_per_gpu))});
  table.row(
      {"utilisation",
       fmt::format("MFU {} (attention without causal mask {}), HFU {}", format_percent(report.mfu),
                   format_percent(report.mfu_non_causal), format_percent(report.hfu))});
  if (report.dollars_per_1e9_tokens > 0) {
    table.row(
        {"cost", fmt::format("{} per 1e9 tokens", format_dollars(report.dollars_per_1e9_tokens))});
  }
  if (report.joules_per_token > 0) {
    table.row({"energy",
               fmt::format("at most {:.3g} J a token at full GPU power", report.joules_per_token)});
  }
  if (report.checkpoint_write > Seconds(0)) {
    table.row({"checkpoint", fmt::format("{}, written in {}", format_bytes(report.checkpoint_bytes),
                                         format_seconds(report.checkpoint_write))});
  }
  std::string text = "\n" + table.text(colour, 2);
  if (report.assumptions.empty()) return text;
  const std::string count =
      fmt::format("{} assumption{} behind these numbers (--explain lists them)",
                  report.assumptions.size(), report.assumptions.size() == 1 ? "" : "s");
  return text + "\n" + paint(count, Tone::quiet, colour) + "\n";
}

std::string explanation_text(const StepReport& report, bool colour) {
  std::string text = heading("Why", colour);
  for (const Explanation& e : report.explanations) {
    text += "  " + paint(e.subject, Tone::strong, colour) + "\n";
    for (const std::string* line : {&e.formula, &e.values}) {
      if (!line->empty()) text += "    " + wrap(*line, kTextWidth - 4, 6) + "\n";
    }
    if (!e.source.empty()) {
      text += "    " + paint(wrap(e.source, kTextWidth - 4, 6), Tone::quiet, colour) + "\n";
    }
  }
  constexpr std::pair<GemmBasis, const char*> kHeadings[] = {
      {GemmBasis::measured, "GEMM shapes found in measured tables"},
      {GemmBasis::interpolated, "GEMM shapes interpolated between measured ones"},
      {GemmBasis::extrapolated, "GEMM shapes extrapolated: smaller, larger or not measured"}};
  for (const auto& [basis, words] : kHeadings) {
    const std::string products = products_text(report, basis, colour);
    text += heading(words, colour);
    text += products.empty() ? "  none\n" : products;
  }
  return text + assumptions_text(report, colour);
}

std::string assumptions_text(const StepReport& report, bool colour) {
  if (report.assumptions.empty()) return "";
  std::string text = heading("Assumptions", colour);
  for (const Assumption& a : report.assumptions) {
    text += "  " + wrap(a.text, kTextWidth - 2, 4) + "\n";
    text += "    " + paint(wrap(a.source, kTextWidth - 4, 6), Tone::quiet, colour) + "\n";
  }
  return text;
}

}  // namespace shardwise::cli
