#include "gui/app/window.h"

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "gui/app/key_queue.h"
#include "gui/app/left_window.h"
#include "gui/app/shot.h"
#include "gui/draw/theme.h"
#include "gui/models/commands/commands.h"
#include "gui/models/question/layout_text.h"

/// A key of GLFW as ImGui names it; imgui_impl_glfw.cpp defines it and has it in no header.
ImGuiKey ImGui_ImplGlfw_KeyToImGuiKey(int keycode, int scancode);

namespace shardwise::view {
namespace {

constexpr int kNoDisplay = 2;

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

/// What the calls of a window reach.
struct Listeners {
  Session& session;
  KeyQueue keys;
};
Listeners& listeners_of(GLFWwindow* window) {
  return *static_cast<Listeners*>(glfwGetWindowUserPointer(window));
}

void dropped(GLFWwindow* window, int count, const char** paths) {
  Session& session = listeners_of(window).session;
  for (int i = 0; i < count; ++i) {
    const std::string problem = run_command(session, std::string("file.open ") + paths[i]);
    if (!problem.empty()) session.say(problem);
  }
}

/// A key by the letter that the user's keyboard has on it: GLFW names keys by their places on an
/// American one.
ImGuiKey key_of(int key, int scancode) {
  const bool on_pad = key >= GLFW_KEY_KP_0 && key <= GLFW_KEY_KP_EQUAL;
  const char* const name = on_pad ? nullptr : glfwGetKeyName(key, scancode);
  if (name != nullptr && name[0] != 0 && name[1] == 0) {
    static constexpr std::array kSigns =
        std::to_array<std::pair<char, int>>({{'`', GLFW_KEY_GRAVE_ACCENT},
                                             {'-', GLFW_KEY_MINUS},
                                             {'=', GLFW_KEY_EQUAL},
                                             {'[', GLFW_KEY_LEFT_BRACKET},
                                             {']', GLFW_KEY_RIGHT_BRACKET},
                                             {'\\', GLFW_KEY_BACKSLASH},
                                             {',', GLFW_KEY_COMMA},
                                             {';', GLFW_KEY_SEMICOLON},
                                             {'\'', GLFW_KEY_APOSTROPHE},
                                             {'.', GLFW_KEY_PERIOD},
                                             {'/', GLFW_KEY_SLASH}});
    const char sign = name[0];
    const auto* const known = std::ranges::find(kSigns, sign, &std::pair<char, int>::first);
    if (sign >= '0' && sign <= '9') key = GLFW_KEY_0 + (sign - '0');
    if (sign >= 'a' && sign <= 'z') key = GLFW_KEY_A + (sign - 'a');
    if (sign >= 'A' && sign <= 'Z') key = GLFW_KEY_A + (sign - 'A');
    if (known != kSigns.end()) key = known->second;
  }
  return ImGui_ImplGlfw_KeyToImGuiKey(key, scancode);
}

/// The modifiers of an event. Those of a modifier's own event are of before it on X11, and of after
/// it elsewhere.
ImGuiKeyChord modifiers_of(int key, bool down, int said) {
  struct Modifier {
    int bit;
    int left;
    int right;
    ImGuiKeyChord chord;
  };
  static constexpr std::array kModifiers = std::to_array<Modifier>(
      {{GLFW_MOD_CONTROL, GLFW_KEY_LEFT_CONTROL, GLFW_KEY_RIGHT_CONTROL, ImGuiMod_Ctrl},
       {GLFW_MOD_SHIFT, GLFW_KEY_LEFT_SHIFT, GLFW_KEY_RIGHT_SHIFT, ImGuiMod_Shift},
       {GLFW_MOD_ALT, GLFW_KEY_LEFT_ALT, GLFW_KEY_RIGHT_ALT, ImGuiMod_Alt},
       {GLFW_MOD_SUPER, GLFW_KEY_LEFT_SUPER, GLFW_KEY_RIGHT_SUPER, ImGuiMod_Super}});
  ImGuiKeyChord chord = ImGuiKey_None;
  for (const Modifier& each : kModifiers) {
    const bool itself = key == each.left || key == each.right;
    if (itself ? down : (said & each.bit) != 0) chord |= each.chord;
  }
  return chord;
}

void key_pressed(GLFWwindow* window, int key, int scancode, int action, int said) {
  if (action == GLFW_REPEAT) return;  // ImGui repeats what is held
  const bool down = action == GLFW_PRESS;
  listeners_of(window).keys.add_key(key_of(key, scancode), down, modifiers_of(key, down, said));
}

void character_typed(GLFWwindow* window, unsigned int code_point) {
  listeners_of(window).keys.add_character(code_point);
}

/// Waits for events as long as nothing is to be drawn.
class Waiting {
 public:
  explicit Waiting(Session& session) : session_(session) {
    session_.on_result([] { glfwPostEmptyEvent(); });
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { session_.on_result(nullptr); }

  /// Returns when a frame is to be drawn.
  void wait(bool keys_wait) {
    poll_metrics();
    const double begin = glfwGetTime();
    if (keys_wait) {
      glfwPollEvents();
    } else if (begin < awake_until_) {
      glfwWaitEventsTimeout(kFrameSeconds);
    } else if (follows()) {
      glfwWaitEventsTimeout(kPollSeconds);
    } else {
      glfwWaitEvents();
    }
    const bool event = begin >= awake_until_ || glfwGetTime() - begin < kFrameSeconds;
    if (event || keys_wait) awake_until_ = glfwGetTime() + kAwakeSeconds;
  }

 private:
  /// After an event frames follow each other: a tooltip comes when the pointer has rested a while.
  static constexpr double kFrameSeconds = 0.05;
  static constexpr double kAwakeSeconds = 1;
  static constexpr double kPollSeconds = 0.5;

  bool follows() const {
    const MetricsState& metrics = session_.state().metrics;
    return !metrics.file.empty() && metrics.problem.empty();
  }
  /// Reads what a run that is followed has added, twice a second.
  void poll_metrics() {
    if (!follows() || glfwGetTime() < next_poll_) return;
    next_poll_ = glfwGetTime() + kPollSeconds;
    const std::string problem = run_command(session_, "metrics.poll");
    if (!problem.empty()) session_.say(problem);
  }

  Session& session_;
  double awake_until_ = glfwGetTime() + kAwakeSeconds;
  double next_poll_ = 0;
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

/// Paints the gaps between panels, and what closed windows have left there.
class Ground {
 public:
  void clear(int width, int height, bool dark) const {
    if (viewport_ == nullptr || colour_ == nullptr || clear_ == nullptr) return;
    const ImVec4 page = colour4(theme_of(dark).page);
    viewport_(0, 0, width, height);
    colour_(page.x, page.y, page.z, 1);
    clear_(kColourBuffer);
  }

 private:
  // Of OpenGL's header; GLFW is included without it.
  static constexpr unsigned kColourBuffer = 0x4000;  // GL_COLOR_BUFFER_BIT
  using Viewport = void(int x, int y, int width, int height);
  using ClearColour = void(float red, float green, float blue, float alpha);
  using Clear = void(unsigned mask);

  // ImGui's own table of OpenGL's functions is not for others.
  template <typename Function>
  static Function* find(const char* name) {
    return reinterpret_cast<Function*>(glfwGetProcAddress(name));
  }
  Viewport* viewport_ = find<Viewport>("glViewport");
  ClearColour* colour_ = find<ClearColour>("glClearColor");
  Clear* clear_ = find<Clear>("glClear");
};

void draw_frame(GLFWwindow* window, Stage& stage, Session& session, const Options& options,
                const Ground& ground) {
  float scale = options.scale;
  if (scale <= 0) glfwGetWindowContentScale(window, &scale, nullptr);
  stage.set_scale(scale);
  stage.prepare(session);
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  listeners_of(window).keys.feed(ImGui::GetIO());
  ImGui::NewFrame();
  stage.draw(session);
  ImGui::Render();
  save_picture(stage, session, options);
  const std::string copied = session.take_copied();
  if (!copied.empty()) ImGui::SetClipboardText(copied.c_str());
  int width = 0;
  int height = 0;
  glfwGetFramebufferSize(window, &width, &height);
  ground.clear(width, height, session.state().dark);
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
  Listeners listeners{session, {}};
  glfwSetWindowUserPointer(window.get(), &listeners);
  glfwSetDropCallback(window.get(), dropped);
  ImGui_ImplGlfw_InitForOpenGL(window.get(), true);
  ImGui_ImplOpenGL3_Init("#version 150");
  glfwSetKeyCallback(window.get(), key_pressed);
  glfwSetCharCallback(window.get(), character_typed);
  ImGui::GetIO().ConfigInputTextCursorBlink = false;  // a window at rest draws nothing
  const Ground ground;
  {
    Waiting waiting(session);
    while (glfwWindowShouldClose(window.get()) == GLFW_FALSE && !session.state().quits) {
      waiting.wait(listeners.keys.waiting());
      draw_frame(window.get(), stage, session, options, ground);
    }
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
