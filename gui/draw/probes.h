#pragma once

#include <imgui.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardwise::view {

/// Where a frame drew what, by name: tests and scripts click and measure by it.
class Probes {
 public:
  struct Place {
    ImVec2 least;
    ImVec2 most;
    ImVec2 centre() const { return {(least.x + most.x) / 2, (least.y + most.y) / 2}; }
  };

  void clear() {
    places_.clear();
    reasons_.clear();
    texts_.clear();
    cut_.clear();
  }
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

  /// Names what explains the numbers in a place: a subject of why_subject(). Of places that
  /// overlap, the last one counts.
  void explain(std::string subject, ImVec2 least, ImVec2 most) {
    reasons_.push_back({std::move(subject), {least, most}});
  }
  /// The subject at a place, or nullptr.
  const std::string* reason_at(ImVec2 at) const {
    for (std::size_t i = reasons_.size(); i-- > 0;) {
      const Place& place = reasons_[i].place;
      const bool inside = at.x >= place.least.x && at.x <= place.most.x && at.y >= place.least.y &&
                          at.y <= place.most.y;
      if (inside) return &reasons_[i].words;
    }
    return nullptr;
  }

  /// Words, and where they are.
  struct Words {
    std::string words;
    Place place;
  };
  /// Has all texts of the frames that follow kept, which nobody but a test needs.
  void keep_texts() { keeps_ = true; }
  void saw(std::string_view words, ImVec2 least, ImVec2 most) {
    if (keeps_) texts_.push_back({std::string(words), {least, most}});
  }
  const std::vector<Words>& texts() const { return texts_; }
  /// Words of which a part is not drawn, as there is no room for it.
  void cut(std::string_view words) {
    if (keeps_) cut_.emplace_back(words);
  }
  const std::vector<std::string>& cut_texts() const { return cut_; }

 private:
  bool keeps_ = false;
  std::vector<Words> reasons_;
  std::vector<Words> texts_;
  std::vector<std::string> cut_;
  std::map<std::string, Place, std::less<>> places_;
};

}  // namespace shardwise::view
