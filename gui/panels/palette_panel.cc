#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <vector>

#include "gui/models/commands/commands.h"
#include "gui/panels/panels.h"

namespace shardwise::view {
namespace {

constexpr float kWidth = 560;
constexpr float kRows = 14;

void place_in_middle(Ui& ui, float width, float top) {
  const ImGuiViewport* const viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(
      {viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + ui.units(top)},
      ImGuiCond_Always, {0.5F, 0});
  ImGui::SetNextWindowSize({std::min(ui.units(width), viewport->WorkSize.x), 0});
}

constexpr ImGuiWindowFlags kFloating = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                       ImGuiWindowFlags_NoDocking |
                                       ImGuiWindowFlags_NoSavedSettings;

/// Keyboard focus selects all that is typed: what follows goes behind it instead.
int put_cursor(ImGuiInputTextCallbackData* input) {
  bool& at_end = *static_cast<bool*>(input->UserData);
  if (at_end) return 0;
  at_end = true;
  input->CursorPos = input->SelectionStart = input->SelectionEnd = input->BufTextLen;
  return 0;
}

/// What is typed until the field has the keyboard, which takes it frames, belongs there as well.
void take_typed(std::array<char, 256>& typed) {
  ImVector<ImWchar>& queue = ImGui::GetIO().InputQueueCharacters;
  std::string words(typed.data());
  for (const ImWchar letter : queue) {
    std::array<char, 5> bytes{};
    ImTextCharToUtf8(bytes.data(), letter);
    if (letter >= ' ' && words.size() + bytes.size() < typed.size()) words += bytes.data();
  }
  queue.resize(0);
  typed.fill('\0');
  words.copy(typed.data(), typed.size() - 1);
}

void key_right(Ui& ui, std::string_view key) { number_right(ui, key, ui.theme.quiet); }

}  // namespace

void draw_palette(Ui& ui) {
  auto& [typed, opened, at_end] = ui.palette;
  if (!ui.state.palette_open) return;
  const bool fresh = opened != ui.state.palette_opened;
  if (fresh) {
    opened = ui.state.palette_opened;
    at_end = false;
    typed.fill('\0');
    ui.state.palette_text.copy(typed.data(), typed.size() - 1);
  }
  place_in_middle(ui, kWidth, 70);
  ImGui::SetNextWindowFocus();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::Begin("palette", nullptr, kFloating);
  ImGui::PopStyleVar();
  // An input that is being typed in keeps its own text.
  if (fresh && ImGui::GetActiveID() == ImGui::GetID("##command")) ImGui::ClearActiveID();
  if (fresh) ImGui::SetKeyboardFocusHere();
  if (ImGui::GetActiveID() != ImGui::GetID("##command")) take_typed(typed);
  ImGui::SetNextItemWidth(-1);
  const bool entered = ImGui::InputTextWithHint(
      "##command", "a command", typed.data(), typed.size(),
      ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CallbackAlways, put_cursor,
      &at_end);
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) ui.want("app.close");
  ui.probes.put_item("palette.input");
  const std::string line(typed.data());
  const std::size_t space = line.find(' ');
  const Command* const named = find_command(line.substr(0, space));
  const std::string_view name = named != nullptr ? named->name : std::string_view();
  const std::vector<const Command*> found = matching_commands(line);
  const std::vector<CommandChoice> choices = matching_choices(ui.state, line);
  if (entered && !choices.empty() && named != nullptr && named->needs_argument()) {
    ui.want("app.close");
    ui.want(fmt::format("{} {}", name, choices.front().argument));
  } else if (entered && named != nullptr) {
    ui.want("app.close");
    ui.want(line);
  } else if (entered && !found.empty()) {
    if (!found.front()->needs_argument()) {
      ui.want("app.close");
      ui.want(std::string(found.front()->name));
    } else {
      ui.want("app.palette " + ready_line(ui.state, *found.front()));
    }
  }
  std::size_t drawn = 0;
  for (const CommandChoice& each : choices) {
    ImGui::PushID(each.argument.data(), each.argument.data() + each.argument.size());
    const ImVec2 at = ImGui::GetCursorPos();
    if (ImGui::Selectable("##choice", drawn++ == 0)) {
      ui.want("app.close");
      ui.want(fmt::format("{} {}", name, each.argument));
    }
    ui.probes.put_item(fmt::format("palette.{}.{}", name, each.argument));
    ImGui::SetCursorPos(at);
    text(ui, each.argument, ui.theme.text);
    ImGui::SameLine();
    text(ui, each.text, ui.theme.quiet);
    ImGui::PopID();
  }
  if (!choices.empty()) {
    ImGui::End();
    return;
  }
  for (const Command* const each : found) {
    if (static_cast<float>(++drawn) > kRows) break;
    ImGui::PushID(each->name.data(), each->name.data() + each->name.size());
    const ImVec2 at = ImGui::GetCursorPos();
    if (ImGui::Selectable("##row", drawn == 1)) {
      ui.want("app.close");
      ui.want(!each->needs_argument() ? std::string(each->name)
                                      : "app.palette " + ready_line(ui.state, *each));
    }
    ui.probes.put_item(fmt::format("palette.{}", each->name));
    ImGui::SetCursorPos(at);
    text(ui, each->text, ui.theme.text);
    ImGui::SameLine();
    text(ui, fmt::format("{} {}", each->name, each->argument), ui.theme.quiet);
    ImGui::SameLine();
    key_right(ui, each->key);
    ImGui::PopID();
  }
  if (named != nullptr && !named->argument.empty()) {
    text(ui, fmt::format("{} {}", named->name, named->argument), ui.theme.quiet);
  }
  ImGui::End();
}

