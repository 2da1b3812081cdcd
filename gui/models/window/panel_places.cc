#include "gui/models/window/panel_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "gui/models/window/left_view.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::view {
namespace {

constexpr std::size_t kMostBytes = 1 << 18;
constexpr std::size_t kLongestName = 200;
constexpr std::int64_t kMostTabs = 1000;
constexpr int kDeepest = 32;
/// ImGui counts docks that it makes up from 1; those of a workspace have the hash of a name.
constexpr std::uint32_t kMostMadeUp = 0xFFFF;

constexpr std::string_view kWindow = "[Window][";
constexpr std::string_view kDocking = "[Docking][Data]";
constexpr std::array<std::string_view, 4> kOfWindow = {"Pos=", "Size=", "Collapsed=", "DockId="};

/// Reads a line from left to right.
class Line {
 public:
  explicit Line(std::string_view rest) : rest_(rest) {}

  bool ended() const { return rest_.empty(); }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }
  /// The eight digits of 0x0000001A.
  std::optional<std::uint32_t> id() {
    constexpr std::size_t kDigits = 8;
    if (!take("0x") || rest_.size() < kDigits) return std::nullopt;
    return number<std::uint32_t>(rest_.substr(0, kDigits), kDigits, 16);
  }
  /// A decimal number of a range.
  bool number_of(std::int64_t low, std::int64_t high) {
    const std::optional<std::int64_t> read = number<std::int64_t>(rest_, 0, 10);
    return read && *read >= low && *read <= high;
  }
  bool two_of(std::int64_t low, std::int64_t high) {
    return number_of(low, high) && take(",") && number_of(low, high);
  }

 private:
  /// \param digits  that it has to have; 0: any number
  template <class Number>
  std::optional<Number> number(std::string_view text, std::size_t digits, int base) {
    Number read = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), read, base);
    const auto length = static_cast<std::size_t>(end - text.data());
    if (wrong != std::errc() || (digits != 0 && length != digits)) return std::nullopt;
    rest_.remove_prefix(length);
    return read;
  }

  std::string_view rest_;
};

/// The docks that were read.
class Docks {
 public:
  /// \returns whether the line is a dock, and may stand here
  bool add(std::string_view text) {
    Line line(text);
    line.skip_blanks();
    const bool space = line.take("DockSpace");
    if (!space && !line.take("DockNode")) return false;
    line.skip_blanks();
    if (!line.take("ID=")) return false;
    const std::optional<std::uint32_t> id = line.id();
    if (!id || *id == 0 || (*id > kMostMadeUp) != space || docks_.contains(*id)) return false;
    Dock dock;
    dock.root = *id;
    const bool placed = line.take(" Parent=") ? !space && hang(line, dock) : stand(line);
    if (!placed || !finish(line, dock)) return false;
    docks_[*id] = dock;
    return true;
  }
  bool has(std::uint32_t id) const { return docks_.contains(id); }
  bool whole() const {
    return std::ranges::all_of(docks_, [](const auto& each) {
      const Dock& dock = each.second;
      return dock.children == (dock.split ? 2 : 0) && !(dock.split && dock.central) &&
             dock.centrals <= 1;
    });
  }

 private:
  struct Dock {
    std::uint32_t root = 0;
    int depth = 0;
    int children = 0;
    bool split = false;
    bool central = false;
    int centrals = 0;  // of a root, in all of its tree
  };

