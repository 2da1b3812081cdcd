#pragma once

#include <filesystem>
#include <string>

#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/machine/collective_curve.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Reads how collectives do on one kind of link, schema "shardwise.collectives/1". A coefficient
/// that is absent has its default.
Result<CollectiveCurve> read_collectives(const std::filesystem::path& path);

/// A name of the catalogue (configs/collectives) or the path of a file.
Result<CollectiveCurve> find_collectives(const std::string& name_or_path);

/// Reads the same members inside another file. `reader` is of the object that holds them.
CollectiveCurve read_collectives(ObjectReader& reader);
void write_collectives(JsonWriter& json, const CollectiveCurve& curve);

}  // namespace shardwise
