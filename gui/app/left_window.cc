#include "gui/app/left_window.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "gui/models/failure.h"
#include "planner/files/atomic_file_set.h"
#include "planner/files/program.h"
#include "planner/spec/error.h"

namespace shardwise::view {

std::string left_view_file() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && *state != '\0') {
    folder = state;
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".local" / "state";
  } else {
    return "";
  }
  folder /= "shardwise";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  return failed ? "" : (folder / "view.json").string();
}

void restore_view(const std::string& file, Stage& stage, Session& session, Options& options) {
  std::error_code failed;
  if (file.empty() || !std::filesystem::exists(file, failed)) return;
  const Tried<LeftView> tried = try_to<LeftView>([&] { return read_view(file); });
  if (!tried.read) {
    session.say("ignored: " + tried.failure.message);
    return;
  }
  const LeftView* const view = &*tried.read;
  stage.place_panels(view->panels);
  if (!options.light) session.set_dark(view->dark);
  if (!options.view_given) session.set_workspace(view->workspace);
  if (!options.size_given && view->width > 0 && view->height > 0) {
    options.width = view->width;
    options.height = view->height;
  }
}

void keep_view(const std::string& file, const Stage& stage, const Session& session, int width,
               int height) {
  if (file.empty()) return;
  const AppState& state = session.state();
  try {
    write_file(file, to_json({width, height, state.dark, state.workspace, stage.panels()}));
  } catch (const IoError& error) {
    print_error(error.what());
  }
}

}  // namespace shardwise::view
