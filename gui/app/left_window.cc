#include "gui/app/left_window.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "gui/models/session/failure.h"
#include "planner/files/atomic_file.h"
#include "planner/files/program.h"
#include "planner/files/trusted_file.h"
#include "planner/spec/text/error.h"

namespace shardwise::view {

std::string left_view_file() {
  const auto absolute = [](const char* variable) {
    const char* const value = std::getenv(variable);
    return value != nullptr && value[0] == '/' ? std::string(value) : std::string();
  };
  std::string home = absolute("XDG_STATE_HOME");
  std::filesystem::path within = "shardwise/view.json";
  if (home.empty()) {
    home = absolute("HOME");
    within = ".local/state" / within;
  }
  if (home.empty() || !may_keep(home, within.string())) return "";
  const std::filesystem::path file = home / within;
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  return failed ? "" : file.string();
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
    AtomicFile kept(file, SymbolicLinks::refused);
    kept.write(to_json({width, height, state.dark, state.workspace, stage.panels()}));
    kept.finish();
    kept.publish();
  } catch (const IoError& error) {
    print_error(error.what());
  }
}

}  // namespace shardwise::view
