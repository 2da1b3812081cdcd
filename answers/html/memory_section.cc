#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "answers/html/html_table.h"
#include "answers/html/sections.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/text/format.h"
#include "simulator/drawing/markup.h"
#include "simulator/drawing/timeline_ticks.h"

namespace shardwise::sim {
namespace {

/// Stacked bars of ledgers on one scale.
class MemoryBars {
 public:
  MemoryBars(const PageContent& page, Bytes most)
      : usable_(page.report().verdict.usable), hbm_(page.plan->cluster.gpu.hbm_bytes) {
    most_ = std::max({memory_axis(most, std::max(hbm_, usable_)), Bytes(1)});
  }

  /// \param measured  null where there is none
  void add(std::string_view label, const Ledger& ledger, const Ledger* measured) {
    rows_ += fmt::format("<div class=\"bar\"><span>{}</span><span class=\"track\">{}",
                         escaped(label), stack(ledger, "predicted"));
    if (measured != nullptr) rows_ += stack(*measured, "measured");
    const bool over = usable_ > Bytes(0) && ledger.total() > usable_;
    rows_ += fmt::format("</span><b{}>{}</b></div>\n", over ? " class=\"bad\"" : "",
                         format_bytes(ledger.total()));
  }

  std::string text() const {
    const auto place = [&](Bytes bytes) { return 100 * ratio(bytes); };
    if (usable_ > most_) return above();
    std::string made =
        fmt::format("<div class=\"bars{}\" style=\"--usable:{:.3f}%;--hbm:{:.3f}%\">\n",
                    hbm_ == usable_ ? " one-line" : "", place(usable_), place(hbm_));
    made += rows_ + fmt::format("<p class=\"lines\"><span class=\"usable\">usable {}</span>",
                                format_bytes(usable_));
    if (hbm_ != usable_) {
      made += fmt::format(" <span class=\"hbm\">in all {}</span>", format_bytes(hbm_));
    }
    return made + "</p></div>\n";
  }

 private:
  /// Where what is used is too little of a GPU's memory to be seen beside it.
  std::string above() const {
    return fmt::format(
        "<div class=\"bars alone\">\n{}<p class=\"lines\"><span>usable {}, beyond the "
        "right edge</span></p></div>\n",
        rows_, format_bytes(usable_));
  }

  double ratio(Bytes bytes) const {
    return static_cast<double>(bytes.value()) / static_cast<double>(most_.value());
  }

  std::string stack(const Ledger& ledger, std::string_view origin) const {
    std::string made = fmt::format("<span class=\"stack {}\">", origin);
    const GroupedBytes groups = grouped(ledger);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g] <= Bytes(0)) continue;
      fmt::format_to(std::back_inserter(made),
                     "<i class=\"g{}\" style=\"width:{:.3f}%\" title=\"{}, {}: {}\"></i>", g,
                     100 * ratio(groups[g]), kMemoryGroupLabels[g], origin,
                     format_bytes(groups[g]));
    }
    return made + "</span>";
  }

  Bytes usable_;
  Bytes hbm_;
  Bytes most_;
  std::string rows_;
};

std::string legend() {
  std::string made = "<p class=\"legend\">";
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    made += fmt::format("<span><i class=\"g{}\"></i>{}</span> ", g, kMemoryGroupLabels[g]);
  }
  return made + "</p>\n";
}

/// The measured ledgers of a stage; null where a run has none.
const StageMemory* measured_stage(const PageContent& page, std::size_t stage) {
  if (page.measured == nullptr || stage >= page.measured->stages.size()) return nullptr;
  const StageMemory& found = page.measured->stages[stage];
  return found.peak_total() > Bytes(0) ? &found : nullptr;
}

