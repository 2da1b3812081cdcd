#include "planner/export/facts/stage_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "planner/schedule/stages.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/split.h"
#include "planner/spec/text/utf8.h"

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

Layout layout_of(std::int64_t pp, std::int64_t vpp, std::int64_t first, std::int64_t last) {
  Layout layout;
  layout.pp = static_cast<std::int32_t>(pp);
  layout.vpp = static_cast<std::int32_t>(vpp);
  layout.first_stage_layers = static_cast<std::int32_t>(first);
  layout.last_stage_layers = static_cast<std::int32_t>(last);
  return layout;
}

/// Why no plan has chunks of these sizes.
std::string uneven(const std::vector<std::int64_t>& sizes, std::int64_t pp) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto stage = i % static_cast<std::size_t>(pp);
    if (sizes[i] == sizes[stage]) continue;
    return fmt::format(
        "chunks of stage {} have {} and {} layers; a plan has equal chunks on a stage", stage,
        sizes[stage], sizes[i]);
  }
  return "a plan has layers on each stage, and equally many on all but the first and the last";
}

/// Whether Megatron-LM cuts the model into these chunks without a layout: equal ones, and others on
/// a first and a last stage whose layers are stated.
bool are_flags_enough(const std::vector<std::int64_t>& sizes, const Layout& layout) {
  std::optional<std::int64_t> of_first;
  std::optional<std::int64_t> of_middle;
  std::optional<std::int64_t> of_last;
  const auto pp = static_cast<std::size_t>(layout.pp);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool is_first = i % pp == 0 && layout.first_stage_layers > 0;
    const bool is_last = i % pp == pp - 1 && layout.last_stage_layers > 0;
    std::optional<std::int64_t>& usual = is_first ? of_first : is_last ? of_last : of_middle;
    if (sizes[i] < 1 || sizes[i] != usual.value_or(sizes[i])) return false;
    usual = sizes[i];
  }
  return true;
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
  std::vector<std::int64_t> sizes;  // of chunks
  for (const std::string& chunk : chunks) sizes.push_back(std::ranges::count(chunk, 't'));
  std::vector<std::int64_t> stages(static_cast<std::size_t>(pp));
  for (std::size_t i = 0; i < sizes.size(); ++i) stages[i % stages.size()] += sizes[i];
  if (std::ranges::find(stages, 0) != stages.end()) {
    made.problem = uneven(sizes, pp);
    return made;
  }
  const std::int64_t first = stages.front();
  const std::int64_t last = stages.back();
  const std::int64_t all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  for (const auto& [own_first, own_last] :
       {std::pair(std::int64_t{0}, std::int64_t{0}), {first, 0}, {0, last}, {first, last}}) {
    if (pp == 1 && own_first + own_last > 0) break;
    if (chunk_sizes(all, layout_of(pp, made.vpp, own_first, own_last)) != sizes) continue;
    made.first_stage_layers = own_first;
    made.last_stage_layers = own_last;
    return made;
  }
  made.problem = uneven(sizes, pp);
  return made;
}

std::string write_stage_layout(const Plan& plan) {
  const Layout& layout = plan.layout;
  if (layout.pp == 1 || facts_of(layout).v_shaped || copies_model(layout)) return "";
  if (chunks_of_stage(layout) != layout.vpp) return "";
  const std::int64_t layers = plan.model.num_hidden_layers;
  if (std::int64_t{layout.first_stage_layers} + layout.last_stage_layers > layers) return "";
  const std::vector<std::int64_t> sizes = chunk_sizes(layers, layout);
  if (are_flags_enough(sizes, layout)) return "";
  std::string text = "E";
  for (std::size_t i = 0; i < sizes.size();) {
    std::size_t end = i + 1;  // behind the chunks that look alike
    while (i > 0 && end < sizes.size() && sizes[end] == sizes[i]) ++end;
    if (end == sizes.size() && end - i > 1) --end;  // no "|" stands behind the last one
    const std::string own = sizes[i] == 0   ? ""
                            : sizes[i] == 1 ? "t"
                                            : fmt::format("t*{}", sizes[i]);
    const std::string chunk = end == sizes.size() ? own : own + "|";
    text += end - i > 1 ? fmt::format("({})*{}", chunk, end - i) : chunk;
    i = end;
  }
  const auto further = std::ranges::count_if(plan.model.layers, [&](int kind) {
    return plan.model.kinds[static_cast<std::size_t>(kind)].role == LayerRole::mtp;
  });
  return text + std::string(static_cast<std::size_t>(further), 'm') + "L";
}

}  // namespace shardwise
