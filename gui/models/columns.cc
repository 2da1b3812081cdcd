#include "gui/models/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/spec/format.h"
#include "planner/spec/names.h"
#include "planner/spec/plan_fields.h"

namespace shardwise::view {
namespace {

template <auto kField>
double number_of(const LayoutRow& row) {
  return static_cast<double>(row.layout.*kField);
}
template <auto kField>
std::string text_of(const LayoutRow& row) {
  return fmt::format("{}", row.layout.*kField);
}
/// Room for a heading, and for four digits.
constexpr int width_of(std::string_view heading) {
  constexpr int kLetter = 8;
  constexpr int kLeast = 22;
  return std::max(kLeast, kLetter * static_cast<int>(heading.size()) + 2);
}

template <auto kField>
constexpr Column degree(std::string_view key, std::string_view meaning) {
  return {key, key, meaning, number_of<kField>, text_of<kField>, width_of(key)};
}

double gib(const LayoutRow& row) { return row.memory / 1_GiB; }

/// As the column of other tables in GiB, without decimals where they tell nothing.
std::string memory_text(const LayoutRow& row) {
  constexpr double kWhole = 1000;
  return gib(row) < kWhole ? format_gib(row.memory) : format_count(std::llround(gib(row)));
}

std::string recompute_text(const LayoutRow& row) {
  if (row.layout.recompute == Recompute::none) return "-";
  return std::string(name_of(row.layout.recompute));
}

/// Before numbers that grow and that fall with a time that is a lower bound.
std::string at_least(const LayoutRow& row) { return row.bound ? "≥ " : ""; }
std::string at_most(const LayoutRow& row) { return row.bound ? "≤ " : ""; }

std::string dollars_text(const LayoutRow& row) {
  const double dollars = row.dollars_per_1e9_tokens;
  return dollars > 0 ? at_least(row) + format_dollars(dollars) : "-";
}

constexpr std::array<Column, 15> kColumns = {{
    degree<&Layout::tp>("tp", "ways of tensor parallelism"),
    degree<&Layout::cp>("cp", "ways of context parallelism"),
    degree<&Layout::pp>("pp", "pipeline stages"),
    degree<&Layout::vpp>("vpp", "model chunks of a stage"),
    degree<&Layout::ep>("ep", "ways of expert parallelism"),
    degree<&Layout::dp_shard>("shard", "data-parallel ranks that share states"),
    degree<&Layout::dp_replicate>("repl", "data-parallel replicas"),
    {"zero", "zero", "ZeRO stage: what is sharded",
     [](const LayoutRow& row) { return static_cast<double>(row.layout.zero_stage); },
     [](const LayoutRow& row) { return fmt::format("{}", int{row.layout.zero_stage}); },
     width_of("zero")},
    degree<&Layout::micro_batch_size>("mbs", "sequences of a micro-batch"),
    {"recompute", "recomp", "activations that backward makes again",
     [](const LayoutRow& row) { return static_cast<double>(row.layout.recompute); }, recompute_text,
     78, true},
    {"memory", "GiB", "peak of the fullest GPU", gib, memory_text, 60},
    {"step", "step", "time of a step by the closed form, in seconds",
     [](const LayoutRow& row) { return row.time.value(); },
     [](const LayoutRow& row) { return at_least(row) + format_seconds(row.time); }, 86},
    {"mfu", "MFU", "model FLOPs over the GPUs' peak, in percent",
     [](const LayoutRow& row) { return 100 * row.mfu; },
     [](const LayoutRow& row) { return at_most(row) + format_percent(row.mfu); }, 70},
    {"tokens", "tokens/s", "tokens a second of all GPUs",
     [](const LayoutRow& row) { return row.tokens_per_s; },
     [](const LayoutRow& row) { return at_most(row) + format_scaled(row.tokens_per_s); }, 90, false,
     false},
    {"cost", "$/1e9 tok", "dollars for a billion tokens",
     [](const LayoutRow& row) { return row.dollars_per_1e9_tokens; }, dollars_text, 68, false,
     false},
}};

}  // namespace

std::span<const Column> columns() { return kColumns; }

std::optional<std::size_t> find_column(std::string_view key) {
  const auto* const found = std::ranges::find(kColumns, key, &Column::key);
  if (found == kColumns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kColumns.begin());
}

std::vector<std::size_t> telling_columns(const Answer& answer) {
  static const std::size_t kFirstResult = find_column("memory").value_or(0);
  std::vector<std::size_t> telling;
  for (std::size_t c = 0; c < kColumns.size(); ++c) {
    const auto number = kColumns[c].number;
    const bool differs = std::ranges::any_of(answer.rows, [&](const LayoutRow& row) {
      return number(row) != number(answer.rows.front());
    });
    if (kColumns[c].first && (differs || c >= kFirstResult)) telling.push_back(c);
  }
  return telling;
}

std::vector<std::size_t> columns_within(std::vector<std::size_t> shown, double room, double between,
                                        double rest) {
  static constexpr std::array<std::string_view, 10> kLeast = {
      "cost", "tokens", "repl", "vpp", "ep", "shard", "recompute", "cp", "mbs", "zero"};
  const auto needs = [&] {
    double width = rest;
    for (const std::size_t c : shown) width += kColumns[c].width + between;
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
      "memory_gib,memory_gib_at_most,step_s,step_is_bound,mfu_percent,tokens_per_s,"
      "cost_usd_per_1e9_tokens,fit,front\n";
  for (const std::uint32_t i : rows) {
    const LayoutRow& row = answer.rows[i];
    for (const std::string& key : layout_keys()) csv += field_text(row.layout, key) + ",";
    const double cost = row.dollars_per_1e9_tokens;
    csv += fmt::format("{},{},{},{},{},{},{},{},{}\n", gib(row), row.upper / 1_GiB,
                       row.time.value(), row.bound, 100 * row.mfu, row.tokens_per_s,
                       cost > 0 ? fmt::format("{}", cost) : "", name_of(row.fit), row.front);
  }
  return csv;
}

}  // namespace shardwise::view
