#pragma once

#include <imgui.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace shardwise::view {

/// Where a frame drew what, by name: tests and scripts click and measure by it.
class Probes {
 public:
  struct Place {
    ImVec2 least;
    ImVec2 most;
    ImVec2 centre() const { return {(least.x + most.x) / 2, (least.y + most.y) / 2}; }
  };

  void clear() { places_.clear(); }
  void put(std::string name, ImVec2 least, ImVec2 most) {
    places_[std::move(name)] = {least, most};
  }
  /// The last widget's rectangle.
  void put_item(std::string name) {
    put(std::move(name), ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  }
  std::optional<Place> find(std::string_view name) const {
    const auto found = places_.find(name);
    if (found == places_.end()) return std::nullopt;
    return found->second;
  }
  const std::map<std::string, Place, std::less<>>& all() const { return places_; }

 private:
  std::map<std::string, Place, std::less<>> places_;
};

}  // namespace shardwise::view
