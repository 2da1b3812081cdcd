#include "cli/texts/size_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/plan/names.h"
#include "planner/spec/report/curve_sources.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

// Of the table: GPUs, days, cost, MFU and what is free at their widest, two spaces before each
// column; and the layout at its narrowest.
constexpr std::size_t kNumbersWidth = 6 + 5 + 8 + 7 + 7 + 2 * 6;
constexpr std::size_t kLeastLayout = 10;
// Lines of the first screen.
constexpr std::size_t kOfferLines = 14;  // with the notes on curves
constexpr std::size_t kLateLines = 3;
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

/// Numbered notes on the curves behind the offers of a table.
class Notes {
 public:
  /// The mark of an offer: "¹", empty where all of its curves were measured.
  std::string mark(const SizingOffer& offer) {
    std::string text = stand_ins_text(offer.borrowed);
    if (text.empty()) return "";
    auto note = std::ranges::find(texts_, text);
    if (note == texts_.end()) note = texts_.insert(note, std::move(text));
    return superscript(static_cast<std::size_t>(note - texts_.begin()) + 1);
  }
  std::string text() const {
    std::string all;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      all +=
          wrap(fmt::format("{} not measured: {}", superscript(i + 1), texts_[i]), kTextWidth, 2) +
          "\n";
    }
    return all;
  }
  std::size_t lines() const { return lines_of(text()).size(); }

 private:
  static std::string superscript(std::size_t number) {
    constexpr std::array<const char*, 10> kDigits = {"⁰", "¹", "²", "³", "⁴",
                                                     "⁵", "⁶", "⁷", "⁸", "⁹"};
    std::string text;
    for (const char c : std::to_string(number)) text += kDigits[static_cast<std::size_t>(c - '0')];
    return text;
  }
  std::vector<std::string> texts_;
};

/// The first of each cluster's offers: its cheapest.
std::vector<SizingOffer> first_of_each_cluster(const std::vector<SizingOffer>& offers) {
  std::vector<SizingOffer> first;
  for (const SizingOffer& offer : offers) {
    const bool seen = std::ranges::find(first, offer.cluster, &SizingOffer::cluster) != first.end();
    if (!seen) first.push_back(offer);
  }
  return first;
}

struct OfferTable {
  std::string text;
  std::size_t rows = 0;
  Notes notes;
};

/// The first `top` offers, as far as they take `most_lines` lines with their notes.
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
  Notes notes;
  const std::size_t left =
      kTextWidth - std::min(kTextWidth - kLeastLayout, longest + kNumbersWidth);
  for (std::size_t i = 0; i < std::min(top, offers.size()); ++i) {
    const SizingOffer& offer = offers[i];
    const Tone tone = offer.headroom >= 0 ? Tone::plain : Tone::warning;
    const std::vector<std::string> layout = lines_of(wrap(layout_words(offer.report.layout), left));
    lines += std::max<std::size_t>(1, layout.size());
    Notes more = notes;
    const std::string mark = more.mark(offer);
    if (rows > 0 && lines + more.lines() > most_lines) break;
    notes = std::move(more);
    ++rows;
    table.row(
        {offer.cluster,
         format_count(offer.gpus),
         fmt::format("{:.1f}", offer.wall.value() / 86400),
         short_dollars(offer),
         format_percent(offer.report.mfu) + (mark.empty() ? " " : mark),
         {offer.headroom >= 0 ? fmt::format("{:.0f} %", 100 * offer.headroom) : "at risk", tone},
         layout.empty() ? "" : layout.front()});
    for (std::size_t l = 1; l < layout.size(); ++l) {
      table.row({"", "", "", "", "", "", layout[l]});
    }
  }
  return {table.text(colour), rows, std::move(notes)};
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
  std::string text = shown > 0 ? "\nMiss the deadline\n" + table.text(colour) : "";
  if (whole) {
    text += "\nAssumed\n";
    for (const Assumption& assumption : sizing.assumptions) {
      text += "  " + wrap(assumption.text, kTextWidth - 2, 2) + "\n";
    }
    return text;
  }
  text += "\n";
  for (const Assumption& each : sizing.assumptions) {  // what the model is said to be
    if (each.id.starts_with("sizing.model") || each.id.starts_with("model.")) {
      text += wrap(each.text, kTextWidth) + "\n";
    }
  }
  text += fmt::format("--long: {} assumptions", sizing.assumptions.size());
  if (const std::size_t rest = refused - shown; rest > 0) {
    text += fmt::format(", {}{} cluster{} the deadline", rest, shown > 0 ? " more" : "",
                        rest == 1 ? " misses" : "s miss");
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
    const bool choice = best.measured != sizing.offers.back().measured;
    text += paint(wrap(fmt::format("{}: {} GPUs of {} with {}, {} tokens in {} for {}, goodput {}",
                                   choice ? "Cheapest of the measured machines" : "Cheapest",
                                   format_count(best.gpus), best.cluster, best.report.engine,
                                   tokens, format_seconds(best.wall), dollars(best),
                                   format_percent(best.goodput.share)),
                       kTextWidth) +
                      "\n",
                  Tone::good, colour);
    const auto unmeasured = std::ranges::find(sizing.offers, false, &SizingOffer::measured);
    if (choice && unmeasured->dollars > 0 && unmeasured->dollars < best.dollars) {
      text += wrap(fmt::format("Cheaper, but its GEMMs or links are not measured: {} GPUs of {}, "
                               "{} in {}",
                               format_count(unmeasured->gpus), unmeasured->cluster,
                               dollars(*unmeasured), format_seconds(unmeasured->wall)),
                   kTextWidth) +
              "\n";
    }
    text += "\n";
    const bool brief = !screen.whole && !screen.top;
    std::vector<SizingOffer> shown = sizing.offers;
    if (brief && shown.size() > kOfferLines) shown = first_of_each_cluster(shown);
    const bool all_counts = shown.size() == sizing.offers.size();
    const OfferTable table = table_of(shown, top, brief ? kOfferLines : kAll, colour);
    std::string rest = fmt::format("all: engine {} (--engine)", best.report.engine);
    if (!all_counts) rest += "; cheapest count of each cluster";
    if (sizing.offers.size() > table.rows) {
      rest += fmt::format("; {} more (--top)", sizing.offers.size() - table.rows);
    }
    text += table.text + wrap(rest, kTextWidth, 2);
    text += "\n\n" + table.notes.text() +
            "goodput: share of time spent training, after failures and checkpoints\n"
            "free: usable memory left above the upper bound of the prediction\n";
  }
  if (!sizing.late.empty()) {
    const OfferTable table = table_of(sizing.late, top, screen.whole ? kAll : kLateLines, colour);
    text += "\nToo late, at their fastest\n" + table.text + table.notes.text();
    if (sizing.late.size() > table.rows) {
      text += fmt::format("{} more ({})\n", sizing.late.size() - table.rows,
                          screen.whole ? "--top" : "--long");
    }
  }
  return text + rest_text(sizing, screen.whole, colour);
}

}  // namespace shardwise::cli
