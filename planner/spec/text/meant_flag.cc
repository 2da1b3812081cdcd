#include "planner/spec/text/meant_flag.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>

#include "planner/spec/text/flag_names.h"
#include "planner/spec/text/nearest.h"

namespace shardwise {
namespace {

constexpr std::size_t kMostMeantFlags = 3;  // suggestions; more say nothing
constexpr std::size_t kShortestPart = 2;    // letters that are taken for the beginning of a flag

using Names = std::vector<std::string>;

bool has(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// "--precision" of "--precision bf16" and of "--fp32-gradients=false".
std::string_view flag_in(std::string_view suggestion) {
  return suggestion.substr(0, suggestion.find_first_of(" ="));
}

/// The parts of `ours` whose flag is known.
Names known_parts(std::string_view ours, const Names& known) {
  constexpr std::string_view kOr = " or ";
  Names parts;
  for (std::size_t at = 0; at <= ours.size();) {
    const std::size_t end = std::min(ours.find(kOr, at), ours.size());
    const std::string_view part = ours.substr(at, end - at);
    if (has(known, flag_in(part))) parts.emplace_back(part);
    at = end + kOr.size();
  }
  return parts;
}

/// The row of another program's name; nullptr when no program has it.
const FlagName* other_name(std::string_view bare) {
  const FlagName* found = std::ranges::find(kFlagNames, bare, &FlagName::theirs);
  return found == std::end(kFlagNames) ? nullptr : found;
}

/// The flag of the axis that "dp-size" and "tensor-model-parallel-world-size" name; empty for none.
std::string_view axis_flag(std::string_view bare) {
  for (const FlagName& axis : kAxisNames) {
    if (!bare.starts_with(axis.theirs)) continue;
    const std::string_view ending = bare.substr(axis.theirs.size());
    if (std::ranges::find(kAxisEndings, ending) != std::end(kAxisEndings)) return axis.ours;
  }
  return "";
}

/// "no-overlap-grad-reduce" turns a switch off, "use-cuda-graphs" turns it on.
Names by_switch(std::string_view bare, const Names& switches) {
  for (const std::string_view off : {"no-", "disable-", "without-"}) {
    const std::string flag = "--" + std::string(bare.substr(std::min(off.size(), bare.size())));
    if (bare.starts_with(off) && has(switches, flag)) return {flag + "=false"};
  }
  for (const std::string_view on : {"use-", "enable-", "with-"}) {
    const std::string flag = "--" + std::string(bare.substr(std::min(on.size(), bare.size())));
    if (bare.starts_with(on) && has(switches, flag)) return {flag};
  }
  return {};
}

Names few(Names names) {
  if (names.size() > kMostMeantFlags) names.clear();
  return names;
}

Names words_of(std::string_view hyphened) {
  Names words;
  std::istringstream stream{std::string(hyphened)};
  for (std::string word; std::getline(stream, word, '-');) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

/// "--glob" and "--glo-bat" begin --global-batch-size.
Names by_beginning(std::string_view bare, const Names& known) {
  const Names asked = words_of(bare);
  if (bare.size() < kShortestPart || asked.empty()) return {};
  Names found;
  for (const std::string& flag : known) {
    const Names words = words_of(flag);
    if (words.size() < asked.size()) continue;
    const bool begins = std::ranges::equal(
        asked, std::span(words).first(asked.size()),
        [](const std::string& part, const std::string& word) { return word.starts_with(part); });
    if (begins) found.push_back(flag);
  }
  return few(std::move(found));
}

Names by_slip(std::string_view bare, const Names& known) {
  if (const auto near = nearest("--" + std::string(bare), known)) return {*near};
  Names others;
  for (const FlagName& name : kFlagNames) {
    if (!known_parts(name.ours, known).empty()) others.emplace_back(name.theirs);
  }
  for (const FlagName& axis : kAxisNames) {
    if (known_parts(axis.ours, known).empty()) continue;
    for (const std::string_view ending : kAxisEndings) {
      others.push_back(std::string(axis.theirs) + std::string(ending));
    }
  }
  const std::optional<std::string> near = nearest(bare, others);
  if (!near) return {};
  const FlagName* name = other_name(*near);
  return known_parts(name != nullptr ? name->ours : axis_flag(*near), known);
}

/// Flags that have every word: "--length" is near --sequence-length.
Names by_words(std::string_view bare, const Names& known) {
  const Names asked = words_of(bare);
  if (asked.empty()) return {};
  Names found;
  for (const std::string& flag : known) {
    const Names words = words_of(flag);
    const bool all =
        std::ranges::all_of(asked, [&](const std::string& w) { return has(words, w); });
    if (all) found.push_back(flag);
  }
  return few(std::move(found));
}

}  // namespace

std::string bare_flag(std::string_view typed) {
  typed = typed.substr(0, typed.find('='));
  typed.remove_prefix(std::min(typed.find_first_not_of('-'), typed.size()));
  if (const std::size_t dot = typed.rfind('.'); dot != std::string_view::npos) {
    typed.remove_prefix(dot + 1);
  }
  std::string bare(typed);
  for (char& c : bare) {
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return bare;
}

std::vector<std::string> meant_flags(std::string_view typed, const Names& known,
                                     const Names& switches) {
  const std::string bare = bare_flag(typed);
  if (bare.empty()) return {};
  if (has(known, "--" + bare)) return {"--" + bare};
  // A name of something that this program has no flag for is no slip of another.
  if (const FlagName* name = other_name(bare)) return known_parts(name->ours, known);
  if (const std::string_view axis = axis_flag(bare); !axis.empty()) {
    return known_parts(axis, known);
  }
  Names found = by_switch(bare, switches);
  if (found.empty()) found = by_beginning(bare, known);
  if (found.empty()) found = by_slip(bare, known);
  if (found.empty()) found = by_words(bare, known);
  return found;
}

}  // namespace shardwise
