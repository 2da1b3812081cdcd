#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "planner/spec/json/reader.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/kept_settings.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A decision, fully resolved: what is trained, on what, by which software, spread how. Simulator
/// and executor need no other file, no catalogue and no default.
struct Plan {
  ModelSpec model;
  ClusterSpec cluster;
  JobSpec job;  // global_batch_size is set
  EngineProfile engine;
  Layout layout;
  KeptSettings kept = {};  // of an imported plan
};

/// The text of a plan.json, schema "shardwise.plan/1". Equal plans have equal texts, and a text
/// written by this reads back as the plan it was written from.
std::string to_json(const Plan& plan);

/// \returns the plan, or everything wrong with the file. What is accepted is safe to compute with,
///          but the layout may still be illegal: see check_layout.
Result<Plan> plan_from_json(const JsonValue& root, const std::string& file);
Result<Plan> read_plan(const std::filesystem::path& path);  // or a report.html with one in it

/// Problems that rules find in a plan, by flag (--tp) or by key (/engine/name).
using PlanRules = std::function<Diagnostics(const Plan& plan)>;
/// The same, and the plan keeps `rules`: what breaks them is said at its place in the file.
Result<Plan> read_plan(const std::filesystem::path& path, const PlanRules& rules);

/// Names a plan in reports: the SHA-256 of its text, 64 hexadecimal digits.
std::string digest(const Plan& plan);

}  // namespace shardwise
