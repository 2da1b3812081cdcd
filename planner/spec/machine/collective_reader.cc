#include "planner/spec/machine/collective_reader.h"

#include "planner/spec/json/catalogue.h"
#include "planner/spec/json/fields.h"
#include "planner/spec/machine/fit_record.h"

namespace shardwise {
namespace {

template <class Io, class Curve>
void list_collective_curve(Io& io, Curve& curve) {
  io.require({"name", "coefficients", "fit"});
  io.text("name", curve.name);
  io.object("coefficients", curve.coefficients, [](auto& nested, auto& coefficients) {
    for (const CoefficientName& each : kCoefficients) {
      nested.number(each.key, coefficients.*each.field, each.low, each.high);
    }
  });
  io.object("fit", curve.fit, [](auto& nested, auto& fit) { list_fit(nested, fit); });
}

}  // namespace

CollectiveCurve read_collectives(ObjectReader& reader) {
  CollectiveCurve curve;
  FieldReader io(reader);
  list_collective_curve(io, curve);
  return curve;
}

Result<CollectiveCurve> read_collectives(const std::filesystem::path& path) {
  const Result<JsonValue> json = read_json(path);
  if (!json) return json.problems();
  Diagnostics problems;
  ObjectReader reader(*json, path.string(), "", problems);
  reader.require_schema("shardwise.collectives/1");
  CollectiveCurve curve = read_collectives(reader);
  reader.reject_unknown();
  if (!problems.empty()) return problems;
  return curve;
}

Result<CollectiveCurve> find_collectives(const std::string& name_or_path) {
  const Result<CatalogueFile> file = find_in_catalogue("collectives", name_or_path);
  if (!file) return file.problems();
  return read_collectives(file->path);
}

void write_collectives(JsonWriter& json, const CollectiveCurve& curve) {
  FieldWriter io(json);
  list_collective_curve(io, curve);
}

}  // namespace shardwise