/// Every category at every phase of a stage, under its group.
std::string phases_table(const StageMemory& stage) {
  std::vector<HtmlColumn> columns = {{"bytes", Align::left}};
  for (const std::string_view phase : kMemoryPhaseLabels) columns.emplace_back(std::string(phase));
  HtmlTable table(std::move(columns));
  const auto add = [&](std::string_view label, Tone tone, auto bytes_in) {
    std::vector<HtmlCell> cells{{std::string(label), tone}};
    for (const Ledger& ledger : stage.phases) {
      cells.emplace_back(format_count(bytes_in(ledger)), tone);
    }
    return cells;
  };
  for (std::size_t g = 0; g < kMemoryGroups; ++g) {
    table.row(add(kMemoryGroupLabels[g], Tone::strong,
                  [g](const Ledger& l) { return grouped(l)[g].value(); }),
              "group");
    for (const MemoryLabel& each : kMemoryLabels) {
      if (each.group != static_cast<MemoryGroup>(g)) continue;
      const auto bytes_in = [&each](const Ledger& l) { return l[each.category]; };
      const bool any =
          std::ranges::any_of(stage.phases, [&](const Ledger& l) { return bytes_in(l) != 0; });
      if (any) table.row(add(each.label, Tone::plain, bytes_in));
    }
  }
  table.total(add("total", Tone::strong, [](const Ledger& l) { return l.total().value(); }));
  return table.text("class=\"ledger\"");
}

/// The groups of every stage at its peak.
std::string stages_table(const StepReport& report) {
  std::vector<HtmlColumn> columns = {{"stage", Align::left}, {"phase", Align::left}};
  for (const std::string_view group : kMemoryGroupLabels) columns.emplace_back(std::string(group));
  columns.emplace_back("total");
  columns.emplace_back("at most");
  HtmlTable table(std::move(columns));
  for (std::size_t s = 0; s < report.stages.size(); ++s) {
    const StageMemory& stage = report.stages[s];
    const Ledger& peak = stage[stage.peak_phase()];
    std::vector<HtmlCell> cells{std::to_string(s), std::string(label_of(stage.peak_phase()))};
    for (const Bytes bytes : grouped(peak)) cells.emplace_back(format_count(bytes.value()));
    cells.emplace_back(format_count(peak.total().value()), Tone::strong);
    if (s < report.stage_upper.size()) {
      cells.emplace_back(format_count(report.stage_upper[s].value()), Tone::quiet);
    }
    table.row(cells);
  }
  return table.text("class=\"ledger\"");
}

}  // namespace

std::string memory_section(const PageContent& page) {
  const StepReport& report = page.report();
  if (report.stages.empty()) return "";
  Bytes most;
  for (const StageMemory& stage : report.stages) most = std::max(most, stage.peak_total());
  if (page.measured != nullptr) {
    for (const StageMemory& stage : page.measured->stages) {
      most = std::max(most, stage.peak_total());
    }
  }
  const auto worst = static_cast<std::size_t>(report.verdict.worst_stage);
  const StageMemory& fullest = report.stages.at(worst);
  const StageMemory* ran = measured_stage(page, worst);
  MemoryBars phases(page, most);
  for (std::size_t p = 0; p < kMemoryPhases; ++p) {
    phases.add(kMemoryPhaseLabels[p], fullest.phases[p],
               ran != nullptr ? &ran->phases[p] : nullptr);
  }
  const bool several = report.stages.size() > 1;
  std::string made = legend();
  made += fmt::format("<h3>By phase{}</h3>\n",
                      several ? fmt::format(" of stage {}, the fullest", worst) : "");
  made += phases.text();
  if (several) {
    MemoryBars stages(page, most);
    for (std::size_t s = 0; s < report.stages.size(); ++s) {
      const StageMemory& stage = report.stages[s];
      const StageMemory* measured = measured_stage(page, s);
      stages.add(fmt::format("stage {}", s), stage[stage.peak_phase()],
                 measured != nullptr ? &(*measured)[measured->peak_phase()] : nullptr);
    }
    made += "<h3>By stage, at its peak</h3>\n" + stages.text();
  }
  if (page.measured != nullptr) {
    made += ran != nullptr ? "<p class=\"quiet\">The thin bar is measured.</p>\n"
                           : "<p class=\"quiet\">The measured report has no memory.</p>\n";
  }
  made += folded(several ? fmt::format("Stage {} to the byte", worst) : "To the byte",
                 phases_table(fullest));
  if (several) made += folded("All stages to the byte", stages_table(report));
  return section("memory", "Memory of a GPU", memory_sum(memory_numbers(report)), made);
}

}  // namespace shardwise::sim
