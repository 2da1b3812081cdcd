#include "planner/spec/text/nearest.h"

#include <algorithm>

namespace shardwise {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

bool is_one_slip(std::string_view a, std::string_view b) {
  const auto [shorter, longer] = std::minmax({a.size(), b.size()});
  return longer - shorter <= 1 && edit_distance(a, b) == 1;
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  const std::size_t most = std::max<std::size_t>(1, std::min<std::size_t>(word.size() / 3, 3));
  std::size_t best = most + 1;
  const std::string* found = nullptr;
  for (const std::string& entry : known) {
    const std::size_t longer = std::max(entry.size(), word.size());
    if (longer - std::min(entry.size(), word.size()) > most) continue;
    const std::size_t distance = edit_distance(word, entry);
    if (distance < best) {
      best = distance;
      found = &entry;
    }
  }
  return found == nullptr ? std::nullopt : std::optional(*found);
}

}  // namespace shardwise
