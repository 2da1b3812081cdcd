#include <fmt/format.h>
#include <implot.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/question/layout_text.h"
#include "gui/models/scaling/scaling_model.h"
#include "gui/panels/panels.h"
#include "gui/panels/plot.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

constexpr std::array kHeads = {"GPUs", "step",      "tokens/s", "MFU",
                               "GiB",  "$/1e9 tok", "per GPU",  "layout"};
constexpr std::size_t kNumberColumns = kHeads.size() - 1;

/// The numbers of a row; of one without a layout the count of GPUs alone.
std::vector<std::string> cells_of(Ui& ui, const ScalingPoint& point) {
  std::vector<std::string> cells = {format_count(point.gpus)};
  if (!point.layout) return cells;
  const bool priced = point.dollars_per_1e9_tokens > 0;
  cells.insert(cells.end(),
               {format_seconds(point.time), format_scaled(point.tokens_per_s),
                format_percent(point.mfu), format_gib(point.memory),
                priced ? format_dollars(point.dollars_per_1e9_tokens) : std::string("-"),
                format_percent(efficiency(ui.state.scaling.map.points(), point))});
  return cells;
}

/// Columns as wide as their numbers: the layout has the rest.
void set_up_columns(Ui& ui, const std::vector<std::vector<std::string>>& rows) {
  for (std::size_t c = 0; c < kNumberColumns; ++c) {
    const std::string_view head = kHeads[c];
    const std::size_t space = head.find(' ');  // where it may take a second line
    float widest = number_width(ui, head.substr(0, space));
    if (space != head.npos) widest = std::max(widest, number_width(ui, head.substr(space + 1)));
    for (const std::vector<std::string>& cells : rows) {
      if (c < cells.size()) widest = std::max(widest, number_width(ui, cells[c]));
    }
    ImGui::TableSetupColumn(kHeads[c], ImGuiTableColumnFlags_WidthFixed, widest);
  }
  ImGui::TableSetupColumn(kHeads.back(), ImGuiTableColumnFlags_WidthStretch);
}

void draw_counts(Ui& ui) {
  if (!ImGui::BeginTable("scaling", static_cast<int>(kHeads.size()), ImGuiTableFlags_RowBg)) return;
  const auto& points = ui.state.scaling.map.points();
  std::vector<std::vector<std::string>> rows;
  for (const ScalingPoint& point : points) rows.push_back(cells_of(ui, point));
  set_up_columns(ui, rows);
  for (const char* const head : kHeads) {
    ImGui::TableNextColumn();
    const bool words = head == kHeads.back();
    words ? text(ui, head, ui.theme.quiet) : head_right(ui, head, ui.theme.quiet);
    ui.probes.put_item(fmt::format("scaling.head.{}", head));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ScalingPoint& point = points[i];
    const std::string words = point.layout  ? layout_text(*point.layout)
                              : point.known ? point.why_none
                                            : "…";
    ImGui::TableNextRow();
    ImGui::TableSetColumnIndex(kNumberColumns);
    const float height = wrapped_height(words);
    wrapped_text(ui, words, point.layout ? ui.theme.text : ui.theme.warning);
    ImGui::TableSetColumnIndex(0);
    ImGui::PushID(static_cast<int>(point.gpus));
    const ImVec2 at = ImGui::GetCursorPos();
    ImGui::PushStyleColor(ImGuiCol_Header, ui.ink(ui.theme.selected));
    if (ImGui::Selectable("##row", point.gpus == ui.state.plan.cluster.gpus,
                          ImGuiSelectableFlags_SpanAllColumns, {0, height})) {
      ui.want(fmt::format("scaling.take {}", point.gpus));
    }
    ImGui::PopStyleColor();
    ui.probes.put_item(fmt::format("scaling.{}", point.gpus));
    ImGui::SetCursorPos(at);
    for (std::size_t c = 0; c < rows[i].size(); ++c) {
      ImGui::TableSetColumnIndex(static_cast<int>(c));
      number_right(ui, rows[i][c], ui.theme.text);
    }
    ImGui::PopID();
  }
  ImGui::EndTable();
}

