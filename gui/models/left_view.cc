#include "gui/models/left_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include "planner/spec/json_writer.h"
#include "planner/spec/reader.h"
#include "planner/spec/utf8.h"

namespace shardwise::view {
namespace {

constexpr const char* kSchema = "shardwise.view/1";
constexpr std::int64_t kMostPixels = 16'384;
constexpr std::size_t kMostBytes = 1 << 18;
constexpr std::size_t kLongestLine = 2000;

/// What lines of ImGui's settings begin with.
constexpr std::array<std::string_view, 15> kBegins = {
    "[Window][",   "[Docking][",   "[Table][",  "Pos=",     "Size=",
    "Collapsed=",  "DockId=",      "DockNode",  "ClassId=", "DockSpace",
    "ViewportId=", "ViewportPos=", "RefScale=", "Column ",  "IsChild="};

/// The number behind a word, as 0x1A2B; nothing where the line has none.
std::optional<std::uint32_t> number_behind(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint32_t number = 0;
  const char* const from = line.data() + at + word.size();
  const auto [end, wrong] = std::from_chars(from, line.data() + line.size(), number, 16);
  if (wrong != std::errc() || end == from) return std::nullopt;
  return number;
}

/// The tree of docked places: each node has a number of its own, and none or two children, which
/// follow it. ImGui ends the program for any other tree.
class DockTree {
 public:
  /// \returns whether the node may stand here
  bool add(std::string_view line) {
    const std::optional<std::uint32_t> id = number_behind(line, " ID=0x");
    if (!id || *id == 0 || children_.contains(*id)) return false;
    children_[*id] = 0;
    split_[*id] = line.find(" Split=") != std::string_view::npos;
    if (line.find(" Parent=") == std::string_view::npos) return true;
    const std::optional<std::uint32_t> parent = number_behind(line, " Parent=0x");
    return parent && *parent != *id && children_.contains(*parent) && ++children_[*parent] <= 2;
  }
  bool whole() const {
    return std::ranges::all_of(children_, [this](const auto& node) {
      return node.second == (split_.at(node.first) ? 2 : 0);
    });
  }

 private:
  std::map<std::uint32_t, int> children_;
  std::map<std::uint32_t, bool> split_;
};

}  // namespace

std::string to_json(const LeftView& view) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", kSchema);
  json.member("width", view.width);
  json.member("height", view.height);
  json.member("dark", view.dark);
  json.member("workspace", kWorkspaceNames[static_cast<std::size_t>(view.workspace)]);
  json.member("panels", view.panels);
  json.end_object();
  return json.text();
}

std::string problem_of_panels(const std::string& panels) {
  if (panels.size() > kMostBytes) return fmt::format("more than {} bytes", kMostBytes);
  std::string_view rest = panels;
  DockTree tree;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string_view::npos) continue;
    line.remove_prefix(first);
    const bool known = std::ranges::any_of(
        kBegins, [&](std::string_view begin) { return line.starts_with(begin); });
    const bool plain = std::ranges::all_of(line, [](char c) { return c >= ' ' && c != 0x7f; });
    const bool node = line.starts_with("DockNode") || line.starts_with("DockSpace");
    if (!known || !plain || line.size() > kLongestLine || (node && !tree.add(line))) {
      return fmt::format("a line that says no place: {}", shown(line));
    }
  }
  return tree.whole() ? "" : "a part of the window that is cut in other than two";
}

Result<LeftView> read_view(const std::string& path) {
  const Result<JsonValue> json = read_json(path);
  if (!json) return json.problems();
  Diagnostics problems;
  ObjectReader reader(*json, path, "", problems);
  reader.require_schema(kSchema);
  LeftView view;
  view.width = static_cast<int>(reader.integer_or("width", 0, 0, kMostPixels));
  view.height = static_cast<int>(reader.integer_or("height", 0, 0, kMostPixels));
  view.dark = reader.boolean_or("dark", true);
  view.workspace = static_cast<Workspace>(
      reader.choice_or("workspace", 0, {kWorkspaceNames.begin(), kWorkspaceNames.end()}));
  view.panels = reader.string_or("panels", "");
  const std::string wrong = problem_of_panels(view.panels);
  if (!wrong.empty()) reader.fail("panels", wrong, "save them with view.save FILE");
  reader.reject_unknown();
  if (!problems.empty()) return problems;
  return view;
}

}  // namespace shardwise::view
