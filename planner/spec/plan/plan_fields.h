#pragma once

#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/kept_settings.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

// The parts of a plan as members of a JSON object. A reader leaves what is absent at its default,
// refuses unknown keys and gathers every problem; what it accepts is safe to compute with: sizes
// are within the limits below, indices within their lists.

/// Ranks of a job, and the most any degree can be.
inline constexpr std::int64_t kMaxRanks = kMostGpus;
/// Sequences of a step and tokens of a sequence.
inline constexpr std::int64_t kMaxBatch = 1 << 30;
inline constexpr std::int64_t kMaxSequence = 1 << 30;

void read_fields(ObjectReader& reader, Layout& layout);
void write_fields(JsonWriter& json, const Layout& layout);

void read_fields(ObjectReader& reader, JobSpec& job);
void write_fields(JsonWriter& json, const JobSpec& job);

void read_fields(ObjectReader& reader, EngineProfile& engine);
void write_fields(JsonWriter& json, const EngineProfile& engine);

void read_fields(ObjectReader& reader, RuntimeMemory& runtime);
void write_fields(JsonWriter& json, const RuntimeMemory& runtime);

void read_fields(ObjectReader& reader, ModelSpec& model);
void write_fields(JsonWriter& json, const ModelSpec& model);

void read_fields(ObjectReader& reader, KeptSettings& kept);
void write_fields(JsonWriter& json, const KeptSettings& kept);

/// Sets the field `key` of `layout` from what a user typed ("tp", "8").
/// \returns empty, or what is wrong: "tpp is no field of a layout (did you mean tp?)",
///          "tp: eight is not an integer of 1 to 4194304"
std::string set_field(Layout& layout, const std::string& key, const std::string& text);
/// The value of the field `key` as set_field reads it. \pre key is one of layout_keys()
std::string field_text(const Layout& layout, const std::string& key);
/// The keys of a layout in the order in which they are written.
const std::vector<std::string>& layout_keys();

}  // namespace shardwise
