#include "gui/app/script.h"

#include <fmt/format.h>
#include <imgui.h>

#include <optional>

#include "gui/app/shot.h"
#include "gui/models/commands/commands.h"
#include "planner/spec/text/number.h"

namespace shardwise::view {
namespace {

constexpr double kFarthest = 100'000;  // pixels of a drag

class Script {
 public:
  Script(Stage& stage, Session& session, ImVec2 size, FontChoice fonts)
      : stage_(stage), session_(session), size_(size), fonts_(fonts) {
    draw_settled(stage_, session_, size_);
  }

  Failure run(std::string_view line) {
    std::string problem = do_line(line);
    if (problem.empty()) {
      draw_settled(stage_, session_, size_);
      Failure failure = session_.take_failure();  // of a file that was read or made meanwhile
      if (failure) return failure;
      problem = asked_picture();
    }
    if (problem.empty()) return {};
    return {problem, session_.take_failure().by_system};
  }

 private:
  /// Runs a command or an event. \returns empty, or what is wrong
  std::string do_line(std::string_view line) {
    const std::string_view verb = word(line);
    std::string problem;
    if (verb == "click" || verb == "move" || verb == "drag" || verb == "press") {
      problem = point(verb, line);
    } else if (verb == "release") {
      problem = line.empty() ? "" : "release takes nothing after it";
      if (problem.empty()) release();
    } else if (verb == "key") {
      problem = press(line);
    } else if (verb == "type") {
      ImGui::GetIO().AddInputCharactersUTF8(std::string(line).c_str());
      stage_.frame(session_, size_);
    } else if (verb == "shot") {
      problem = line.empty() ? "name a file" : "";
      if (problem.empty()) problem = picture(std::string(line));
    } else if (verb == "expect") {
      const std::string_view what = word(line);
      if (what != "probe") problem = "only a probe can be expected";
      if (problem.empty() && !stage_.probes().find(line)) problem = no_probe(line);
    } else {
      problem = run_command(session_,
                            line.empty() ? std::string(verb) : fmt::format("{} {}", verb, line));
    }
    return problem;
  }
  /// The picture that a command asked for.
  std::string asked_picture() {
    const auto scale = static_cast<float>(session_.state().exploring.png_scale);
    const std::string asked = session_.take_png();
    if (asked.empty()) return "";
    if (scale <= 0) return picture(asked);
    return session_.write(asked, to_png(picture_at(session_, size_, scale, fonts_)));
  }
  /// The first word; `line` is what follows it.
  static std::string_view word(std::string_view& line) {
    const std::size_t space = line.find(' ');
    const std::string_view first = line.substr(0, space);
    line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
    return first;
  }
  static std::string no_probe(std::string_view name) {
    return fmt::format("nothing of that name is on screen: {}", name);
  }
  std::string picture(const std::string& file) {
    return session_.write(file, to_png(stage_.picture(session_)));
  }

  std::string point(std::string_view verb, std::string_view line) {
    const std::string_view name = word(line);
    const std::optional<Probes::Place> place = stage_.probes().find(name);
    if (!place) return no_probe(name);
    const ImVec2 at = place->centre();
    ImVec2 by;
    if (verb == "drag" || verb == "press") {
      double x = 0;
      double y = 0;
      const std::string_view first = word(line);
      const bool number = parse_number(first).has_value();
      if (first.empty() || (number && line.empty())) {
        return fmt::format("{0} needs how far, in pixels to the right and down: {0} {1} 90 0", verb,
                           name);
      }
      std::string problem = read_number(first, -kFarthest, kFarthest, x);
      if (problem.empty()) problem = read_number(line, -kFarthest, kFarthest, y);
      if (!problem.empty()) return problem;
      by = {static_cast<float>(x), static_cast<float>(y)};
    }
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(at.x, at.y);
    stage_.frame(session_, size_);
    if (verb == "move") return "";
    io.AddMouseButtonEvent(ImGuiMouseButton_Left, true);
    stage_.frame(session_, size_);
    if (verb != "click") {
      io.AddMousePosEvent(at.x + by.x, at.y + by.y);
      stage_.frame(session_, size_);
    }
    if (verb != "press") release();
    return "";
  }
  void release() {
    ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, false);
    stage_.frame(session_, size_);
  }

  std::string press(std::string_view chord) {
    const ImGuiKeyChord keys = parse_chord(chord);
    if (keys == ImGuiKey_None) return fmt::format("{} is no key", chord);
    ImGuiIO& io = ImGui::GetIO();
    const auto each = [&](bool down) {
      for (const ImGuiKey modifier : {ImGuiMod_Ctrl, ImGuiMod_Shift}) {
        if ((keys & modifier) != 0) io.AddKeyEvent(modifier, down);
      }
      io.AddKeyEvent(static_cast<ImGuiKey>(keys & ~ImGuiMod_Mask_), down);
      stage_.frame(session_, size_);
    };
    each(true);
    each(false);
    return "";
  }

  Stage& stage_;
  Session& session_;
  ImVec2 size_;
  FontChoice fonts_;
};

}  // namespace

std::optional<ScriptFailure> run_script(Stage& stage, Session& session, const Options& options,
                                        std::string_view text, const std::string& file) {
  Script script(stage, session,
                {static_cast<float>(options.width), static_cast<float>(options.height)},
                options.built_in_font ? FontChoice::built_in : FontChoice::installed);
  int number = 0;
  while (!text.empty() && !session.state().quits) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const Failure failed = script.run(line);
    if (failed) return ScriptFailure{{file, number, 0, "", failed.message, ""}, failed.by_system};
  }
  return std::nullopt;
}

}  // namespace shardwise::view
