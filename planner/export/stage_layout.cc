#include "planner/export/stage_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <vector>

#include "planner/spec/number.h"
#include "planner/spec/split.h"
#include "planner/spec/utf8.h"

namespace shardwise {
namespace {

constexpr std::size_t kLongest = 100'000;

/// The number behind "*" at `at`, which moves behind it; nothing where there is none.
std::optional<std::int64_t> times(std::string_view text, std::size_t& at) {
  if (at >= text.size() || text[at] != '*') return std::nullopt;
  std::size_t end = at + 1;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  const std::optional<std::int64_t> count =
      parse_integer(std::string(text.substr(at + 1, end - at - 1)));
  if (count) at = end;
  return count;
}

/// Adds a part as often as it stands there. \returns false where the text gets too long
bool repeat(std::string_view part, std::int64_t count, std::string& text) {
  const auto most = static_cast<std::int64_t>((kLongest - text.size()) / part.size());
  if (count > most) return false;
  for (std::int64_t i = 0; i < count; ++i) text += part;
  return true;
}

/// The text with each "(…)*n" written out; nothing where it is too long.
std::optional<std::string> without_groups(std::string_view text) {
  std::string whole;
  for (std::size_t i = 0; i < text.size();) {
    std::string_view part = text.substr(i, 1);
    std::size_t end = i + 1;
    const std::size_t close = text[i] == '(' ? text.find(')', i) : std::string_view::npos;
    std::int64_t count = 1;
    if (close != std::string_view::npos && close > i + 1) {
      std::size_t behind = close + 1;
      if (const std::optional<std::int64_t> given = times(text, behind)) {
        part = text.substr(i + 1, close - i - 1);
        count = *given;
        end = behind;
      }
    }
    if (!repeat(part, count, whole)) return std::nullopt;
    i = end;
  }
  return whole;
}

/// The text with each "t*n" written out; nothing where it is too long.
std::optional<std::string> without_counts(std::string_view text) {
  std::string whole;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    const std::int64_t count = times(text, end).value_or(1);
    if (!repeat(text.substr(i, 1), count, whole)) return std::nullopt;
    i = end;
  }
  return whole;
}

/// Why the chunks do not begin, end or add up as those of a plan do; "" where they do.
std::string wrong_ends(const std::vector<std::string>& chunks, std::int64_t layers) {
  std::string all;
  for (const std::string& each : chunks) all += each;
  const std::size_t other = all.find_first_not_of("EtmL");
  if (other != std::string::npos) {
    return fmt::format("{} is none of E, t, m and L", shown(all.substr(other, 1)));
  }
  const std::string& last = chunks.back();
  if (!all.starts_with('E') || !all.ends_with('L') || std::ranges::count(all, 'E') != 1 ||
      std::ranges::count(all, 'L') != 1) {
    return "an embedding (E) stands first and a loss (L) last, once each";
  }
  if (std::ranges::count(all, 'm') != std::ranges::count(last, 'm')) {
    return "a plan has multi-token prediction (m) in the last chunk";
  }
  const std::int64_t own = std::ranges::count(all, 't');
  if (layers > 0 && own != layers) return fmt::format("{} layers, the model has {}", own, layers);
  return "";
}

}  // namespace

StageLayout read_stage_layout(std::string_view text, std::int64_t pp, std::int64_t layers) {
  StageLayout made;
  std::string bare(text);
  std::erase(bare, ',');
  const std::optional<std::string> grouped = without_groups(bare);
  const std::optional<std::string> whole = grouped ? without_counts(*grouped) : std::nullopt;
  if (!whole) {
    made.problem = fmt::format("more than {} layers", kLongest);
    return made;
  }
  const std::vector<std::string> chunks = split_at(*whole, '|');
  made.problem = wrong_ends(chunks, layers);
  if (!made.problem.empty()) return made;
  const auto count = static_cast<std::int64_t>(chunks.size());
  if (count % pp != 0) {
    made.problem = fmt::format("{} chunks are no multiple of {} stages", count, pp);
    return made;
  }
  made.vpp = count / pp;
  std::vector<std::int64_t> stages;  // layers of a chunk of each
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t own = std::ranges::count(chunks[static_cast<std::size_t>(i)], 't');
    if (i < pp) stages.push_back(own);
    if (own == stages[static_cast<std::size_t>(i % pp)]) continue;
    made.problem =
        fmt::format("chunks of stage {} have {} and {} layers; a plan has equal chunks on a stage",
                    i % pp, stages[static_cast<std::size_t>(i % pp)], own);
    return made;
  }
  // With two stages the second one is what the first leaves.
  const std::int64_t usual = stages.size() > 2 ? stages[1] : stages.back();
  const std::int64_t fewest = *std::ranges::min_element(stages);
  const auto uneven = [&](std::int64_t own) { return own != usual; };
  if (fewest == 0 ||
      (stages.size() > 2 && std::any_of(stages.begin() + 1, stages.end() - 1, uneven))) {
    made.problem =
        "a plan has layers on each stage, and equally many on all but the first and the last";
    return made;
  }
  if (stages.front() != usual) made.first_stage_layers = stages.front() * made.vpp;
  if (stages.back() != usual) made.last_stage_layers = stages.back() * made.vpp;
  return made;
}

}  // namespace shardwise
