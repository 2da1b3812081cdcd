#include "planner/score/rows/link_wording.h"

#include <array>
#include <charconv>

#include "planner/score/rows/notes.h"

namespace shardwise {
namespace {

// A number this large is no single link's rate but a node's.
constexpr double kNodeTotal = 800;

bool digit(char c) { return c >= '0' && c <= '9'; }

struct Number {
  double value = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The number that starts at or after `from`.
std::optional<Number> next_number(std::string_view text, std::size_t from) {
  while (from < text.size() && !digit(text[from])) ++from;
  if (from >= text.size()) return std::nullopt;
  Number number;
  number.begin = from;
  const auto parsed = std::from_chars(text.data() + from, text.data() + text.size(), number.value);
  number.end = static_cast<std::size_t>(parsed.ptr - text.data());
  return number;
}

std::string_view after_spaces(std::string_view text) {
  const std::size_t at = text.find_first_not_of(' ');
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

/// Bits a second for one of the unit that follows a number; 0 when no unit does.
double unit_of(std::string_view rest) {
  rest = after_spaces(rest);
  if (rest.starts_with("GB/s")) return 8;
  return rest.starts_with("Gb") || rest.starts_with("gb") ? 1 : 0;
}

/// The number is the speed of an InfiniBand generation: HDR200, NDR400.
bool named_generation(std::string_view text, std::size_t begin) {
  constexpr std::array<std::string_view, 5> kGenerations = {"EDR", "HDR", "NDR", "XDR", "FDR"};
  for (const std::string_view each : kGenerations) {
    if (begin >= each.size() && text.substr(begin - each.size(), each.size()) == each) return true;
  }
  return false;
}

/// The multiplier of "4x100", "8x HDR200" or "HDR200 x8"; 0 when there is none.
int links_around(std::string_view text) {
  for (std::size_t at = text.find('x'); at != std::string_view::npos; at = text.find('x', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && digit(text[begin - 1])) --begin;
    int count = 0;
    if (begin < at) {
      std::from_chars(text.data() + begin, text.data() + at, count);
    } else if (at + 1 < text.size() && digit(text[at + 1]) && (at == 0 || text[at - 1] == ' ')) {
      std::from_chars(text.data() + at + 1, text.data() + text.size(), count);
    }
    if (count > 0 && count <= 64) return count;
  }
  return 0;
}

}  // namespace

std::optional<StatedLink> stated_link(std::string_view wording) {
  for (std::size_t from = 0; true;) {
    const std::optional<Number> number = next_number(wording, from);
    if (!number) return std::nullopt;
    from = number->end;
    double unit = unit_of(wording.substr(number->end));
    if (unit == 0 && named_generation(wording, number->begin)) unit = 1;
    if (unit == 0 || number->value <= 0) continue;

    StatedLink link;
    link.gigabits_per_s = number->value * unit;
    link.links_per_node = links_around(wording);
    const bool each = says(wording, "per gpu");
    link.shared_total = !each && link.links_per_node == 0 &&
                        (says(wording, "per node") || link.gigabits_per_s >= kNodeTotal);
    return link;
  }
}

}  // namespace shardwise
