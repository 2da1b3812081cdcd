#include "tests/bench/drawn_layouts.h"

#include <algorithm>
#include <random>

#include "planner/search/space/shape_cache.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

std::int64_t size_of(const auto& values) { return static_cast<std::int64_t>(values.size()); }

/// The choice that a number stands for; what is left of the number is of the choices after it.
template <class T>
const T& chosen(const std::vector<T>& values, std::int64_t& number) {
  const T& value = values[static_cast<std::size_t>(number % size_of(values))];
  number /= size_of(values);
  return value;
}

/// \param leaf  number among states and orders of all meshes
void set_leaf(Layout& layout, const WorkItem::Stretch& stretch, std::int64_t leaf) {
  for (const WorkItem::PlacedMesh& placed : stretch.meshes) {
    const Mesh& mesh = *placed.mesh;
    const std::int64_t leaves = size_of(placed.states) * size_of(mesh.orders);
    if (leaf >= leaves) {
      leaf -= leaves;
      continue;
    }
    layout.dp_shard = mesh.dp_shard;
    layout.dp_replicate = mesh.dp_replicate;
    set(layout, chosen(placed.states, leaf));
    layout.order = chosen(mesh.orders, leaf).order;
    return;
  }
  SHARDWISE_CHECK(false, "a leaf lies in a mesh");
}

Layout layout_of(const WorkItem& item, std::int64_t number) {
  for (const WorkItem::Stretch& stretch : item.stretches) {
    const std::int64_t leaves = stretch.leaves();
    const std::int64_t all = size_of(stretch.pipelines) * size_of(item.layers) * leaves;
    if (number >= all) {
      number -= all;
      continue;
    }
    Layout layout = item.base;
    layout.pp = stretch.pp;
    set(layout, chosen(stretch.pipelines, number));
    set(layout, chosen(item.layers, number));
    set_leaf(layout, stretch, number);
    return layout;
  }
  SHARDWISE_CHECK(false, "a layout lies in a stretch");
  return {};
}

}  // namespace

EnumeratedSpace::EnumeratedSpace(const ModelSpec& model, const ClusterSpec& cluster,
                                 const JobSpec& job, const EngineProfile& engine, Breadth breadth)
    : question_(layout_question(model, cluster, job, engine)),
      space_(search_space(question_, breadth)) {
  const Enumerator enumerator(question_, space_);
  SpaceCounts counts = enumerator.no_counts();
  ShapeCache shapes(cluster);
  groups_ = enumerator.degree_groups(counts);
  for (DegreeGroup& group : groups_) {
    enumerator.place(group, shapes);
    for (const std::int32_t size : enumerator.micro_batch_sizes()) {
      WorkItem item = enumerator.work_item(group, size, counts);
      if (item.layouts() == 0) continue;
      before_.push_back(layouts_);
      layouts_ += item.layouts();
      items_.push_back(std::move(item));
    }
  }
}

std::vector<std::int64_t> EnumeratedSpace::drawn_numbers(int count, std::uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < count; ++i) {
    numbers.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(layouts_)));
  }
  return numbers;
}

std::size_t EnumeratedSpace::item_of(std::int64_t number) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(before_, number) - before_.begin() - 1);
}

std::vector<Layout> EnumeratedSpace::all() const {
  std::vector<Layout> all;
  for (const WorkItem& item : items_) {
    for (std::int64_t number = 0; number < item.layouts(); ++number) {
      all.push_back(layout_of(item, number));
    }
  }
  return all;
}

std::vector<Layout> EnumeratedSpace::draw(int count, std::uint64_t seed) const {
  std::vector<Layout> drawn;
  for (const std::int64_t number : drawn_numbers(count, seed)) {
    const std::size_t item = item_of(number);
    drawn.push_back(layout_of(items_[item], number - before_[item]));
  }
  return drawn;
}

std::vector<std::size_t> EnumeratedSpace::draw_items(int count, std::uint64_t seed) const {
  std::vector<std::size_t> drawn;
  for (const std::int64_t number : drawn_numbers(count, seed)) drawn.push_back(item_of(number));
  return drawn;
}

}  // namespace shardwise
