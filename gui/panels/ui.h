#pragma once

#include <imgui.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/draw/fonts.h"
#include "gui/draw/probes.h"
#include "gui/draw/theme.h"
#include "gui/models/timeline/lane_columns.h"
#include "gui/models/window/app_state.h"

namespace shardwise::view {

/// Text typed in the palette while it is open, and for which of its openings.
struct PaletteInput {
  std::array<char, 256> typed{};
  std::uint64_t opened = 0;
  bool at_end = false;  // the cursor was put behind the words it opened with
};

/// Context in which a panel draws. Panels read the state and say which commands are wanted; those
/// run after the frame, so that a frame shows one state.
struct Ui {
  const AppState& state;
  const Theme& theme;
  const Fonts& fonts;
  Probes& probes;
  PaletteInput& palette;
  DrawnColumns& columns;
  std::uint64_t& arranged;  // how often panels were put back in their places
  std::uint64_t& fronted;   // how often one was brought to the front
  float scale = 1;          // of the window: own drawing is in units of it

  std::vector<std::string> wanted;          // commands, in their order
  std::vector<std::uint32_t> visible_rows;  // of the answer, whose bars are drawn
  std::optional<std::uint32_t> fix_row;     // of the answer, of which people want to know more
  bool menus = false;                       // one of the question is open
  bool links = false;                       // that of faster links
  bool levers = false;                      // the panel of what would help most is seen

  void want(std::string command) { wanted.push_back(std::move(command)); }
  float units(float count) const { return count * scale; }
  ImU32 ink(std::string_view hex, float alpha = 1) const { return colour(hex, alpha); }
};

/// A panel's heading, and what it says beside it in quiet letters, where they leave `kept` of the
/// line.
void heading(Ui& ui, std::string_view title, std::string_view note = {}, float kept = 0);
/// Heading of a panel whose numbers are the step-time model's. Beside simulated tiles it says so,
/// whatever room there is: before the note, instead of it, or on a line of its own.
void model_heading(Ui& ui, std::string_view title, std::string_view note = {});
/// Puts the cursor where what is `width` wide ends at the panel's right edge: on the line of the
/// last item where there is room, else below.
void to_right_edge(Ui& ui, float width);

/// Words that fit into a width: all of them, or as many letters as do and "…".
std::string fitting(Ui& ui, std::string_view words, float width);

/// Text in a colour of the theme.
void text(Ui& ui, std::string_view words, std::string_view hex);
/// Text on one line, which ends in "…" where the rest of the line has no room for it; the pointer
/// shows it all.
void fitting_text(Ui& ui, std::string_view words, std::string_view hex);
/// Text in as many lines as the rest of the line but `kept` makes of it.
void wrapped_text(Ui& ui, std::string_view words, std::string_view hex, float kept = 0);
/// Their height.
float wrapped_height(std::string_view words);
/// Text that ends at the right edge of what is left of the line, in digits of one width.
void number_right(Ui& ui, std::string_view words, std::string_view hex);
float number_width(Ui& ui, std::string_view words);
/// number_right() for the head of a column: its last word is on a line of its own where both have
/// no room on one.
void head_right(Ui& ui, std::string_view words, std::string_view hex);

/// Many rectangles between whole pixels, in the window's list, which has room made for a number of
/// them at once. AddRectFilled() would also soften their edges, which takes longer and changes
/// nothing there. \pre nothing else is drawn in that list while one of these lives
class Fills {
 public:
  Fills() : list_(*ImGui::GetWindowDrawList()) {}
  ~Fills();
  Fills(const Fills&) = delete;
  Fills& operator=(const Fills&) = delete;
  void add(ImVec2 least, ImVec2 most, ImU32 ink);

 private:
  ImDrawList& list_;
  int room_ = 0;  // rectangles
};

/// Text drawn at a place; `align` 0 begins there, 0.5 is centred on it, 1 ends there.
void draw_text(Ui& ui, ImVec2 at, std::string_view words, ImU32 ink, float align = 0);

/// Names what explains the numbers of the last item: a subject of why_subject().
void explain(Ui& ui, std::string subject);

/// A word that is on or off, with a probe of that name. \returns whether it was clicked
bool toggle(Ui& ui, const std::string& probe, const std::string& word, bool on);

/// A row of words of which one is chosen. \returns the one that was clicked, or -1
int segments(Ui& ui, const char* id, const std::vector<std::string>& words, int chosen);
/// Width of segments in a line.
float segments_width(Ui& ui, const std::vector<std::string>& words);

/// Colours and what they say, in lines as wide as there is room.
void legend(Ui& ui, const std::vector<std::pair<std::string, std::string_view>>& entries);

}  // namespace shardwise::view