void draw_help(Ui& ui) {
  if (!ui.state.help_open) return;
  constexpr float kTop = 40;
  constexpr float kTwice = 1240;  // width of two columns of commands
  const ImGuiViewport* const viewport = ImGui::GetMainViewport();
  const bool twice = viewport->WorkSize.x >= ui.units(kTwice + 20);
  place_in_middle(ui, twice ? kTwice : 720, kTop);
  const float most = viewport->WorkSize.y - ui.units(2 * kTop);
  ImGui::SetNextWindowSizeConstraints({0, 0}, {viewport->WorkSize.x, most});
  ImGui::SetNextWindowFocus();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::Begin("help", nullptr, kFloating & ~ImGuiWindowFlags_NoScrollbar);
  ImGui::PopStyleVar();
  heading(ui, "Keys", "Esc closes this");
  std::vector<Command> all;
  std::ranges::copy_if(commands(), std::back_inserter(all),
                       [](const Command& each) { return !each.key.empty(); });
  const std::size_t lines = twice ? (all.size() + 1) / 2 : all.size();
  if (ImGui::BeginTable("keys", twice ? 6 : 3, ImGuiTableFlags_SizingFixedFit)) {
    for (std::size_t line = 0; line < lines; ++line) {
      ImGui::TableNextRow();
      for (std::size_t i = line; i < all.size(); i += lines) {
        const Command& each = all[i];
        ImGui::TableNextColumn();
        text(ui, each.key, ui.theme.accent);
        ImGui::TableNextColumn();
        text(ui, each.text, ui.theme.text);
        ImGui::TableNextColumn();
        text(ui, each.name, ui.theme.quiet);
        ui.probes.put_item(fmt::format("help.{}", each.name));
      }
    }
    ImGui::EndTable();
  }
  const ImVec2 corner = ImGui::GetWindowPos();
  const ImVec2 size = ImGui::GetWindowSize();
  ui.probes.put("help", corner, {corner.x + size.x, corner.y + size.y});
  ImGui::End();
}

}  // namespace shardwise::view
