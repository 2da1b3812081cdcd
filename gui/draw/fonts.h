#pragma once

#include <string>

struct ImFont;

namespace shardwise::view {

/// The fonts of a window. Sizes are in units of the style's base font: 15 is one line.
struct Fonts {
  ImFont* body = nullptr;
  ImFont* heading = nullptr;
  ImFont* tile = nullptr;    // of large numbers
  ImFont* number = nullptr;  // every digit as wide as the others
  std::string missing;       // what to say once: fonts that were not found; empty when all were
};

enum class FontChoice : unsigned char {
  installed,  // Inter and JetBrains Mono, from $SHARDWISE_FONTS or where Debian has them
  built_in,   // ImGui's own, the same on every machine
};

/// Adds them to ImGui's atlas. A file that is not there is tested for first: ImGui would abort.
Fonts load_fonts(FontChoice choice);

}  // namespace shardwise::view
