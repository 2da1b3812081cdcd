#include "planner/export/shell/shell_braces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

constexpr std::size_t kMostBraces = 200;  // in a word
constexpr std::size_t kBytesOfAWord = 16;

/// A character without quotes, or a part of a word that braces do not look into.
struct Item {
  char c = '\0';
  const ShellPart* whole = nullptr;
};
using Items = std::vector<Item>;
using BraceWords = std::vector<Items>;

bool is_plain(const ShellPart& part) { return part.kind == ShellPart::Kind::text && !part.quoted; }

Items items_of(const std::vector<ShellPart>& parts) {
  Items made;
  for (const ShellPart& part : parts) {
    if (is_plain(part)) {
      for (const char c : part.text) made.push_back({c, nullptr});
    } else {
      made.push_back({'\0', &part});
    }
  }
  return made;
}

std::vector<ShellPart> parts_of(const Items& items) {
  std::vector<ShellPart> made;
  bool text = false;
  for (const Item& item : items) {
    if (item.whole != nullptr) {
      made.push_back(*item.whole);
      text = false;
    } else {
      if (!text) made.emplace_back();
      made.back().text += item.c;
      text = true;
    }
  }
  return made;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A number as a range has it; a plus sign is one, a fraction is none.
std::optional<std::int64_t> range_number(std::string text) {
  if (text.starts_with('+')) text.erase(0, 1);
  const std::size_t digits = text.starts_with('-') ? 1 : 0;
  const bool whole =
      text.size() > digits && text.find_first_not_of("0123456789", digits) == std::string::npos;
  return whole ? parse_integer(text) : std::nullopt;
}

/// The columns of a number that begins with a zero; 0 of others.
std::size_t zero_width(const std::string& text) {
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  return text.size() > first + 1 && text[first] == '0' ? text.size() : 0;
}

class Braces {
 public:
  Braces(ShellTrouble& trouble, int line) : trouble_(trouble), line_(line) {}

  BraceWords expand(const Items& items) {
    BraceWords made{{}};
    if (++depth_ > kMostShellNesting)
      trouble_.say(line_, 0, "braces in braces, more than 100 deep");
    charge(items.size());
    std::size_t from = 0;  // of what is not added yet
    for (std::size_t at = 0; at < items.size() && !trouble_.stops(); ++at) {
      const bool opens = items[at].c == '{' && !(at == from && is(items, at + 1, '}'));
      const std::size_t end = opens ? closing(items, at + 1) : 0;
      if (end == 0) continue;
      add(made, {Items(begin_of(items, from), begin_of(items, at))});
      add(made, inside(Items(begin_of(items, at + 1), begin_of(items, end))));
      at = end;
      from = end + 1;
    }
    add(made, {Items(begin_of(items, from), items.end())});
    --depth_;
    return made;
  }

 private:
  static Items::const_iterator begin_of(const Items& items, std::size_t at) {
    return items.begin() + static_cast<std::ptrdiff_t>(at);
  }
  static bool is(const Items& items, std::size_t at, char c) {
    return at < items.size() && items[at].c == c;
  }

  void charge(std::size_t bytes) { trouble_.charge(bytes, line_); }

  /// The } that ends what begins at `at`: one behind a comma or dots. 0 for none.
  static std::size_t closing(const Items& items, std::size_t at) {
    int level = 0;
    bool parted = false;
    for (; at < items.size(); ++at) {
      const char c = items[at].c;
      if (c == '}' && level == 0 && parted) return at;
      if (c == '{') {
        ++level;
      } else if (c == '}' && level > 0) {
        --level;
      } else if (level == 0) {
        const bool dots = c == '.' && is(items, at + 1, '.') && !is(items, at + 2, '}');
        parted = parted || c == ',' || dots;
      }
    }
    return 0;
  }

  /// Puts each of `ends` behind each of the words.
  void add(BraceWords& words, const BraceWords& ends) {
    if (ends.size() == 1) {
      charge(words.size() * ends.front().size());
      if (trouble_.stops()) return;
      for (Items& each : words) each.insert(each.end(), ends[0].begin(), ends[0].end());
      return;
    }
    BraceWords made;
    for (const Items& word : words) {
      for (const Items& end : ends) {
        charge(word.size() + end.size() + kBytesOfAWord);
        if (trouble_.stops()) return;
        made.push_back(word);
        made.back().insert(made.back().end(), end.begin(), end.end());
      }
    }
    words = std::move(made);
  }

  BraceWords inside(const Items& items) {
    const bool comma = std::ranges::find(items, ',', &Item::c) != items.end();
    if (!comma) return range(items);
    BraceWords made;
    int level = 0;
    std::size_t from = 0;
    for (std::size_t at = 0; at <= items.size() && !trouble_.stops(); ++at) {
      const bool over = at == items.size();
      if (over || (items[at].c == ',' && level == 0)) {
        BraceWords more = expand(Items(begin_of(items, from), begin_of(items, at)));
        std::ranges::move(more, std::back_inserter(made));
        from = at + 1;
      } else if (items[at].c == '{') {
        ++level;
      } else if (items[at].c == '}' && level > 0) {
        --level;
      }
    }
    return made;
  }

  /// FIRST..LAST or FIRST..LAST..STEP of numbers or letters; as it is written where it is neither.
  BraceWords range(const Items& items) {
    Items written{{'{', nullptr}};
    written.insert(written.end(), items.begin(), items.end());
    written.push_back({'}', nullptr});
    std::string text;
    for (const Item& item : items) {
      if (item.whole != nullptr) return {written};
      text += item.c;
    }
    const std::size_t dots = text.find("..");
    const std::string first = text.substr(0, dots);
    std::string last = text.substr(dots + 2);
    std::int64_t step = 0;
    if (const std::size_t more = last.find(".."); more != std::string::npos) {
      const std::optional<std::int64_t> stated = range_number(last.substr(more + 2));
      if (!stated) return {written};
      step = *stated;
      last.resize(more);
    }
    const bool letters =
        first.size() == 1 && last.size() == 1 && is_letter(first[0]) && is_letter(last[0]);
    const std::optional<std::int64_t> low = letters ? first[0] : range_number(first);
    const std::optional<std::int64_t> high = letters ? last[0] : range_number(last);
    constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
    if (!low || !high || step == kLeast) return {written};
    return range(*low, *high, std::max<std::int64_t>(std::abs(step), 1), letters,
                 std::max(zero_width(first), zero_width(last)) > 0
                     ? static_cast<int>(std::max(first.size(), last.size()))
                     : 0);
  }

  BraceWords range(std::int64_t low, std::int64_t high, std::int64_t step, bool letters,
                   int width) {
    using Whole = std::uint64_t;  // in which no difference of two numbers overflows
    const bool up = low <= high;
    const Whole apart = up ? static_cast<Whole>(high) - static_cast<Whole>(low)
                           : static_cast<Whole>(low) - static_cast<Whole>(high);
    const Whole words = std::min<Whole>(apart / static_cast<Whole>(step), kMostShellBytes) + 1;
    charge(words * kBytesOfAWord);
    BraceWords made;
    for (Whole i = 0; i < words && !trouble_.stops(); ++i) {
      const Whole moved = i * static_cast<Whole>(step);
      const auto number =
          static_cast<std::int64_t>(static_cast<Whole>(low) + (up ? moved : -moved));
      const std::string text = letters ? std::string(1, static_cast<char>(number))
                                       : fmt::format("{:0{}}", number, width);
      Items& word = made.emplace_back();
      // Between Z and a there is a backslash, which then quotes nothing.
      for (const char c : text) {
        if (c != '\\') word.push_back({c, nullptr});
      }
    }
    return made;
  }

  ShellTrouble& trouble_;
  int line_;
  int depth_ = 0;
};

}  // namespace

std::optional<std::vector<std::vector<ShellPart>>> brace_expanded(
    const std::vector<ShellPart>& parts, ShellTrouble& trouble, int line) {
  std::size_t opens = 0;
  std::size_t closes = 0;
  for (const ShellPart& part : parts) {
    if (!is_plain(part)) continue;
    opens += static_cast<std::size_t>(std::ranges::count(part.text, '{'));
    closes += static_cast<std::size_t>(std::ranges::count(part.text, '}'));
  }
  if (opens == 0 || closes == 0) return std::nullopt;
  if (opens > kMostBraces) trouble.say(line, 0, "more than 200 braces in one word");
  std::vector<std::vector<ShellPart>> made;
  if (trouble.stops()) return made;
  for (const Items& word : Braces(trouble, line).expand(items_of(parts))) {
    made.push_back(parts_of(word));
  }
  return made;
}

}  // namespace shardwise