  /// Below a dock that was read before.
  bool hang(Line& line, Dock& dock) {
    const std::optional<std::uint32_t> parent = line.id();
    if (!parent || !docks_.contains(*parent)) return false;
    Dock& above = docks_.at(*parent);
    ++above.children;
    dock.root = above.root;
    dock.depth = above.depth + 1;
    return dock.depth <= kDeepest && line.take(" SizeRef=") && line.two_of(0, kMostPixels);
  }
  /// By itself.
  static bool stand(Line& line) {
    if (line.take(" Window=") && !line.id()) return false;
    return line.take(" Pos=") && line.two_of(-kMostPixels, kMostPixels) && line.take(" Size=") &&
           line.two_of(0, kMostPixels);
  }
  bool finish(Line& line, Dock& dock) {
    if (line.take(" Split=")) {
      dock.split = true;
      if (!line.take("X") && !line.take("Y")) return false;
    }
    static_cast<void>(line.take(" NoResize=1"));
    if (line.take(" CentralNode=1")) {
      dock.central = true;
      Dock& root = dock.depth == 0 ? dock : docks_.at(dock.root);
      ++root.centrals;
    }
    for (const std::string_view flag :
         {" NoTabBar=1", " HiddenTabBar=1", " NoWindowMenuButton=1", " NoCloseButton=1"}) {
      static_cast<void>(line.take(flag));
    }
    if (line.take(" Selected=") && !line.id()) return false;
    return line.ended();
  }

  std::map<std::uint32_t, Dock> docks_;
};

/// Whether a line is one of a window's. \param docks  receives the dock that it names
bool places_window(std::string_view text, std::vector<std::uint32_t>& docks) {
  Line line(text);
  bool good = false;
  if (line.take("Pos=")) {
    good = line.two_of(-kMostPixels, kMostPixels);
  } else if (line.take("Size=")) {
    good = line.two_of(0, kMostPixels);
  } else if (line.take("Collapsed=")) {
    good = line.number_of(0, 1);
  } else if (line.take("DockId=")) {
    const std::optional<std::uint32_t> dock = line.id();
    good = dock && (!line.take(",") || line.number_of(0, kMostTabs));
    if (dock && *dock != 0) docks.push_back(*dock);
  }
  return good && line.ended();
}

/// The name of a window behind its bracket, and the one that closes it.
bool names_window(std::string_view text) {
  if (!text.starts_with(kWindow) || !text.ends_with(']')) return false;
  const std::string_view name = text.substr(kWindow.size(), text.size() - kWindow.size() - 1);
  return !name.empty() && name.size() <= kLongestName && name.find(']') == std::string_view::npos &&
         std::ranges::all_of(name, [](char c) { return c >= ' ' && c != 0x7f; });
}

/// The next line of a text, without its end; `rest` is what follows it.
std::string_view next_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

enum class Part : std::uint8_t { none, window, docks };

}  // namespace

std::string places_of_panels(std::string_view settings) {
  std::string kept;
  Part part = Part::none;
  while (!settings.empty()) {
    const std::string_view line = next_line(settings);
    if (line.starts_with('[')) {
      part = line == kDocking ? Part::docks : names_window(line) ? Part::window : Part::none;
    }
    const bool begins = line.starts_with('[') || line.empty() || part == Part::docks;
    const bool said = std::ranges::any_of(
        kOfWindow, [&](std::string_view begin) { return line.starts_with(begin); });
    if (part == Part::none || (!begins && !said)) continue;
    kept.append(line).push_back('\n');
  }
  return kept;
}

std::string problem_of_panels(std::string_view panels) {
  if (panels.size() > kMostBytes) return fmt::format("more than {} bytes", kMostBytes);
  Docks docks;
  std::vector<std::uint32_t> named;  // by windows
  Part part = Part::none;
  bool docked = false;
  while (!panels.empty()) {
    const std::string_view line = next_line(panels);
    bool good = line.empty();
    if (line == kDocking) {
      part = Part::docks;
      good = !std::exchange(docked, true);
    } else if (line.starts_with('[')) {
      part = Part::window;
      good = names_window(line);
    } else if (!good && part != Part::none) {
      good = part == Part::window ? places_window(line, named) : docks.add(line);
    }
    if (!good) return fmt::format("a line that says no place: {}", shown(line));
  }
  if (!docks.whole()) return "a part of the window that is cut in other than two";
  // ImGui ends the program where there is none.
  const bool known = std::ranges::all_of(named, [&](std::uint32_t id) { return docks.has(id); });
  return known ? "" : "a panel in a part of the window that there is not";
}

}  // namespace shardwise::view
