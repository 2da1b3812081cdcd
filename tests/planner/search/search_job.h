#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/search/explore.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {

/// A job small enough that every layout can be asked for one at a time.
struct SearchJob {
  ModelSpec model;
  ClusterSpec cluster;
  JobSpec job;
  SearchRequest request;

  explicit SearchJob(const std::string& model_name, std::int64_t gpus, const std::string& engine)
      : model(*load_model(model_name)), cluster(*with_gpus(*find_cluster("dgx-h100"), gpus)) {
    job.global_batch_size = 32;
    job.sequence_length = 1024;
    request.engines = {find_engine(engine)};
    request.threads = 1;
    request.top = 10;
  }
  const SearchRequest& ask() {
    request.model = &model;
    request.cluster = &cluster;
    request.job = &job;
    return request;
  }
  SearchResult found() {
    const Result<SearchResult> result = search(ask());
    EXPECT_TRUE(result.ok()) << to_string(result.problems());
    return *result;
  }
  /// Every legal layout with its cost by the naive path, in the order of the enumeration.
  std::vector<Candidate> all() const {
    std::vector<Candidate> candidates;
    for (std::size_t e = 0; e < request.engines.size(); ++e) {
      const LayoutQuestion question = layout_question(model, cluster, job, *request.engines[e]);
      const SearchSpace space = search_space(question, request.breadth);
      const Enumerator enumerator(question, space);
      SpaceCounts counts = enumerator.no_counts();
      ShapeCache shapes(cluster);
      for (DegreeGroup& group : enumerator.degree_groups(counts)) {
        enumerator.place(group, shapes);
        for (const std::int32_t size : enumerator.micro_batch_sizes()) {
          add(enumerator.work_item(group, size, counts), static_cast<std::int32_t>(e), candidates);
        }
      }
    }
    return candidates;
  }

 private:
  void add(const WorkItem& item, std::int32_t engine, std::vector<Candidate>& candidates) const {
    Candidate c;
    c.engine = engine;
    c.layout = item.base;
    for (const WorkItem::Stretch& stretch : item.stretches) {
      c.layout.pp = stretch.pp;
      for (const PipelineChoice& pipeline : stretch.pipelines) {
        set(c.layout, pipeline);
        for (const LayerChoice& layer : item.layers) {
          set(c.layout, layer);
          for (const WorkItem::PlacedMesh& mesh : stretch.meshes) {
            c.layout.dp_shard = mesh.mesh->dp_shard;
            c.layout.dp_replicate = mesh.mesh->dp_replicate;
            for (const StateChoice& states : mesh.states) {
              set(c.layout, states);
              for (const PlacedOrder& order : mesh.mesh->orders) {
                c.layout.order = order.order;
                c.cost = evaluate(model, cluster, job,
                                  *request.engines[static_cast<std::size_t>(engine)], c.layout);
                c.index = static_cast<std::int64_t>(candidates.size());
                candidates.push_back(c);
              }
            }
          }
        }
      }
    }
  }
};

inline std::vector<Layout> layouts_of(const std::vector<Candidate>& candidates) {
  std::vector<Layout> layouts;
  for (const Candidate& each : candidates) layouts.push_back(each.layout);
  return layouts;
}

inline std::vector<Candidate> that_fit(std::vector<Candidate> candidates, Bytes usable) {
  std::erase_if(candidates, [&](const Candidate& c) { return c.cost.upper > usable; });
  return candidates;
}

inline void expect_same(const std::vector<Candidate>& a, const std::vector<Candidate>& b) {
  ASSERT_EQ(layouts_of(a), layouts_of(b));
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].engine, b[i].engine);
    EXPECT_EQ(a[i].index, b[i].index);
    EXPECT_EQ(a[i].cost.point, b[i].cost.point);
    EXPECT_EQ(a[i].cost.upper, b[i].cost.upper);
    EXPECT_EQ(a[i].cost.step_time, b[i].cost.step_time);  // to the bit
  }
}

inline Exploration explored(SearchJob& job, const ExploreOptions& options = {}) {
  const Result<Exploration> result = explore(job.ask(), options);
  EXPECT_TRUE(result.ok()) << to_string(result.problems());
  return *result;
}

}  // namespace shardwise
