#include "cli/size_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/format.h"
#include "planner/spec/names.h"
#include "planner/spec/table.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kWidth = 80;
// Of the table: GPUs, days, cost, MFU and what is free at their widest, two spaces before each
// column; and the layout at its narrowest.
constexpr std::size_t kNumbersWidth = 6 + 5 + 8 + 7 + 7 + 2 * 6;
constexpr std::size_t kLeastLayout = 10;
// Lines of the first screen.
constexpr std::size_t kOfferLines = 12;
constexpr std::size_t kLateLines = 4;
constexpr std::size_t kRefusals = 4;

/// "tp8 pp4 ZeRO-1 full": what differs from one GPU.
std::string layout_words(const Layout& layout) {
  std::vector<std::string> words;
  const auto degree = [&](const char* name, std::int64_t value) {
    if (value > 1) words.push_back(fmt::format("{}{}", name, value));
  };
  degree("tp", layout.tp);
  degree("cp", layout.cp);
  degree("pp", layout.pp);
  degree("ep", layout.ep);
  if (layout.dp() > 1) words.push_back(fmt::format("ZeRO-{}", layout.zero_stage));
  if (layout.recompute != Recompute::none) {
    words.emplace_back(name_of(layout.recompute));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string dollars(const SizingOffer& offer) {
  return offer.dollars > 0 ? format_dollars(offer.dollars) : "no price";
}

/// The same in a column: "$40,325", "$7.43 M".
std::string short_dollars(const SizingOffer& offer) {
  constexpr double kMillion = 1e6;
  if (offer.dollars < kMillion) return dollars(offer);
  return fmt::format("${:.2f} M", offer.dollars / kMillion);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

struct OfferTable {
  std::string text;
  std::size_t rows = 0;
};

/// The first `top` offers, as far as they take `most_lines` lines.
OfferTable table_of(const std::vector<SizingOffer>& offers, std::size_t top, std::size_t most_lines,
                    bool colour) {
  Table table({{"cluster", Align::left},
               {"GPUs"},
               {"days"},
               {"cost"},
               {"MFU"},
               {"free"},
               {"layout", Align::left}});
  std::size_t longest = std::string_view("cluster").size();
  for (std::size_t i = 0; i < std::min(top, offers.size()); ++i) {
    longest = std::max(longest, display_width(offers[i].cluster));
  }
  std::size_t rows = 0;
  std::size_t lines = 0;
  const std::size_t left = kWidth - std::min(kWidth - kLeastLayout, longest + kNumbersWidth);
  for (std::size_t i = 0; i < std::min(top, offers.size()); ++i) {
    const SizingOffer& offer = offers[i];
    const Tone tone = offer.headroom >= 0 ? Tone::plain : Tone::warning;
    const std::vector<std::string> layout = lines_of(wrap(layout_words(offer.report.layout), left));
    lines += std::max<std::size_t>(1, layout.size());
    if (lines > most_lines) break;
    ++rows;
    table.row(
        {offer.cluster,
         format_count(offer.gpus),
         fmt::format("{:.1f}", offer.wall.value() / 86400),
         short_dollars(offer),
         format_percent(offer.report.mfu) + (offer.on_defaults ? "*" : " "),
         {offer.headroom >= 0 ? fmt::format("{:.0f} %", 100 * offer.headroom) : "at risk", tone},
         layout.empty() ? "" : layout.front()});
    for (std::size_t l = 1; l < layout.size(); ++l) {
      table.row({"", "", "", "", "", "", layout[l]});
    }
  }
  return {table.text(colour), rows};
}

/// Why the other clusters have no offer, and what was assumed. The first screen has a few refusals
/// when there is no offer, and counts the rest.
std::string rest_text(const Sizing& sizing, bool whole, bool colour) {
  Table table({{"cluster", Align::left}, {"why", Align::left}});
  std::size_t refused = 0;
  std::size_t shown = 0;
  for (const SizingRefusal& refusal : sizing.refusals) {
    const auto late = std::ranges::find(sizing.late, refusal.cluster, &SizingOffer::cluster);
    if (late != sizing.late.end()) continue;  // printed above, with more about it
    ++refused;
    if (!whole && (!sizing.offers.empty() || shown == kRefusals)) continue;
    ++shown;
    table.row({refusal.cluster, refusal.reason});
  }
  std::string text = shown > 0 ? "\nNot in time\n" + table.text(colour) : "";
  if (whole) {
    text += "\nAssumed\n";
    for (const Assumption& assumption : sizing.assumptions) {
      text += "  " + wrap(assumption.text, kWidth - 2, 2) + "\n";
    }
    return text;
  }
  text += "\n";
  for (const Assumption& each : sizing.assumptions) {  // what the model is said to be
    if (each.id.starts_with("sizing.model") || each.id.starts_with("model.")) {
      text += wrap(each.text, kWidth) + "\n";
    }
  }
  text += fmt::format("--long: {} assumptions", sizing.assumptions.size());
  if (const std::size_t rest = refused - shown; rest > 0) {
    text += fmt::format(", {}{} cluster{} not in time", rest, shown > 0 ? " more" : "",
                        rest == 1 ? "" : "s");
  }
  return text + "\n";
}

}  // namespace

std::string sizing_text(const Sizing& sizing, const SizingGoal& goal, const SizingScreen& screen,
                        bool colour) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  const std::size_t top = screen.top.value_or(kOfferLines);
  std::string text;
  const std::string tokens = format_scaled(static_cast<double>(goal.tokens));
  if (sizing.offers.empty()) {
    text += paint(
        fmt::format("Nothing trains {} tokens in {}\n", tokens, format_seconds(goal.deadline)),
        Tone::bad, colour);
  } else {
    const SizingOffer& best = sizing.offers.front();
    const bool choice = best.on_defaults != sizing.offers.back().on_defaults;
    text += paint(
        wrap(fmt::format("{}: {} GPUs of {}, {} tokens in {} for {}, goodput {}",
                         choice ? "Cheapest of the measured machines" : "Cheapest",
                         format_count(best.gpus), best.cluster, tokens, format_seconds(best.wall),
                         dollars(best), format_percent(best.goodput.share)),
             kWidth) +
            "\n",
        Tone::good, colour);
    const auto unmeasured = std::ranges::find(sizing.offers, true, &SizingOffer::on_defaults);
    if (choice && unmeasured->dollars > 0 && unmeasured->dollars < best.dollars) {
      text += wrap(fmt::format("Cheaper only on defaults of its architecture (*): {} GPUs of {}, "
                               "{} in {}",
                               format_count(unmeasured->gpus), unmeasured->cluster,
                               dollars(*unmeasured), format_seconds(unmeasured->wall)),
                   kWidth) +
              "\n";
    }
    text += "\n";
    const OfferTable table =
        table_of(sizing.offers, top, screen.whole || screen.top ? kAll : kOfferLines, colour);
    text += table.text;
    if (sizing.offers.size() > table.rows) {
      text += fmt::format("{} more (--top)\n", sizing.offers.size() - table.rows);
    }
    text +=
        "\n* estimated from its architecture, not from measurements of this machine\n"
        "goodput: share of time spent training, after failures and checkpoints\n"
        "free: usable memory left above the upper bound of the prediction\n";
  }
  if (!sizing.late.empty()) {
    const OfferTable table = table_of(sizing.late, top, screen.whole ? kAll : kLateLines, colour);
    text += "\nToo late, at their fastest\n" + table.text;
    if (sizing.late.size() > table.rows) {
      text += fmt::format("{} more ({})\n", sizing.late.size() - table.rows,
                          screen.whole ? "--top" : "--long");
    }
  }
  return text + rest_text(sizing, screen.whole, colour);
}

}  // namespace shardwise::cli
