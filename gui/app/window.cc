#include "gui/app/window.h"

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>

#include <cstdio>
#include <memory>
#include <string>

#include "gui/app/left_window.h"
#include "gui/app/shot.h"
#include "gui/models/commands/commands.h"
#include "gui/models/question/layout_text.h"

namespace shardwise::view {
namespace {

constexpr int kNoDisplay = 2;
/// Without an event, a frame this often: a result of the worker is seen.
constexpr double kIdleSeconds = 0.05;

struct Library {
  bool ready = glfwInit() == GLFW_TRUE;
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { glfwTerminate(); }
};
using Window = std::unique_ptr<GLFWwindow, decltype(&glfwDestroyWindow)>;

int no_display(const char* why) {
  fmt::print(stderr,
             "shardwise-view: no display ({}): draw a picture with --shot FILE, or write a page "
             "with shardwise report\n",
             why);
  return kNoDisplay;
}

std::string glfw_reason() {
  const char* said = nullptr;
  glfwGetError(&said);
  return said == nullptr ? "no reason given" : said;
}

/// What a window hands to who hears of it.
void dropped(GLFWwindow* window, int count, const char** paths) {
  Session& session = *static_cast<Session*>(glfwGetWindowUserPointer(window));
  for (int i = 0; i < count; ++i) {
    const std::string problem = run_command(session, std::string("file.open ") + paths[i]);
    if (!problem.empty()) session.say(problem);
  }
}

/// Reads what a run that is followed has added, twice a second.
class Poll {
 public:
  void run(Session& session) {
    constexpr double kSeconds = 0.5;
    const MetricsState& metrics = session.state().metrics;
    if (metrics.file.empty() || !metrics.problem.empty() || glfwGetTime() < next_) return;
    next_ = glfwGetTime() + kSeconds;
    const std::string problem = run_command(session, "metrics.poll");
    if (!problem.empty()) session.say(problem);
  }

 private:
  double next_ = 0;
};

Window open_window(const Session& session, const Options& options) {
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 2);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  const std::string title = title_text(session.state().plan) + " - shardwise";
  return {glfwCreateWindow(options.width, options.height, title.c_str(), nullptr, nullptr),
          &glfwDestroyWindow};
}

void save_picture(Stage& stage, Session& session, const Options& options) {
  const auto scale = static_cast<float>(session.state().exploring.png_scale);
  const std::string path = session.take_png();
  if (path.empty()) return;
  const FontChoice fonts = options.built_in_font ? FontChoice::built_in : FontChoice::installed;
  const ImVec2 shown = ImGui::GetIO().DisplaySize;
  const ImVec2 size(shown.x / stage.scale(), shown.y / stage.scale());
  const std::string problem = session.write(
      path, to_png(scale > 0 ? picture_at(session, size, scale, fonts) : stage.picture(session)));
  session.say(problem.empty() ? "wrote " + path : problem);
}

void draw_frame(GLFWwindow* window, Stage& stage, Session& session, const Options& options) {
  float scale = options.scale;
  if (scale <= 0) glfwGetWindowContentScale(window, &scale, nullptr);
  stage.set_scale(scale);
  stage.prepare(session);
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  ImGui::NewFrame();
  stage.draw(session);
  ImGui::Render();
  save_picture(stage, session, options);
  const std::string copied = session.take_copied();
  if (!copied.empty()) ImGui::SetClipboardText(copied.c_str());
  int width = 0;
  int height = 0;
  glfwGetFramebufferSize(window, &width, &height);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  glfwSwapBuffers(window);
}

}  // namespace

int show_window(Stage& stage, Session& session, Options options) {
  glfwSetErrorCallback(nullptr);
  const Library library;
  if (!library.ready) return no_display(glfw_reason().c_str());
  const std::string left = left_view_file();
  if (options.layout.empty()) restore_view(left, stage, session, options);
  const Window window = open_window(session, options);
  if (!window) return no_display(glfw_reason().c_str());
  glfwMakeContextCurrent(window.get());
  glfwSwapInterval(1);
  glfwSetWindowUserPointer(window.get(), &session);
  glfwSetDropCallback(window.get(), dropped);
  ImGui_ImplGlfw_InitForOpenGL(window.get(), true);
  ImGui_ImplOpenGL3_Init("#version 150");
  Poll poll;
  while (glfwWindowShouldClose(window.get()) == GLFW_FALSE && !session.state().quits) {
    glfwWaitEventsTimeout(kIdleSeconds);
    poll.run(session);
    draw_frame(window.get(), stage, session, options);
  }
  session.finish_files();
  int width = 0;
  int height = 0;
  glfwGetWindowSize(window.get(), &width, &height);
  keep_view(left, stage, session, width, height);
  ImGui_ImplOpenGL3_Shutdown();
  ImGui_ImplGlfw_Shutdown();
  return kDone;
}

}  // namespace shardwise::view
