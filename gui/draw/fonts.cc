#include "gui/draw/fonts.h"

#include <imgui.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace shardwise::view {
namespace {

/// Letters of our texts beside ASCII, and those that every font has.
constexpr std::array<std::pair<ImWchar, ImWchar>, 4> kNearest = {
    {{0x2026, '.'}, {0x2265, '>'}, {0x00D7, 'x'}, {0x00B7, '.'}}};

std::vector<std::filesystem::path> font_folders() {
  std::vector<std::filesystem::path> folders;
  if (const char* named = std::getenv("SHARDWISE_FONTS"); named != nullptr && *named != '\0') {
    folders.emplace_back(named);
  }
  for (const char* known : {"/usr/share/fonts/opentype/inter", "/usr/share/fonts/truetype/inter",
                            "/usr/share/fonts/truetype/jetbrains-mono", "/usr/local/share/fonts"}) {
    folders.emplace_back(known);
  }
  return folders;
}

std::string find_font(const std::string& stem) {
  for (const std::filesystem::path& folder : font_folders()) {
    for (const char* ending : {".otf", ".ttf"}) {
      std::error_code unknown;
      const std::filesystem::path file = folder / (stem + ending);
      if (std::filesystem::is_regular_file(file, unknown)) return file.string();
    }
  }
  return "";
}

}  // namespace

Fonts load_fonts(FontChoice choice) {
  Fonts fonts;
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  ImFont* spare = nullptr;
  const auto built_in = [&] {
    if (spare == nullptr) spare = atlas.AddFontDefaultVector();
    return spare;
  };
  const auto load = [&](const char* stem) {
    const std::string file = choice == FontChoice::installed ? find_font(stem) : "";
    ImFont* font = nullptr;
    if (!file.empty()) font = atlas.AddFontFromFileTTF(file.c_str());
    if (font != nullptr) return font;
    if (choice == FontChoice::installed) {
      fonts.missing += fonts.missing.empty() ? stem : std::string(", ") + stem;
    }
    return built_in();
  };
  fonts.body = load("Inter-Regular");
  fonts.heading = load("Inter-SemiBold");
  fonts.tile = load("Inter-Medium");
  fonts.number = load("JetBrainsMono-Regular");
  // What a font has not is drawn as what is nearest: a box says nothing.
  for (ImFont* const font : {fonts.body, fonts.heading, fonts.tile, fonts.number}) {
    for (const auto& [wanted, nearest] : kNearest) {
      if (!font->IsGlyphInFont(wanted)) font->AddRemapCodepoint(wanted, nearest);
    }
  }
  return fonts;
}

}  // namespace shardwise::view
