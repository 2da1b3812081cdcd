#include "gui/models/explore/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/report/memory_fit.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

/// What the viewer adds to a column of sim::plan_columns().
struct Shown {
  std::string_view key;
  int width = 0;  // 0: room for the heading, and for four digits
  bool first = true;
};
/// In the order of the table: the layout, then its memory, time and price, then what all rows of a
/// question mostly share.
constexpr std::array kShown = std::to_array<Shown>({
    {"tp"},
    {"cp"},
    {"pp"},
    {"vpp"},
    {"ep"},
    {"etp", 0, false},
    {"shard"},
    {"repl"},
    {"dp", 62, false},
    {"zero"},
    {"mbs"},
    {"recompute", 78},
    {"memory", 46},
    {"upper", 90, false},
    {"step", 78},
    {"model", 78},
    {"mfu", 68},
    {"tokens", 90, false},
    {"cost", 82, false},
    {"gpus", 0, false},
    {"engine", 130, false},
    {"settings", 180, false},
});

/// Whether rows with a simulated step lead.
bool is_ranked_by_simulation(const Answer& answer) {
  return !answer.ranked.empty() && answer.rows[answer.ranked.front()].simulated.has_value();
}

/// The text of the memory, without decimals where they tell nothing.
std::string memory_text(const sim::PricedLayout& row) {
  constexpr double kWhole = 1000;
  const double gib = row.memory / 1_GiB;
  return gib < kWhole ? format_gib(row.memory) : format_count(std::llround(gib));
}

int width_of(std::string_view heading) {
  constexpr int kLetter = 8;
  constexpr int kLeast = 22;
  return std::max(kLeast, kLetter * static_cast<int>(heading.size()) + 2);
}

std::array<Column, kShown.size()> shown_columns() {
  std::array<Column, kShown.size()> all;
  for (std::size_t c = 0; c < all.size(); ++c) {
    const Shown& shown = kShown[c];
    const sim::PlanColumn& column = *sim::find_plan_column(shown.key);
    all[c] = {column, shown.width > 0 ? shown.width : width_of(column.heading), shown.first};
    if (shown.key == "memory") all[c].text = memory_text;
  }
  return all;
}

}  // namespace

std::span<const Column> columns() {
  static const std::array<Column, kShown.size()> kColumns = shown_columns();
  return kColumns;
}

sim::PricedLayout priced(const Answer& answer, const LayoutRow& row, std::size_t rank) {
  sim::PricedLayout made;
  made.layout = &row.layout;
  made.rank = rank;
  made.memory = row.memory;
  made.upper = row.upper;
  made.fit = row.fit;
  made.front = row.front;
  made.step = row.step();
  made.model = row.time;
  made.bound = row.bound;
  made.estimated = !row.simulated && is_ranked_by_simulation(answer);
  made.mfu = row.mfu;
  made.tokens_per_s = row.tokens_per_s;
  made.dollars_per_1e9_tokens = row.dollars_per_1e9_tokens;
  made.engine = answer.engine;
  made.gpus = row.layout.world();
  return made;
}

std::optional<std::size_t> find_column(std::string_view key) {
  const std::span<const Column> all = columns();
  const auto found = std::ranges::find(all, key, &Column::key);
  if (found == all.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all.begin());
}

std::vector<std::size_t> telling_columns(const Answer& answer) {
  static const std::size_t kFirstResult = find_column("memory").value_or(0);
  static const std::size_t kModel = find_column("model").value_or(0);
  std::vector<std::size_t> telling;
  for (std::size_t c = 0; c < columns().size(); ++c) {
    const Column& column = columns()[c];
    if (!column.first) continue;
    // Columns before the results are of the layout alone. Every frame asks for all rows.
    sim::PricedLayout cells;
    const auto number = [&](const LayoutRow& row) {
      cells.layout = &row.layout;
      return column.number(cells);
    };
    const bool tells =
        c == kModel ? is_ranked_by_simulation(answer)
                    : c >= kFirstResult || std::ranges::any_of(answer.rows, [&](const auto& row) {
                        return number(row) != number(answer.rows.front());
                      });
    if (tells) telling.push_back(c);
  }
  return telling;
}

std::vector<std::size_t> columns_within(std::vector<std::size_t> shown, double room, double between,
                                        double rest) {
  static constexpr std::array<std::string_view, 17> kLeast = {
      "settings", "engine", "gpus", "upper", "etp",       "dp", "cost", "tokens", "model",
      "repl",     "vpp",    "ep",   "shard", "recompute", "cp", "mbs",  "zero"};
  const auto needs = [&] {
    double width = rest;
    for (const std::size_t c : shown) width += columns()[c].width + between;
    return width;
  };
  for (const std::string_view key : kLeast) {
    if (needs() <= room) break;
    std::erase(shown, find_column(key).value_or(columns().size()));
  }
  return shown;
}

std::string rows_csv(const Answer& answer, std::span<const std::uint32_t> rows) {
  std::string csv;
  for (const std::string& key : layout_keys()) csv += key + ",";
  csv +=
      "memory_gib,memory_gib_at_most,step_s,model_s,step_is_bound,mfu_percent,tokens_per_s,"
      "cost_usd_per_1e9_tokens,fit,front\n";
  for (const std::uint32_t i : rows) {
    const LayoutRow& row = answer.rows[i];
    for (const std::string& key : layout_keys()) csv += field_text(row.layout, key) + ",";
    const double cost = row.dollars_per_1e9_tokens;
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", row.memory / 1_GiB, row.upper / 1_GiB,
                       row.step().value(), row.time.value(), row.bound, 100 * row.mfu,
                       row.tokens_per_s, cost > 0 ? fmt::format("{}", cost) : "", name_of(row.fit),
                       row.front);
  }
  return csv;
}

}  // namespace shardwise::view