/// What the plan is compared with, as a square.
void draw_compared_rate(Ui& ui) {
  const Compared* const other = ui.state.compare.overlay();
  if (other == nullptr || !other->whole() || other->report.tokens_per_s <= 0) return;
  mark_compared(ui, "scaling.compared", static_cast<double>(other->report.layout.world()),
                other->report.tokens_per_s);
}

void draw_rates(Ui& ui) {
  wrapped_text(ui, "tokens a second; grey: as fast per GPU as the smallest", ui.theme.quiet);
  std::vector<double> gpus;
  std::vector<double> rates;
  std::vector<double> ideal;
  for (const ScalingPoint& point : ui.state.scaling.map.points()) {
    if (!point.layout) continue;
    gpus.push_back(static_cast<double>(point.gpus));
    rates.push_back(point.tokens_per_s);
    ideal.push_back(rates.front() * gpus.back() / gpus.front());
  }
  if (gpus.size() < 2) {
    text(ui,
         ui.state.scaling.filled() ? "fewer than two numbers of GPUs have a layout that fits"
                                   : "searching …",
         ui.theme.quiet);
    return;
  }
  const ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                            ImPlotFlags_NoMenus | ImPlotFlags_NoFrame;
  if (!ImPlot::BeginPlot("##scaling", {-1, -1}, flags)) return;
  ImPlot::SetupAxis(ImAxis_X1, "GPUs", ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoSideSwitch);
  ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
  ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  std::vector<std::string> names;
  std::vector<const char*> labels;
  for (const double each : gpus) names.push_back(format_count(static_cast<std::int64_t>(each)));
  for (const std::string& each : names) labels.push_back(each.c_str());
  ImPlot::SetupAxisTicks(ImAxis_X1, gpus.data(), static_cast<int>(gpus.size()), labels.data());
  const double slowest = std::ranges::min(rates) * 0.8;
  const double fastest = std::max(std::ranges::max(rates), ideal.back()) * 1.2;
  std::vector<sim::Tick> marks;
  for (const double each : sim::log_values(slowest, fastest))
    marks.push_back({each, round_text(each)});
  set_ticks(ImAxis_Y1, marks);
  ImPlot::SetupAxesLimits(gpus.front() * 0.85, gpus.back() * 1.18, slowest, fastest,
                          ImPlotCond_Always);
  const auto count = static_cast<int>(gpus.size());
  ImPlotSpec line;
  line.LineColor = colour4(ui.theme.quiet);
  line.LineWeight = ui.units(2);
  ImPlot::PlotLine("ideal", gpus.data(), ideal.data(), count, line);
  line.LineColor = colour4(ui.theme.accent);
  line.Marker = ImPlotMarker_Circle;
  line.MarkerSize = ui.units(4);
  line.MarkerFillColor = colour4(ui.theme.accent);
  line.MarkerLineColor = colour4(ui.theme.accent);
  ImPlot::PlotLine("best", gpus.data(), rates.data(), count, line);
  draw_compared_rate(ui);
  const ImVec2 least = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  ui.probes.put("scaling.plot", least, {least.x + size.x, least.y + size.y});
  ImPlot::EndPlot();
}

}  // namespace

void draw_scaling_table(Ui& ui) {
  model_heading(ui, "Other numbers of GPUs", "the best layout of each; a click takes it");
  constexpr float kBeside = 900;  // units: both have room beside each other
  constexpr float kLeastOfPlot = 170;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool beside = room.x >= ui.units(kBeside);
  if (!beside) {
    draw_counts(ui);
  } else {
    if (ImGui::BeginChild("counts", {room.x * 0.64F, 0})) draw_counts(ui);
    ImGui::EndChild();
    ImGui::SameLine(0, ui.units(16));
  }
  const float left = ImGui::GetContentRegionAvail().y;
  if (ImGui::BeginChild("rates", {0, beside ? left : std::max(left, ui.units(kLeastOfPlot))})) {
    draw_rates(ui);
  }
  ImGui::EndChild();
}

}  // namespace shardwise::view
