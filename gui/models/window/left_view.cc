#include "gui/models/window/left_view.h"

#include <cstddef>
#include <cstdint>

#include "gui/models/window/panel_places.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"

namespace shardwise::view {
namespace {

constexpr const char* kSchema = "shardwise.view/1";

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
